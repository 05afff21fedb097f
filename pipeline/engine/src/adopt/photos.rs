//! Tags that somebody else gave.

use std::collections::{BTreeMap, HashMap};

use sparks_domain::{
    Attributes, Event, FoundPhoto, ImageId, Item, Key, Mutation, PersonId, PhotoAdopted, PhotoState, Strange,
    Timestamp, person_of,
};

use super::{Adopted, Adoption, Step, standing::Standing, survey::PAGE};
use crate::{
    Commit, CommitError, Failure, Filter, PhotoGuard, Query,
    shown::Shown,
    stages::{conflict_pauses, pause},
};

impl Adoption {
    /// Takes over the tags that the log does not name, photo by photo: what is about a photo is in its lane, under its guard,
    /// and no larger for a person of thousands of photos.
    pub(super) async fn adopt_photos(
        &self,
        standing: &mut Standing,
        adopted: &mut Adopted,
        progress: &impl Fn(Step),
    ) -> Result<(), Failure> {
        let (mut after, mut seen): (Option<Key>, u64) = (None, 0);
        loop {
            let page = self.store.scan(after.as_ref(), PAGE).await?;
            let Some(last) = page.last().map(|row| row.key.clone()) else { return Ok(()) };
            let tagged = tagged(&page, adopted);
            seen += tagged.values().map(|persons| persons.len() as u64).sum::<u64>();
            self.adopt_page(tagged, standing, adopted).await?;
            progress(Step::Taggings(seen));
            after = Some(last);
        }
    }

    async fn adopt_page(
        &self,
        tagged: BTreeMap<ImageId, Vec<PersonId>>,
        standing: &mut Standing,
        adopted: &mut Adopted,
    ) -> Result<(), Failure> {
        let images: Vec<ImageId> = tagged.keys().cloned().collect();
        let states = self.store.photos(&images).await?;
        let merges = standing.people.merges().clone();
        let mut written = Vec::new();
        for ((image, persons), state) in tagged.into_iter().zip(states) {
            let named = state.map(|state| merges.all_now(&state.persons)).unwrap_or_default();
            if !persons.iter().all(|person| named.contains(person))
                && self.adopt_photo(&image, standing, adopted).await?
            {
                written.push(image);
            }
        }
        if standing.rehearses || written.is_empty() {
            return Ok(());
        }
        // Whoever was joined meanwhile had no photo of ours to follow it, so these do.
        standing.catch_up(self.store.as_ref()).await?;
        if *standing.people.merges() != merges {
            for image in &written {
                self.shown().reassert(image, standing.people.merges()).await?;
            }
        }
        Ok(())
    }

    /// Takes over the tags of one photo. Says whether anything was written.
    async fn adopt_photo(&self, image: &ImageId, standing: &Standing, adopted: &mut Adopted) -> Result<bool, Failure> {
        let (ports, rules) = (&self.pipeline.ports, &self.pipeline.rules);
        let mut pauses = conflict_pauses();
        loop {
            let state = self.store.photo(image).await?;
            let (rows, when) = (self.rows_of(image).await?, ports.clock.now());
            let tagging_key = rules.projection.tagging_key;
            let found = FoundPhoto { image, rows: &rows, state: state.as_ref(), tagging_key };
            let (event, strange) = found.adopted(&standing.people, when);
            adopted.leave(strange);
            let Some(event) = event else { return Ok(false) };
            let taggings = event.taggings.len() as u64;
            if !standing.rehearses {
                let mutations = self.rows_after(&event, state.as_ref(), when, standing).await?;
                let before = rows.into_iter().map(|row| (row.key, row.attributes)).collect();
                let commit = Commit {
                    actor: rules.actor.clone(),
                    mutations: beyond(mutations, &before),
                    events: vec![Event::PhotoAdopted(event)],
                    ..Commit::without_events(when, Some(PhotoGuard { image: image.clone(), before: state }))
                };
                match self.store.commit(&commit).await {
                    Ok(recorded) => self.pipeline.tell(&recorded).await,
                    Err(CommitError::PhotoMoved) => {
                        pause(&mut pauses, &format!("photo {image}")).await?;
                        continue;
                    }
                    // The platform deleted the photo meanwhile.
                    Err(CommitError::RowMissing(_)) => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
            }
            adopted.photos += 1;
            adopted.taggings += taggings;
            return Ok(!standing.rehearses);
        }
    }

    /// The photo's rows once the tags are ours: beside what we show of it, if we show anything.
    async fn rows_after(
        &self,
        event: &PhotoAdopted,
        state: Option<&PhotoState>,
        when: Timestamp,
        standing: &Standing,
    ) -> Result<Vec<Mutation>, Failure> {
        let (projection, merges) = (self.pipeline.rules.projection, standing.people.merges());
        if let Some((shown, state)) = self.shown().event(&event.image_id).await? {
            let persons: Vec<PersonId> = state.persons.iter().copied().chain(event.persons()).collect();
            return Ok(projection.shown(&shown.event, shown.when, &persons, merges).unwrap_or_default());
        }
        Ok(projection.project(state, &Event::PhotoAdopted(event.clone()), when, merges))
    }

    async fn rows_of(&self, image: &ImageId) -> Result<Vec<Item>, Failure> {
        let filter = Filter::Partition { pk: image.to_string(), sk_prefix: String::new() };
        let mut query = Query { filter, after: None, limit: PAGE, backwards: false };
        let mut rows = Vec::new();
        loop {
            let page = self.store.query(&query).await?;
            rows.extend(page.items);
            match page.last {
                Some(last) => query.after = Some(last),
                None => return Ok(rows),
            }
        }
    }

    fn shown(&self) -> Shown<'_> {
        Shown { store: self.store.as_ref(), projection: self.pipeline.rules.projection }
    }
}

/// The photos that these rows tag, and with whom.
fn tagged(page: &[Item], adopted: &mut Adopted) -> BTreeMap<ImageId, Vec<PersonId>> {
    let mut tagged: BTreeMap<ImageId, Vec<PersonId>> = BTreeMap::new();
    for row in page.iter().filter(|row| row.key.sk.starts_with("PERSON#")) {
        match (row.key.pk.parse::<ImageId>(), person_of(row)) {
            (Ok(image), Ok(person)) => tagged.entry(image).or_default().push(person),
            (Err(_), _) => adopted.leave([Strange::NotAPhoto(row.key.to_string())]),
            (_, Err(strange)) => adopted.leave([strange]),
        }
    }
    tagged
}

/// What of these changes the rows do not say already.
fn beyond(changes: Vec<Mutation>, rows: &HashMap<Key, Attributes>) -> Vec<Mutation> {
    changes
        .into_iter()
        .filter_map(|change| {
            let row = rows.get(change.key());
            change.beyond(row)
        })
        .collect()
}
