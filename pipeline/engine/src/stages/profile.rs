//! Profile pictures: the largest face identifies the user.

use std::{collections::BTreeSet, sync::Arc};

use sparks_domain::{
    DetectedFace, Email, Event, FaceId, ImageId, Key, PersonId, PhotoState, PhotoStatus, ProfileProcessed,
    ProjectionContext, RecordedEvent, SourceObject, Timestamp, Verdict,
};

use super::{
    Outcome,
    analyze::{AnalyzedPhoto, Subject},
    commit::{Committer, conflict_backoff, wait_after_conflict},
    earlier_versions::{EarlierVersions, MAX_VERSIONS},
    effects::{Attempt, Effects, IdentifiedFace},
    images::{Images, PixelSource, StoredImage},
    notify::Notifier,
    outcome::RejectedPhoto,
    process::PhotoProcessor,
};
use crate::{
    ArrivalSlot, Cause, Commit, CommitError, Failure, ImageError, ObjectsError, PhotoGuard, Pipeline, ProbeSet,
    ProfileRef, RemovedFaces,
};

/// Processes profile pictures.
pub(crate) struct ProfileProcessor<'a>(pub &'a Pipeline);

impl ProfileProcessor<'_> {
    /// Links the user to the person that the largest face is identified as. It tags no photo, and may be a template of the person.
    pub async fn process(&self, profile: ProfileRef, slot: &ArrivalSlot) -> Result<Outcome, Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let ProfileRef { email, key, version, .. } = profile;
        if ports.store.get(&Key::user(&email)).await?.is_none() {
            return Err(Failure::new(Cause::NoUserRow, format!("there is no USER row for {email}")));
        }
        let image = ImageId::of_profile(&email);
        let state = ports.store.photo(&image).await?;
        let is_committed = |version: Option<&String>| {
            state.as_ref().is_some_and(|s| s.status == PhotoStatus::Processed && Some(&s.version) == version)
        };
        if is_committed(version.as_ref()) {
            self.repeat_effects(&image, slot.sent).await?;
            return Ok(Outcome::AlreadyCommitted);
        }
        let object = match ports.objects.get(&key, config.max_bytes).await {
            // Only the current picture identifies the user.
            Err(ObjectsError::NotFound(_)) if state.is_some() => {
                return Ok(Outcome::Ignored(format!("{key} does not exist any more")));
            }
            object => object?,
        };
        if is_committed(Some(&object.version)) {
            self.repeat_effects(&image, slot.sent).await?;
            return Ok(Outcome::AlreadyCommitted);
        }
        if self.is_superseded(&image, state.as_ref(), &key).await? {
            self.repeat_effects(&image, slot.sent).await?;
            return Ok(Outcome::Outdated);
        }
        let mime_type = ports.image_processor.inspect(&object.bytes).mime_type.map(str::to_owned);
        // Sequencers order the versions of one key, and each profile picture has a key of its own.
        let (bytes, version) = (object.bytes.len() as u64, object.version);
        let source = SourceObject { key: key.clone(), version, sequencer: None, bytes, mime_type, file_name: None };
        let pixels = match Images(self.0).run(move |processor| processor.decode(&object.bytes)).await {
            Ok(pixels) => Arc::new(pixels),
            Err(ImageError::Rejected(reason)) => {
                let rejected = RejectedPhoto { image: image.clone(), uploader: email, source, state, reason };
                let outcome = Committer(self.0).reject(rejected).await?;
                self.repeat_effects(&image, slot.sent).await?;
                return Ok(outcome);
            }
            Err(unavailable) => return Err(unavailable.into()),
        };
        let faces = ports.analyzer.analyze(Arc::clone(&pixels)).await?;
        let probes = ProbeSet::new(largest(faces).into_iter().collect(), pixels);
        let analyzer = ports.analyzer.name().to_owned();
        let subject = Subject::Profile { email, source };
        let mut analyzed = AnalyzedPhoto { image, state, subject, analyzer, probes };
        let mut backoff = conflict_backoff();
        let outcome = loop {
            if let Some(outcome) = PhotoProcessor(self.0).search_decide_commit(&analyzed, slot).await? {
                break outcome;
            }
            // Another picture of the user was committed. Unless that is newer, this one is decided again on that state.
            self.0.count_conflict();
            wait_after_conflict(&mut backoff, &format!("the profile picture {}", analyzed.image)).await?;
            analyzed.state = ports.store.photo(&analyzed.image).await?;
            if self.is_superseded(&analyzed.image, analyzed.state.as_ref(), &key).await? {
                break Outcome::Outdated;
            }
        };
        match &outcome {
            Outcome::Committed(receipt) => {
                let profile = receipt.events().iter().find_map(|recorded| match &recorded.event {
                    Event::ProfileProcessed(profile) => Some((profile, recorded)),
                    _ => None,
                });
                let Some((profile, recorded)) = profile else { return Ok(outcome) };
                let source = PixelSource::Pixels(Arc::clone(&analyzed.probes.pixels));
                self.apply_effects(profile, recorded, source, Attempt::First).await?;
                Notifier(self.0).publish(receipt.events(), None).await?;
            }
            Outcome::AlreadyCommitted => self.repeat_effects(&analyzed.image, slot.sent).await?,
            _ => {}
        }
        Ok(outcome)
    }

    /// Returns whether a picture that was uploaded later than this one is decided already: messages arrive in any order and more than
    /// once. Each picture has a key of its own, so only the times of the objects tell.
    async fn is_superseded(&self, image: &ImageId, state: Option<&PhotoState>, key: &str) -> Result<bool, Failure> {
        let Pipeline { ports, .. } = self.0;
        let Some(state) = state else { return Ok(false) };
        let decided = match ports.store.event(image, state.seq).await?.map(|recorded| recorded.event) {
            Some(Event::ProfileProcessed(decided)) => decided.source.key,
            Some(Event::PhotoRejected(decided)) => decided.source.key,
            _ => return Ok(false),
        };
        if decided == key {
            return Ok(false);
        }
        let (decided, this) = (ports.objects.head(&decided).await?, ports.objects.head(key).await?);
        Ok(decided.zip(this).is_some_and(|(decided, this)| decided.modified > this.modified))
    }

    /// Repeats the effects of the last picture that identifies the user, and publishes the last event, which may be about a later one.
    async fn repeat_effects(&self, image: &ImageId, sent: Timestamp) -> Result<(), Failure> {
        let store = &self.0.ports.store;
        let Some(state) = store.photo(image).await? else { return Ok(()) };
        for seq in BTreeSet::from([state.projected_seq.unwrap_or(state.seq), state.seq]) {
            let Some(recorded) = store.event(image, seq).await? else { continue };
            if let Event::ProfileProcessed(profile) = &recorded.event {
                let attempt = Attempt::again(sent, recorded.when);
                self.apply_effects(profile, &recorded, profile_image(profile), attempt).await?;
            }
            Notifier(self.0).publish(std::slice::from_ref(&recorded), None).await?;
        }
        Ok(())
    }

    /// Updates the USER row after merges, enrolls the person, and forgets the person of the previous picture where no photo shows
    /// them.
    async fn apply_effects(
        &self,
        profile: &ProfileProcessed,
        recorded: &RecordedEvent,
        source: PixelSource,
        attempt: Attempt,
    ) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        ports.index.refresh().await?;
        let Some((face, person)) = profile.face.as_ref().zip(profile.person()) else { return Ok(()) };
        if (attempt != Attempt::First || ports.index.merges().aliases(person).len() > 1)
            && !self.write_user(recorded).await?
        {
            return Ok(());
        }
        let identified = IdentifiedFace {
            person,
            face: FaceId { image: profile.image_id.clone(), n: profile.first_face },
            bounds: face.bounds,
            others: Vec::new(),
            template: face.template,
            is_new_person: matches!(face.verdict, Verdict::NewPerson(_)),
        };
        if Effects(self.0).enroll(&[identified], source, attempt).await? {
            let state = ports.store.photo(&profile.image_id).await?;
            if !is_projected(state.as_ref(), recorded) {
                // A later picture did not see this template and this crop.
                let removed = RemovedFaces::before(&profile.image_id, u32::from(profile.first_face) + 1);
                return EarlierVersions(self.0).release(removed, &[person]).await;
            }
        }
        let earlier = self.earlier_persons(profile).await?;
        if earlier.is_empty() {
            return Ok(());
        }
        let removed = RemovedFaces::before(&profile.image_id, profile.first_face.into());
        EarlierVersions(self.0).release(removed, &earlier).await
    }

    /// Writes the row of this user again, from their profile picture, if they have one.
    pub async fn rewrite_user(&self, email: &Email) -> Result<(), Failure> {
        let (store, image) = (&self.0.ports.store, ImageId::of_profile(email));
        let Some(state) = store.photo(&image).await? else { return Ok(()) };
        let Some(seq) = state.projected_seq else { return Ok(()) };
        if let Some(recorded) = store.event(&image, seq).await? {
            self.write_user(&recorded).await?;
        }
        Ok(())
    }

    /// Writes the USER row that this event about a profile picture implies, again until no merge or unmerge was recorded meanwhile: one
    /// that was recorded before did not see the row. Returns whether the event is still the one behind the row.
    async fn write_user(&self, recorded: &RecordedEvent) -> Result<bool, Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let Some(image) = recorded.event.image() else { return Ok(false) };
        loop {
            let merges = ports.index.merges();
            let before = ports.store.photo(image).await?;
            if !is_projected(before.as_ref(), recorded) {
                return Ok(false);
            }
            let guard = PhotoGuard { image: image.clone(), before };
            let context = ProjectionContext::new(recorded.when, &merges);
            let mutations = config.projection.project(&recorded.event, &context);
            let commit = Commit { mutations, ..Commit::without_events(recorded.when, Some(guard)) };
            match ports.store.commit(&commit).await {
                Ok(_) | Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => {}
                Err(error) => return Err(error.into()),
            }
            ports.index.refresh().await?;
            if ports.index.merges() == merges {
                return Ok(true);
            }
        }
    }

    /// Returns the persons that the user's earlier pictures were identified as: a failure may have prevented the effects of any of them.
    async fn earlier_persons(&self, profile: &ProfileProcessed) -> Result<Vec<PersonId>, Failure> {
        let (mut persons, mut follows) = (BTreeSet::new(), profile.follows);
        for _ in 0..MAX_VERSIONS {
            let Some(seq) = follows else { break };
            let before = self.0.ports.store.event(&profile.image_id, seq).await?;
            follows = match before.map(|recorded| recorded.event) {
                Some(Event::ProfileProcessed(before)) => {
                    persons.extend(before.person());
                    before.follows
                }
                Some(Event::PhotoRejected(before)) => before.follows,
                _ => None,
            };
        }
        Ok(persons.into_iter().collect())
    }
}

fn profile_image(profile: &ProfileProcessed) -> PixelSource {
    PixelSource::Object(StoredImage { key: profile.source.key.clone(), sha256: None })
}

/// Returns whether the user's row is projected from this event: a later picture may have been decided since.
fn is_projected(state: Option<&PhotoState>, recorded: &RecordedEvent) -> bool {
    state.is_some_and(|state| state.projected_seq == Some(recorded.seq))
}

/// Returns the face with the largest area, the first of equals.
fn largest(faces: Vec<DetectedFace>) -> Option<DetectedFace> {
    let area = |face: &DetectedFace| face.bounds.width * face.bounds.height;
    faces.into_iter().reduce(|best, face| if area(&face) > area(&best) { face } else { best })
}
