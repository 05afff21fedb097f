//! Persons that photos come and go from.

use std::cmp::Ordering;

use sparks_domain::{
    Event, FaceBox, FaceId, ImageId, PersonId, PersonPictured, PersonReinstated, PersonsForgotten, Projection, Version,
};

use super::{
    commit::conflict_pauses,
    effects::{Source, seen},
};
use crate::{
    Cause, Commit, CommitError, Erasure, Failure, Filter, Pipeline, Query, Standing, shown::Shown, users::users_who_are,
};

/// Photos that are looked through for a face to show somebody by.
const LOOKED_THROUGH: usize = 32;

/// A face to show somebody by.
struct Picture {
    face: FaceId,
    bounds: FaceBox,
    large: String,
    size: f32,
}

impl Pipeline {
    /// Sees to the persons of a photo that is gone: whoever is in no other photo is forgotten, and whoever was shown by a
    /// face in it is shown by another.
    pub(super) async fn leave(&self, image: &ImageId, persons: &[PersonId]) -> Result<(), Failure> {
        if persons.is_empty() {
            return Ok(());
        }
        self.ports.index.refresh().await?;
        for person in self.ports.index.merges().all_now(persons) {
            match self.ports.index.standing(person) {
                Standing::Known(_) if self.is_unseen(person).await? => self.forget(person).await?,
                Standing::Known(known) if known.face.image == *image => self.picture_anew(person).await?,
                Standing::Forgotten(_) => self.remove_crops(person).await?,
                _ => {}
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
        Ok(users_who_are(self.ports.store.as_ref(), person).await?.is_empty())
    }

    async fn taggings(&self, person: PersonId, most: usize) -> Result<Vec<ImageId>, Failure> {
        let filter = Filter::EntityType(format!("TAGGING#{person}"));
        let page = self.ports.store.query(&Query { filter, after: None, limit: most, backwards: true }).await?;
        Ok(page.items.iter().filter_map(|item| item.key.pk.parse().ok()).collect())
    }

    /// Removes all that is known of somebody, except that they were. A photo of them that is decided at the same time brings
    /// them back: whoever comes second sees the other.
    async fn forget(&self, person: PersonId) -> Result<(), Failure> {
        let forgotten = self
            .decide_about(|identity_seq| {
                matches!(self.ports.index.standing(person), Standing::Known(_)).then(|| {
                    let persons: Vec<_> = self.ports.index.merges().members(person).into_iter().collect();
                    let erased = Erasure { persons: persons.clone(), ..Erasure::default() };
                    let event = Event::PersonsForgotten(PersonsForgotten { v: Version, persons, identity_seq });
                    Commit { events: vec![event], erased, ..Commit::without_events(self.ports.clock.now(), None) }
                })
            })
            .await?;
        if !forgotten {
            return Ok(());
        }
        self.remove_crops(person).await?;
        if !self.is_unseen(person).await?
            && let Some(picture) = self.picture_of(person).await?
            && self.reinstate(person, picture.face.clone()).await?
        {
            self.store_picture(person, &picture).await?;
        }
        Ok(())
    }

    /// Whoever had been forgotten is known again, because a photo of them is there. Says whether that is news.
    pub(super) async fn reinstate(&self, person: PersonId, face: FaceId) -> Result<bool, Failure> {
        self.decide_about(|identity_seq| {
            let Standing::Forgotten(known) = self.ports.index.standing(person) else { return None };
            let event = PersonReinstated { v: Version, person, face: face.clone(), identity_seq };
            Some(Commit {
                events: vec![Event::PersonReinstated(event)],
                mutations: vec![self.rules.projection.reinstated(person, &known)],
                ..Commit::without_events(self.ports.clock.now(), None)
            })
        })
        .await
    }

    /// Shows somebody by a face of another photo. The crop comes first: a repeat makes it again.
    async fn picture_anew(&self, person: PersonId) -> Result<(), Failure> {
        let Some(picture) = self.picture_of(person).await? else { return Ok(()) };
        self.store_picture(person, &picture).await?;
        self.decide_about(|identity_seq| {
            let event = PersonPictured { v: Version, person, face: picture.face.clone(), identity_seq };
            let events = vec![Event::PersonPictured(event)];
            Some(Commit { events, ..Commit::without_events(self.ports.clock.now(), None) })
        })
        .await?;
        Ok(())
    }

    async fn store_picture(&self, person: PersonId, picture: &Picture) -> Result<(), Failure> {
        let pixels = self.pixels(&mut Source::Picture(&picture.large)).await?;
        self.store_crop(person, picture.bounds, pixels).await
    }

    /// The largest face of the person in the photos that are there.
    async fn picture_of(&self, person: PersonId) -> Result<Option<Picture>, Failure> {
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
                    best = Some(Picture { face: seen.face, bounds: seen.bounds, large, size });
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
    async fn decide_about(&self, draft: impl Fn(sparks_domain::Seq) -> Option<Commit>) -> Result<bool, Failure> {
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
                    self.ports.index.refresh().await?;
                    self.announce(&recorded, None).await?;
                    return Ok(true);
                }
                Err(CommitError::IdentityMoved) => self.count_conflict(),
                Err(error) => return Err(error.into()),
            }
            let contended = || Failure::new(Cause::Contended, "persons keep changing");
            tokio::time::sleep(pauses.next().ok_or_else(contended)?).await;
        }
    }
}
