//! Persons that photos come and go from.

use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

use sparks_domain::{
    Event, FaceBox, FaceId, Gallery, ImageId, Key, Outcome::Processed, PersonId, PersonPictured, PersonReinstated,
    PersonsForgotten, PhotoState, Projection, Seq, Version,
};

use super::{
    announce::log,
    commit::{conflict_pauses, pause},
    effects::{Seen, Source, seen},
};
use crate::{
    Commit, CommitError, Erasure, Failure, Filter, Lesson, Pipeline, Pixels, Probe, Query, Standing, shown::Shown,
    users::users_who_are,
};

/// Photos that are looked through for a face to show somebody by.
const LOOKED_THROUGH: usize = 32;

/// A face to show somebody by.
struct Picture {
    face: FaceId,
    bounds: FaceBox,
    others: Vec<FaceBox>,
    large: String,
    size: f32,
}

impl Picture {
    /// What tells a service who this is.
    fn lesson(&self, person: PersonId, pixels: Arc<Pixels>) -> Lesson {
        let probe = Probe::unsigned(pixels, self.bounds, self.others.clone());
        Lesson { person, face: self.face.clone(), is_first: true, probe }
    }
}

impl Pipeline {
    /// Sees to the persons of a photo that is gone: whoever is in no other photo is forgotten, and whoever was shown by a
    /// face in it is shown by another.
    pub(crate) async fn leave(&self, image: &ImageId, persons: &[PersonId]) -> Result<(), Failure> {
        if persons.is_empty() {
            return Ok(());
        }
        self.ports.index.refresh().await?;
        for person in self.ports.index.merges().all_now(persons) {
            match self.ports.index.standing(person) {
                Standing::Known(known) => {
                    let is_forgotten = self.forget(person).await?;
                    if !is_forgotten && (known.face.image == *image || !self.to_know_by(person, None).await?.is_empty())
                    {
                        self.picture_anew(person).await?;
                    }
                }
                Standing::Forgotten(_) => self.after_forgetting(person).await?,
                Standing::Unknown => {}
            }
        }
        Ok(())
    }

    /// Whether the person is in no photo, and no user is they.
    async fn is_unseen(&self, person: PersonId) -> Result<bool, Failure> {
        for guise in self.ports.index.merges().members(person) {
            if !self.taggings(guise, 1).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(users_who_are(self.ports.store.as_ref(), person).await?.is_empty() && !self.is_kept(person).await?)
    }

    /// Whether a photo that is there shows the person, by what is kept of their faces: an index of taggings may lag behind.
    async fn is_kept(&self, person: PersonId) -> Result<bool, Failure> {
        let merges = self.ports.index.merges();
        let members: Vec<_> = merges.members(person).into_iter().collect();
        let faces = self.ports.store.faces_of(&members).await?;
        let images: BTreeSet<ImageId> = faces.into_iter().map(|decided| decided.kept.face.image).collect();
        for image in &images {
            let Some(state) = self.ports.store.photo(image).await? else { continue };
            let shows = state.outcome == Processed && merges.all_now(&state.persons).contains(&person);
            if shows && (self.image_row(image).await?.is_some() || self.is_users(image, &state, person).await?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether this is a user's picture of themselves, and their row says that they are this person: an index of users may lag
    /// behind, too.
    async fn is_users(&self, picture: &ImageId, state: &PhotoState, person: PersonId) -> Result<bool, Failure> {
        let Some(seq) = state.shows else { return Ok(false) };
        let recorded = self.ports.store.event(picture, seq).await?;
        let Some(Event::ProfileProcessed(profile)) = recorded.map(|recorded| recorded.event) else { return Ok(false) };
        let user = self.ports.store.get(&Key::user(&profile.email)).await?;
        Ok(user.is_some_and(|row| row.text("personId") == Some(&person.to_string())))
    }

    /// At most so many photos that are tagged with the person, the last first. The index may still show tags that are gone, so
    /// each is looked for in the table itself.
    async fn taggings(&self, person: PersonId, most: usize) -> Result<Vec<ImageId>, Failure> {
        let filter = Filter::EntityType(format!("TAGGING#{person}"));
        let mut query = Query { filter, after: None, limit: most, backwards: true };
        let mut images = Vec::new();
        loop {
            let page = self.ports.store.query(&query).await?;
            let keys: Vec<Key> = page.items.into_iter().map(|item| item.key).collect();
            let rows = self.ports.store.batch_get(&keys).await?;
            let there: BTreeSet<Key> = rows.into_iter().map(|row| row.key).collect();
            images.extend(keys.iter().filter(|key| there.contains(key)).filter_map(|key| key.pk.parse().ok()));
            match page.last {
                Some(last) if images.len() < most => {
                    query = Query { after: Some(last), limit: LOOKED_THROUGH, ..query };
                }
                _ => {
                    images.truncate(most);
                    return Ok(images);
                }
            }
        }
    }

    /// Removes all that is known of somebody who is in no photo, except that they were. A photo of them that is decided at the
    /// same time brings them back: whoever comes second sees the other. Says whether they are in no photo.
    async fn forget(&self, person: PersonId) -> Result<bool, Failure> {
        // Faces before photos: what a photo brings that is decided from now on is not among them.
        let members: Vec<_> = self.ports.index.merges().members(person).into_iter().collect();
        let faces = self.ports.store.faces_of(&members).await?;
        let faces: Vec<FaceId> = faces.into_iter().map(|decided| decided.kept.face).collect();
        if !self.is_unseen(person).await? {
            return Ok(false);
        }
        self.decide_about(|identity_seq| {
            matches!(self.ports.index.standing(person), Standing::Known(_)).then(|| {
                let persons: Vec<_> = self.ports.index.merges().members(person).into_iter().collect();
                let erased = Erasure { faces: faces.clone(), ..Erasure::default() };
                let event = Event::PersonsForgotten(PersonsForgotten { v: Version, persons, identity_seq });
                Commit { events: vec![event], erased, ..Commit::without_events(self.ports.clock.now(), None) }
            })
        })
        .await?;
        self.after_forgetting(person).await?;
        Ok(true)
    }

    /// Removes the crops of somebody who was forgotten, unless a photo of them came meanwhile: then they are known again.
    async fn after_forgetting(&self, person: PersonId) -> Result<(), Failure> {
        self.remove_crops(person).await?;
        self.ports.index.forget(&[person]).await?;
        if self.is_unseen(person).await? {
            return Ok(());
        }
        let Some(picture) = self.picture_of(person).await? else { return Ok(()) };
        self.reinstate(person, picture.face.clone()).await?;
        // Whoever else brought them back may have stored a crop before it was removed, and told a service before that forgot.
        self.store_picture(person, &picture).await?;
        let members: Vec<_> = self.ports.index.merges().members(person).into_iter().collect();
        let kept = self.ports.store.faces_of(&members).await?.into_iter().map(|decided| decided.kept);
        let known_by: Vec<FaceId> = kept.filter(|kept| kept.template).map(|kept| kept.face).collect();
        self.ports.index.promote(&known_by).await?;
        Ok(())
    }

    /// Kept faces to know the person by, the last first, where all they were known by is gone, or goes with this photo.
    pub(super) async fn to_know_by(&self, person: PersonId, gone: Option<&ImageId>) -> Result<Vec<FaceId>, Failure> {
        let members: Vec<_> = self.ports.index.merges().members(person).into_iter().collect();
        let faces = self.ports.store.faces_of(&members).await?;
        let kept = faces.into_iter().map(|decided| decided.kept).filter(|kept| Some(&kept.face.image) != gone);
        let kept: Vec<_> = kept.collect();
        if kept.iter().any(|kept| kept.template) {
            return Ok(Vec::new());
        }
        Ok(kept.into_iter().take(Gallery::TEMPLATES).map(|kept| kept.face).collect())
    }

    /// Whoever had been forgotten is known again, because a photo of them is there. Says whether that is news.
    pub(super) async fn reinstate(&self, person: PersonId, face: FaceId) -> Result<bool, Failure> {
        let promoted = self.to_know_by(person, None).await?;
        let is_news = self
            .decide_about(|identity_seq| {
                let Standing::Forgotten(known) = self.ports.index.standing(person) else { return None };
                let event = PersonReinstated { v: Version, person, face: face.clone(), identity_seq };
                Some(Commit {
                    events: vec![Event::PersonReinstated(event)],
                    mutations: vec![self.rules.projection.reinstated(person, &known)],
                    promoted: promoted.clone(),
                    ..Commit::without_events(self.ports.clock.now(), None)
                })
            })
            .await?;
        self.ports.index.promote(&promoted).await?;
        Ok(is_news)
    }

    /// Shows somebody by a face of another photo, and knows them by what is left. The crop comes first: a repeat makes it
    /// again.
    async fn picture_anew(&self, person: PersonId) -> Result<(), Failure> {
        let Some(picture) = self.picture_of(person).await? else { return Ok(()) };
        self.store_picture(person, &picture).await?;
        let promoted = self.to_know_by(person, None).await?;
        let is_shown = self
            .decide_about(|identity_seq| {
                matches!(self.ports.index.standing(person), Standing::Known(_)).then(|| {
                    let event = PersonPictured { v: Version, person, face: picture.face.clone(), identity_seq };
                    let (events, promoted) = (vec![Event::PersonPictured(event)], promoted.clone());
                    Commit { events, promoted, ..Commit::without_events(self.ports.clock.now(), None) }
                })
            })
            .await?;
        self.ports.index.promote(&promoted).await?;
        match self.ports.index.standing(person) {
            // That photo went, too, before the crop was there to be removed.
            Standing::Forgotten(_) if !is_shown => self.after_forgetting(person).await,
            _ => Ok(()),
        }
    }

    async fn store_picture(&self, person: PersonId, picture: &Picture) -> Result<(), Failure> {
        let pixels = self.pixels(&mut Source::Picture(&picture.large)).await?;
        self.ports.index.relearn(&picture.lesson(person, Arc::clone(&pixels))).await?;
        self.store_crop(person, picture.bounds, pixels).await
    }

    /// A face to show the person by: in a photo that is there, or where there is none, in their picture of themselves.
    async fn picture_of(&self, person: PersonId) -> Result<Option<Picture>, Failure> {
        match self.in_photos(person).await? {
            None => self.in_profiles(person).await,
            found => Ok(found),
        }
    }

    async fn in_profiles(&self, person: PersonId) -> Result<Option<Picture>, Failure> {
        let merges = self.ports.index.merges();
        for user in users_who_are(self.ports.store.as_ref(), person).await? {
            let picture = ImageId::of_profile(&user);
            let Some(state) = self.ports.store.photo(&picture).await? else { continue };
            let Some(seq) = state.shows else { continue };
            let recorded = self.ports.store.event(&picture, seq).await?;
            let Some(Event::ProfileProcessed(profile)) = recorded.map(|recorded| recorded.event) else { continue };
            let Some((seen, who)) = profile.face.as_ref().zip(profile.person()) else { continue };
            if merges.now(who) == person && self.ports.objects.head(&profile.source.key).await?.is_some() {
                let face = FaceId { image: profile.image_id.clone(), n: profile.first_face };
                let (bounds, size) = (seen.bounds, seen.quality.size);
                let (large, others) = (profile.source.key, Vec::new());
                return Ok(Some(Picture { face, bounds, others, large, size }));
            }
        }
        Ok(None)
    }

    /// The largest face of the person in the photos that are there.
    async fn in_photos(&self, person: PersonId) -> Result<Option<Picture>, Failure> {
        let merges = self.ports.index.merges();
        let shown = Shown { store: self.ports.store.as_ref(), projection: self.rules.projection };
        let mut best: Option<Picture> = None;
        for image in self.taggings(person, LOOKED_THROUGH).await? {
            let Some(photo) = shown.photo(&image).await? else { continue };
            for (face, seen) in
                photo.event.faces.iter().filter(|f| f.verdict.person().is_some()).zip(seen(&photo.event))
            {
                let size = face.quality.size;
                let larger = best.as_ref().is_none_or(|best| best.size.total_cmp(&size) == Ordering::Less);
                if merges.now(seen.person) == person && larger {
                    let large = photo.event.variants.large.key.clone();
                    let Seen { face, bounds, others, .. } = seen;
                    best = Some(Picture { face, bounds, others, large, size });
                }
            }
        }
        Ok(best)
    }

    async fn remove_crops(&self, person: PersonId) -> Result<(), Failure> {
        self.ports.objects.delete(&Projection::crop_key(person)).await?;
        for member in self.ports.index.merges().members(person) {
            self.ports.objects.delete(&format!("merged/{member}.jpg")).await?;
        }
        Ok(())
    }

    /// Commits what is to be said about persons, on what is known of them by then. Says whether there was anything to say.
    async fn decide_about(&self, draft: impl Fn(Seq) -> Option<Commit>) -> Result<bool, Failure> {
        let mut pauses = conflict_pauses();
        loop {
            self.ports.index.refresh().await?;
            let identity = self.ports.index.identity();
            let Some(mut commit) = draft(identity.seq) else { return Ok(false) };
            let merges = self.ports.index.merges();
            let projected =
                commit.events.iter().flat_map(|event| self.rules.projection.project(None, event, commit.when, &merges));
            let projected: Vec<_> = projected.collect();
            commit.mutations.extend(projected);
            commit.actor.clone_from(&self.rules.actor);
            commit.identity = Some(identity);
            match self.ports.store.commit(&commit).await {
                Ok(recorded) => {
                    log(&recorded);
                    self.ports.index.refresh().await?;
                    self.announce(&recorded, None).await?;
                    return Ok(true);
                }
                Err(CommitError::IdentityMoved) => self.count_conflict(),
                Err(error) => return Err(error.into()),
            }
            pause(&mut pauses, "who is known").await?;
        }
    }
}
