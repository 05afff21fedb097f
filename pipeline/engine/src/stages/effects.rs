//! Stage: what follows a commit. Safe to repeat, and repeated when the message is delivered again: the message is the outbox.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use sparks_domain::{
    Event, FaceBox, FaceId, ImageId, Key, Mutation, PersonId, PhotoProcessed, PhotoStatus, Projection, RecordedEvent,
    Seq, Timestamp, Verdict, object_keys,
};

use super::{
    CommitReceipt, Outcome,
    commit::{conflict_backoff, wait_after_conflict},
    earlier_versions::EarlierVersions,
    images::{Images, PixelSource},
    notify::{Notifier, StoredVariants},
    person_lifecycle::PersonLifecycle,
};
use crate::{
    CommitError, Enrollment, Failure, PersonStatus, Pipeline, Pixels, Probe, RemovedFaces, Restoration,
    photo_rows::PhotoRows,
};

/// Applies the effects of a commit: enrolls faces, stores crops, rewrites rows, publishes notifications.
pub(crate) struct Effects<'a>(pub &'a Pipeline);

/// Why the effects of a commit are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The commit was just made: nothing is enrolled yet.
    First,
    /// They may have been interrupted.
    Resumed,
    /// The message was sent after the commit. An earlier one is delivered again until they are applied.
    Repeated,
}

impl Attempt {
    /// More than clocks differ, and than two messages about one upload are apart.
    const MARGIN_MILLIS: i64 = 5000;

    /// Returns the kind of an attempt for a message that was sent then, about an event that was committed at `committed`.
    pub fn again(sent: Timestamp, committed: Timestamp) -> Self {
        match sent.as_millis() > committed.as_millis() + Self::MARGIN_MILLIS {
            true => Self::Repeated,
            false => Self::Resumed,
        }
    }
}

/// A face that is identified as a person.
pub(super) struct IdentifiedFace {
    pub person: PersonId,
    pub face: FaceId,
    pub bounds: FaceBox,
    pub others: Vec<FaceBox>,
    pub is_new_person: bool,
    pub template: bool,
}

impl IdentifiedFace {
    /// Returns the enrollment of this face at a service.
    pub fn enrollment(&self, is_first: bool, pixels: &Arc<Pixels>) -> Enrollment {
        let probe = Probe::unsigned(Arc::clone(pixels), self.bounds, self.others.clone());
        Enrollment { person: self.person, face: self.face.clone(), is_first, probe }
    }
}

/// Returns the faces of a photo that are identified.
pub(super) fn identified_faces(photo: &PhotoProcessed) -> Vec<IdentifiedFace> {
    let faces = (photo.first_face..).zip(&photo.faces).filter_map(|(n, face)| {
        Some(IdentifiedFace {
            person: face.verdict.person()?,
            face: FaceId { image: photo.image_id.clone(), n },
            bounds: face.bounds,
            others: photo.faces.iter().map(|other| other.bounds).filter(|other| *other != face.bounds).collect(),
            is_new_person: matches!(face.verdict, Verdict::NewPerson(_)),
            template: face.template,
        })
    });
    faces.collect()
}

impl Effects<'_> {
    /// Applies the effects of a commit just made. `has_variants`: another program rendered the variants and has published that.
    pub async fn apply(&self, receipt: &CommitReceipt, pixels: Arc<Pixels>, has_variants: bool) -> Result<(), Failure> {
        let Some((photo, recorded)) = receipt.photo() else { return Ok(()) };
        let index = &self.0.ports.index;
        if !photo.faces.is_empty() {
            // A merge or an erasure that was committed since the decision did not see this photo, so the photo applies it.
            index.refresh().await?;
            self.follow_merges(photo).await?;
            self.enroll_photo(photo, recorded.seq, PixelSource::Pixels(pixels), Attempt::First).await?;
        }
        let variants = (!has_variants).then_some(StoredVariants { photo, when: recorded.when });
        Notifier(self.0).publish(receipt.events(), variants).await
    }

    /// Repeats the effects of an earlier commit, which a crash may have interrupted: reads the event, writes its rows again, restores its
    /// variants, and makes missing crops from `large`. A photo without projected rows has been deleted since.
    /// `sent`: when the message was sent.
    pub async fn repeat(&self, image: &ImageId, has_variants: bool, sent: Timestamp) -> Result<Outcome, Failure> {
        let Some(recorded) = self.repeat_projected(image, has_variants, Some(sent)).await? else {
            return Ok(Outcome::Deleted);
        };
        if let Event::PhotoProcessed(photo) = &recorded.event {
            EarlierVersions(self.0).repeat_effects(image, photo.follows).await?;
        }
        Ok(Outcome::AlreadyCommitted)
    }

    /// Repeats the effects of the event behind the photo's rows, and returns it.
    pub(super) async fn repeat_projected(
        &self,
        image: &ImageId,
        has_variants: bool,
        sent: Option<Timestamp>,
    ) -> Result<Option<RecordedEvent>, Failure> {
        let Some(recorded) = self.rewrite_all_rows(image).await? else { return Ok(None) };
        if let Event::PhotoProcessed(photo) = &recorded.event {
            let mut source = PixelSource::Object((&photo.variants.large).into());
            if !has_variants && let Restoration::Impossible(reason) = self.0.variants().restore(photo).await? {
                tracing::warn!(image = %photo.image_id, reason, "variants differ from the event log and are not restored");
                let state = self.0.ports.store.photo(image).await?;
                if state.is_some_and(|state| state.seq != recorded.seq) {
                    source = PixelSource::Lost;
                }
            }
            let attempt = sent.map_or(Attempt::Resumed, |sent| Attempt::again(sent, recorded.when));
            self.enroll_photo(photo, recorded.seq, source, attempt).await?;
            EarlierVersions(self.0).release_persons(photo).await?;
            let variants = (!has_variants).then_some(StoredVariants { photo, when: recorded.when });
            Notifier(self.0).publish(std::slice::from_ref(&recorded), variants).await?;
        }
        Ok(Some(recorded))
    }

    /// Enrolls the persons of a photo. Where the photo was deleted or replaced by a new version meanwhile, that did not see these
    /// templates and crops, so they are removed here.
    async fn enroll_photo(
        &self,
        photo: &PhotoProcessed,
        seq: Seq,
        source: PixelSource,
        attempt: Attempt,
    ) -> Result<(), Failure> {
        match self.enroll(&identified_faces(photo), source, attempt).await {
            Ok(false) => Ok(()),
            Ok(true) => self.undo_late_enrollment(photo, seq).await,
            Err(failure) => {
                // A part of it may be done.
                let _ = self.undo_late_enrollment(photo, seq).await;
                Err(failure)
            }
        }
    }

    /// Removes templates and crops of a photo that does not show these faces any more.
    pub(super) async fn undo_late_enrollment(&self, photo: &PhotoProcessed, seq: Seq) -> Result<(), Failure> {
        let end = u32::from(photo.first_face) + photo.faces.len() as u32;
        let removed = match self.0.ports.store.photo(&photo.image_id).await? {
            Some(state) if state.status == PhotoStatus::Deleted => RemovedFaces::all(&photo.image_id),
            Some(state) if state.projected_seq != Some(seq) => RemovedFaces::before(&photo.image_id, end),
            _ => return Ok(()),
        };
        self.0.ports.index.remove_faces(&removed, &photo.persons()).await?;
        PersonLifecycle(self.0).after_faces_removed(&removed, &photo.persons()).await
    }

    /// Enrolls these faces and stores the crops of new persons and of persons that were being forgotten. Returns whether anything
    /// was stored or a service was called.
    pub(super) async fn enroll(
        &self,
        faces: &[IdentifiedFace],
        mut source: PixelSource,
        attempt: Attempt,
    ) -> Result<bool, Failure> {
        let Pipeline { ports, .. } = self.0;
        let (images, is_fresh) = (Images(self.0), attempt == Attempt::First);
        let merges = ports.index.merges();
        let (mut without_crop, mut with_crop) = (BTreeSet::new(), BTreeSet::new());
        for IdentifiedFace { person, face, is_new_person, .. } in faces {
            let current = merges.current(*person);
            let status = ports.index.person_status(current);
            let is_reinstated = matches!(status, PersonStatus::Forgotten(_))
                && PersonLifecycle(self.0).reinstate(current, face.clone()).await?;
            // A crash may have prevented the crop of a person that this face reinstated.
            let is_crop_face = matches!(&status, PersonStatus::Known(known) if known.face == *face)
                || (*is_new_person && current == *person);
            let is_missing =
                is_crop_face && (is_fresh || ports.objects.head(&object_keys::crop(current)).await?.is_none());
            if (is_reinstated || is_missing) && !matches!(source, PixelSource::Lost) {
                without_crop.insert(face);
            } else if is_crop_face && attempt != Attempt::Repeated {
                with_crop.insert(current);
            }
        }
        // The crop is stored last: where it exists, everything before it was done.
        let pixels = match is_fresh || !without_crop.is_empty() {
            true => images.pixels(&mut source).await?,
            // A crash may have prevented the enrollment of further templates of known persons, which needs signatures alone.
            false => Arc::new(Pixels { width: 0, height: 0, rgb: Vec::new() }),
        };
        let is_wanted = |face: &&IdentifiedFace| face.template || without_crop.contains(&face.face);
        let enrollment = |face: &IdentifiedFace| face.enrollment(without_crop.contains(&face.face), &pixels);
        let enrollments: Vec<Enrollment> = faces.iter().filter(is_wanted).map(enrollment).collect();
        let is_enrolled = ports.index.enroll(&enrollments, !is_fresh).await?;
        let mut pictured = Vec::new();
        for IdentifiedFace { person, bounds, .. } in faces.iter().filter(|face| without_crop.contains(&face.face)) {
            let (person, pixels) = (merges.current(*person), images.pixels(&mut source).await?);
            // Another worker may do the same with a redelivered message. The one that stores the crop last sees both templates.
            let is_shared =
                ports.index.is_paid() && (!is_fresh || ports.objects.head(&object_keys::crop(person)).await?.is_some());
            images.store_crop(person, *bounds, pixels).await?;
            if is_shared {
                with_crop.insert(person);
            }
            pictured.push(person);
        }
        // Where two workers have enrolled the same face, a failure may have prevented that the one with the later crop noticed.
        for person in with_crop {
            if ports.index.template_count(person).await? > Some(1) {
                PersonLifecycle(self.0).replace_crop(person).await?;
            }
        }
        PersonLifecycle(self.0).remove_crops_of_merged(&pictured).await?;
        Ok(is_enrolled || !without_crop.is_empty())
    }

    /// Writes the rows of a photo of persons who were ever merged again, until no merge or unmerge was recorded meanwhile: one that was
    /// recorded before the rows were written did not see them.
    async fn follow_merges(&self, photo: &PhotoProcessed) -> Result<(), Failure> {
        let (index, persons) = (&self.0.ports.index, photo.persons());
        let mut merges = index.merges();
        while persons.iter().any(|person| merges.aliases(*person).len() > 1) {
            self.photo_rows().rewrite(&photo.image_id, &merges).await?;
            index.refresh().await?;
            let written = std::mem::replace(&mut merges, index.merges());
            if merges == written {
                break;
            }
        }
        Ok(())
    }

    /// Writes the photo's rows and the rows of its new persons again. A group photo with more persons than one transaction takes gets
    /// some of their rows afterwards, which a crash may have prevented.
    async fn rewrite_all_rows(&self, image: &ImageId) -> Result<Option<RecordedEvent>, Failure> {
        let (rows, index) = (self.photo_rows(), &self.0.ports.index);
        let mut backoff = conflict_backoff();
        loop {
            index.refresh().await?;
            // First: a refresh for another message may follow any read below.
            let identity = index.identity();
            let merges = index.merges();
            let Some((recorded, mut commit)) = rows.plan(image, &merges).await? else { return Ok(None) };
            let missing = self.missing_person_rows(&recorded.event).await?;
            // A person that is merged or forgotten meanwhile has no row any more.
            commit.identity = (!missing.is_empty()).then_some(identity);
            commit.mutations.extend(missing);
            match rows.commit(&commit).await {
                Ok(()) => {
                    // A merge or unmerge that was recorded meanwhile did not see these rows.
                    index.refresh().await?;
                    if index.merges() == merges {
                        return Ok(Some(recorded));
                    }
                }
                Err(CommitError::IdentityMoved) => self.0.count_conflict(),
                Err(error) => return Err(error.into()),
            }
            wait_after_conflict(&mut backoff, "the set of known persons").await?;
        }
    }

    /// Returns the rows of the photo's new persons that are missing.
    async fn missing_person_rows(&self, event: &Event) -> Result<Vec<Mutation>, Failure> {
        let Event::PhotoProcessed(photo) = event else { return Ok(Vec::new()) };
        let Pipeline { ports, .. } = self.0;
        let merges = ports.index.merges();
        let new_persons = identified_faces(photo).into_iter().filter(|face| face.is_new_person).map(|face| face.person);
        let new_persons = new_persons.filter(|person| !merges.is_absorbed(*person));
        let known = new_persons.filter_map(|person| match ports.index.person_status(person) {
            PersonStatus::Known(known) => Some((Key::person(person), Projection::restored_person_row(person, &known))),
            PersonStatus::Forgotten(_) | PersonStatus::Unknown => None,
        });
        let mut rows: BTreeMap<Key, Mutation> = known.collect();
        let keys: Vec<Key> = rows.keys().cloned().collect();
        for row in ports.store.batch_get(&keys).await? {
            rows.remove(&row.key);
        }
        Ok(rows.into_values().collect())
    }

    fn photo_rows(&self) -> PhotoRows<'_> {
        PhotoRows { store: self.0.ports.store.as_ref(), projection: self.0.config.projection }
    }
}
