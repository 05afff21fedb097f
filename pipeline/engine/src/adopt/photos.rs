//! Adoption of tags.

use std::collections::{BTreeMap, HashMap};

use sparks_domain::{
    AdoptionIssue, Attributes, Event, ImageId, Item, Key, Mutation, PersonId, PhotoAdopted, PhotoState,
    ProjectionContext, TaggedPhotoRows, Timestamp, tagged_person,
};

use super::{Adoption, AdoptionProgress, AdoptionReport, AdoptionRun, adoption_state::AdoptionState, survey::PAGE};
use crate::{
    Commit, CommitError, Failure, Filter, PhotoGuard, Query,
    photo_rows::PhotoRows,
    stages::{Notifier, conflict_backoff, wait_after_conflict},
};

impl Adoption {
    /// Adopts the tags that are not in the event log, one event per photo: in the photo's lane, under its guard, and of bounded
    /// size even for a person in thousands of photos.
    pub(super) async fn adopt_photos(
        &self,
        run: &mut AdoptionRun<'_>,
        progress: &impl Fn(AdoptionProgress),
    ) -> Result<(), Failure> {
        let (mut after, mut processed): (Option<Key>, u64) = (None, 0);
        loop {
            let page = self.store.scan(after.as_ref(), PAGE).await?;
            let Some(last) = page.last().map(|row| row.key.clone()) else { return Ok(()) };
            let tagged = tagged_photos(&page, &mut run.report);
            processed += tagged.values().map(|persons| persons.len() as u64).sum::<u64>();
            self.adopt_page(tagged, run).await?;
            progress(AdoptionProgress::Taggings(processed));
            after = Some(last);
        }
    }

    async fn adopt_page(
        &self,
        tagged: BTreeMap<ImageId, Vec<PersonId>>,
        run: &mut AdoptionRun<'_>,
    ) -> Result<(), Failure> {
        let images: Vec<ImageId> = tagged.keys().cloned().collect();
        let states = self.store.photos(&images).await?;
        let merges = run.state.people.merges().clone();
        let mut written = Vec::new();
        for ((image, persons), state) in tagged.into_iter().zip(states) {
            let recorded = state.map(|state| merges.all_current(&state.persons)).unwrap_or_default();
            if !persons.iter().all(|person| recorded.contains(person)) && self.adopt_photo(&image, run).await? {
                written.push(image);
            }
        }
        if run.state.is_dry_run || written.is_empty() {
            return Ok(());
        }
        // A merge recorded meanwhile did not update these photos, so their rows are written again here.
        run.state.catch_up(self.store.as_ref()).await?;
        if *run.state.people.merges() != merges {
            for image in &written {
                self.photo_rows().rewrite(image, run.state.people.merges()).await?;
            }
        }
        Ok(())
    }

    /// Adopts the tags of one photo. Returns whether anything was written.
    async fn adopt_photo(&self, image: &ImageId, run: &mut AdoptionRun<'_>) -> Result<bool, Failure> {
        let (ports, config) = (&self.pipeline.ports, &self.pipeline.config);
        let mut backoff = conflict_backoff();
        loop {
            let state = self.store.photo(image).await?;
            let (rows, when) = (self.rows_of(image).await?, ports.clock.now());
            let tagging_key = config.projection.tagging_key;
            let found = TaggedPhotoRows { image, rows: &rows, state: state.as_ref(), tagging_key };
            let (event, issues) = found.adoption_event(&run.state.people, when);
            run.report.add_issues(issues);
            let Some(event) = event else { return Ok(false) };
            let taggings = event.taggings.len() as u64;
            if !run.state.is_dry_run {
                let mutations = self.rows_after(&event, state.as_ref(), when, &run.state).await?;
                let before = rows.into_iter().map(|row| (row.key, row.attributes)).collect();
                let commit = Commit {
                    actor: config.actor.clone(),
                    mutations: without_unchanged(mutations, &before),
                    events: vec![Event::PhotoAdopted(event)],
                    ..Commit::without_events(when, Some(PhotoGuard { image: image.clone(), before: state }))
                };
                match self.store.commit(&commit).await {
                    Ok(recorded) => Notifier(&self.pipeline).publish_once(&recorded).await,
                    Err(CommitError::PhotoMoved) => {
                        wait_after_conflict(&mut backoff, &format!("photo {image}")).await?;
                        continue;
                    }
                    // The platform has deleted the photo.
                    Err(CommitError::RowMissing(_)) => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
            }
            run.report.photos += 1;
            run.report.taggings += taggings;
            return Ok(!run.state.is_dry_run);
        }
    }

    /// Returns the rows of the photo after the adoption: those of the current decision, if there is one, with the adopted tags.
    async fn rows_after(
        &self,
        event: &PhotoAdopted,
        state: Option<&PhotoState>,
        when: Timestamp,
        log: &AdoptionState,
    ) -> Result<Vec<Mutation>, Failure> {
        let current = self.photo_rows().current_event(&event.image_id).await?;
        let context = ProjectionContext {
            before: current.as_ref().map(|(_, state)| state).or(state),
            projected: current.as_ref().map(|(projected, _)| projected),
            ..ProjectionContext::new(when, log.people.merges())
        };
        Ok(self.pipeline.config.projection.project(&Event::PhotoAdopted(event.clone()), &context))
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

    fn photo_rows(&self) -> PhotoRows<'_> {
        PhotoRows { store: self.store.as_ref(), projection: self.pipeline.config.projection }
    }
}

/// Returns the photos of the TAGGING rows in a page, with the tagged persons.
fn tagged_photos(page: &[Item], report: &mut AdoptionReport) -> BTreeMap<ImageId, Vec<PersonId>> {
    let mut tagged: BTreeMap<ImageId, Vec<PersonId>> = BTreeMap::new();
    for row in page.iter().filter(|row| row.key.sk.starts_with("PERSON#")) {
        match (row.key.pk.parse::<ImageId>(), tagged_person(row)) {
            (Ok(image), Ok(person)) => tagged.entry(image).or_default().push(person),
            (Err(_), _) => report.add_issues([AdoptionIssue::NotAPhoto(row.key.to_string())]),
            (_, Err(issue)) => report.add_issues([issue]),
        }
    }
    tagged
}

/// Returns the changes without what the rows already contain.
fn without_unchanged(changes: Vec<Mutation>, rows: &HashMap<Key, Attributes>) -> Vec<Mutation> {
    changes
        .into_iter()
        .filter_map(|change| {
            let row = rows.get(change.key());
            change.without_unchanged(row)
        })
        .collect()
}
