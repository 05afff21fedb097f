//! A user's picture of themselves: who is the user?

use std::sync::Arc;

use sparks_domain::{
    Event, FaceId, ImageId, Key, Outcome::Processed, PersonId, ProfileProcessed, Recorded, SeenFace, Source as Object,
    Verdict,
};

use super::{
    Outcome,
    analyze::{About, Case},
    effects::{Seen, Source},
    outcome::Unfit,
};
use crate::{
    Cause, Commit, CommitError, DarkroomError, Failure, Looked, ObjectsError, PhotoGuard, Pipeline, ProfileRef, Ticket,
};

impl Pipeline {
    /// The largest face of the picture is the user. Nobody is tagged by it, but somebody may become known by it.
    pub async fn profile(&self, profile: ProfileRef, turn: &Ticket) -> Result<Outcome, Failure> {
        let ProfileRef { email, key, version, .. } = profile;
        if self.ports.store.get(&Key::user(&email)).await?.is_none() {
            return Err(Failure::new(Cause::NoUserRow, format!("there is no USER row for {email}")));
        }
        let image = ImageId::of_profile(&email);
        let state = self.ports.store.photo(&image).await?;
        if state.as_ref().is_some_and(|s| s.outcome == Processed && Some(&s.version) == version.as_ref()) {
            self.repeat_profile(&image).await?;
            return Ok(Outcome::AlreadyCommitted);
        }
        let object = match self.ports.objects.get(&key, self.rules.max_bytes).await {
            // Only the picture they have now says who they are.
            Err(ObjectsError::NotFound(_)) if state.is_some() => {
                return Ok(Outcome::Ignored(format!("{key} is not there any more")));
            }
            object => object?,
        };
        if state.as_ref().is_some_and(|s| s.outcome == Processed && s.version == object.version) {
            self.repeat_profile(&image).await?;
            return Ok(Outcome::AlreadyCommitted);
        }
        let mime_type = self.ports.darkroom.describe(&object.bytes).mime_type.map(str::to_owned);
        // Sequencers order versions of one key; each picture of a user has a key of its own.
        let (bytes, version) = (object.bytes.len() as u64, object.version);
        let source = Object { key, version, sequencer: None, bytes, mime_type, file_name: None };
        let pixels = match self.decode(move |darkroom| darkroom.open(&object.bytes)).await {
            Ok(pixels) => Arc::new(pixels),
            Err(DarkroomError::Rejected(reason)) => {
                return self.reject(Unfit { image, uploader: email, source, state, reason }).await;
            }
            Err(unavailable) => return Err(unavailable.into()),
        };
        let faces = self.ports.analyzer.analyze(Arc::clone(&pixels)).await?;
        let faces = largest(faces).into_iter().collect();
        let analyzer = self.ports.analyzer.name().to_owned();
        let looked = Looked::new(faces, pixels);
        let case = Case { image, state, about: About::Profile { email, source }, analyzer, looked };
        let outcome = self.commit(&case, turn).await?;
        match &outcome {
            Outcome::Committed(committed) => {
                let profile = committed.recorded().iter().find_map(|recorded| match &recorded.event {
                    Event::ProfileProcessed(profile) => Some((profile, recorded)),
                    _ => None,
                });
                let Some((profile, recorded)) = profile else { return Ok(outcome) };
                self.profile_effects(profile, recorded, Source::Pixels(Arc::clone(&case.looked.pixels)), true).await?;
                self.announce(committed.recorded(), None).await?;
            }
            Outcome::AlreadyCommitted => self.repeat_profile(&case.image).await?,
            _ => {}
        }
        Ok(outcome)
    }

    async fn repeat_profile(&self, image: &ImageId) -> Result<(), Failure> {
        let Some(state) = self.ports.store.photo(image).await? else { return Ok(()) };
        let recorded = self.ports.store.event(image, state.seq).await?;
        let Some(recorded) = recorded else { return Ok(()) };
        let Event::ProfileProcessed(profile) = &recorded.event else { return Ok(()) };
        self.profile_effects(profile, &recorded, Source::Picture(&profile.source.key), false).await?;
        self.announce(std::slice::from_ref(&recorded), None).await
    }

    /// Says who the user is by now, shows whoever is new, and forgets whom they showed before if nothing else does.
    async fn profile_effects(
        &self,
        profile: &ProfileProcessed,
        recorded: &Recorded,
        source: Source<'_>,
        fresh: bool,
    ) -> Result<(), Failure> {
        self.ports.index.refresh().await?;
        let Some((face, person)) = profile.face.as_ref().zip(profile.person()) else { return Ok(()) };
        let merges = self.ports.index.merges();
        if !fresh || merges.is_absorbed(person) {
            let before = self.ports.store.photo(&profile.image_id).await?;
            let guard = PhotoGuard { image: profile.image_id.clone(), before };
            let mutations = self.rules.projection.profile(profile, recorded.when, &merges).into_iter().collect();
            let commit = Commit { mutations, ..Commit::without_events(recorded.when, Some(guard)) };
            match self.ports.store.commit(&commit).await {
                Ok(_) | Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let seen = Seen {
            person,
            face: FaceId { image: profile.image_id.clone(), n: profile.first_face },
            bounds: face.bounds,
            others: Vec::new(),
            template: face.template,
            founds: matches!(face.verdict, Verdict::Founded(_)),
        };
        self.show(&[seen], source, fresh).await?;
        match self.shown_before(profile).await? {
            Some(before) if merges.now(before) != merges.now(person) => self.leave(&profile.image_id, &[before]).await,
            _ => Ok(()),
        }
    }

    /// Whom the user's pictures before this one showed last.
    async fn shown_before(&self, profile: &ProfileProcessed) -> Result<Option<PersonId>, Failure> {
        let mut follows = profile.follows;
        while let Some(seq) = follows {
            let before = self.ports.store.event(&profile.image_id, seq).await?;
            follows = match before.map(|recorded| recorded.event) {
                Some(Event::ProfileProcessed(before)) if before.person().is_some() => return Ok(before.person()),
                Some(Event::ProfileProcessed(before)) => before.follows,
                Some(Event::PhotoRejected(before)) => before.follows,
                _ => None,
            };
        }
        Ok(None)
    }
}

/// The face that takes the most room, the first of equals.
fn largest(faces: Vec<SeenFace>) -> Option<SeenFace> {
    let room = |face: &SeenFace| face.bounds.width * face.bounds.height;
    faces.into_iter().reduce(|best, face| if room(&face) > room(&best) { face } else { best })
}
