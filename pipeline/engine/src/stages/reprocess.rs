//! Photos that are decided already, analyzed and committed again by `sparks redecide`.

use std::{collections::BTreeSet, sync::Arc};

use sparks_domain::{
    DetectedFace, Event, FaceId, IdentityHead, ImageId, PersonId, PhotoProcessed, PhotoRejected, PhotoState,
    RecordedEvent, Seq, Variant, Verdict,
};

use super::{
    CommitReceipt,
    analyze::signatures,
    commit::Committer,
    effects::{Attempt, Effects, IdentifiedFace, identified_faces},
    images::{Images, PixelSource},
    notify::Notifier,
    outcome::RejectedPhoto,
    person_lifecycle::PersonLifecycle,
};
use crate::{
    AnalyzeError, CommitError, DependencyError, Enrollment, Erasure, Failure, ImageError, ObjectsError, Pipeline,
    Pixels, ProbeSet, RemovedFaces, sha256,
};

/// Analyzes and commits photos again.
pub(crate) struct Reprocessor<'a>(pub &'a Pipeline);

/// The reason why a variant cannot be analyzed, which does not stop the run.
pub(crate) type Unreadable = String;

/// A new decision about a photo.
pub(crate) struct RedecidedCommit<'a> {
    pub image: &'a ImageId,
    pub state: &'a PhotoState,
    pub events: Vec<Event>,
    pub identity: IdentityHead,
    pub faces: &'a [DetectedFace],
    /// The models whose earlier signatures of the photo are replaced.
    pub models: &'a BTreeSet<String>,
}

impl Reprocessor<'_> {
    /// Detects the faces in the stored variant of a photo. A worker that could not commit a later version may have replaced it.
    pub async fn analyze_variant(&self, variant: &Variant) -> Result<Result<ProbeSet, Unreadable>, Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let (large, digest) = (variant.key.as_str(), variant.sha256.as_ref());
        let variant = match ports.objects.get(large, config.max_bytes).await {
            Ok(variant) => variant,
            Err(
                error @ (ObjectsError::NotFound(_)
                | ObjectsError::TooLarge { .. }
                | ObjectsError::BadKey(_)
                | ObjectsError::Forbidden { .. }),
            ) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        if digest.is_some_and(|digest| *digest != sha256(&variant.bytes)) {
            return Ok(Err(format!("{large} has other bytes than in the log")));
        }
        let pixels = match Images(self.0).run(move |processor| processor.decode(&variant.bytes)).await {
            Ok(pixels) => Arc::new(pixels),
            Err(ImageError::Rejected(reason)) => return Ok(Err(format!("{large}: {}", reason.message))),
            Err(unavailable) => return Err(unavailable.into()),
        };
        match ports.analyzer.analyze(Arc::clone(&pixels)).await {
            Ok(faces) => Ok(Ok(ProbeSet::new(faces, pixels))),
            Err(error @ AnalyzeError::Panicked(_)) => Ok(Err(format!("{large}: {error}"))),
            Err(error) => Err(error.into()),
        }
    }

    /// Commits the new decision, and replaces the photo's earlier signatures of these models.
    pub async fn commit(&self, decision: RedecidedCommit<'_>) -> Result<CommitReceipt, CommitError> {
        let RedecidedCommit { image, state, events, identity, faces, models } = decision;
        let Pipeline { ports, .. } = self.0;
        let earlier: Vec<FaceId> = (0..state.faces).map(|n| FaceId { image: image.clone(), n }).collect();
        let stored = ports.store.signatures(&earlier).await?;
        let replaced: Vec<_> = stored.into_iter().filter(|stored| models.contains(&stored.model)).collect();
        let mut commit = Committer(self.0).prepare(image, Some(state), events);
        commit.identity = commit.events.iter().any(Event::is_identity).then_some(identity);
        commit.signatures = signatures(image, faces, &commit.events);
        commit.erased =
            Erasure { faces: replaced.iter().map(|stored| stored.face.clone()).collect(), photos: Vec::new() };
        let persons: BTreeSet<PersonId> = replaced.iter().filter_map(|stored| stored.person).collect();
        let persons: Vec<PersonId> = persons.into_iter().collect();
        // Before the commit, because a repeat after a crash does not know what was replaced; and after it, because another worker may
        // have enrolled a template again.
        self.remove_templates(image, &persons).await?;
        match Committer(self.0).commit(&commit).await {
            Ok(receipt) => {
                self.remove_templates(image, &persons).await?;
                Ok(receipt)
            }
            Err(error) => {
                let restored = PersonLifecycle(self.0).enroll_templates(&persons).await;
                restored.map_err(|failure| DependencyError::Unavailable(failure.to_string()))?;
                Err(error)
            }
        }
    }

    async fn remove_templates(&self, image: &ImageId, persons: &[PersonId]) -> Result<(), DependencyError> {
        if persons.is_empty() {
            return Ok(());
        }
        let removed = self.0.ports.index.remove_faces(&RemovedFaces::all(image), persons).await;
        removed.map_err(|error| DependencyError::Unavailable(error.to_string()))
    }

    /// Applies the effects of such a commit: those of any photo, except that the variants are not new.
    pub async fn apply_effects(&self, receipt: &CommitReceipt, pixels: Arc<Pixels>) -> Result<(), Failure> {
        Effects(self.0).apply(receipt, pixels, true).await?;
        match receipt.photo() {
            Some((photo, _)) => self.restore_templates(photo).await,
            None => Ok(()),
        }
    }

    /// Completes the effects of such a commit: a crash may have left out crops of new persons and templates.
    pub async fn complete_effects(&self, photo: &PhotoProcessed, pixels: &Arc<Pixels>) -> Result<(), Failure> {
        if photo.follows.is_none() {
            return Ok(());
        }
        if photo.faces.iter().any(|face| matches!(face.verdict, Verdict::NewPerson(_))) {
            let source = PixelSource::Pixels(Arc::clone(pixels));
            Effects(self.0).enroll(&identified_faces(photo), source, Attempt::Resumed).await?;
        }
        self.restore_templates(photo).await
    }

    /// Enrolls templates of another model at a service: they were removed with those that the new decision replaced.
    async fn restore_templates(&self, photo: &PhotoProcessed) -> Result<(), Failure> {
        match self.0.ports.index.is_paid() {
            true => PersonLifecycle(self.0).enroll_templates(&photo.persons()).await,
            false => Ok(()),
        }
    }

    /// Publishes a decision that may be of an interrupted run: no message repeats its effects.
    pub async fn publish_again(&self, photo: &RecordedEvent) -> Result<(), Failure> {
        if photo.event.follows().is_some() {
            Notifier(self.0).publish(std::slice::from_ref(photo), None).await?;
        }
        Ok(())
    }

    /// Commits the rejection of a later version once more, after an earlier one was decided again.
    pub async fn reject_again(&self, rejected: PhotoRejected) -> Result<(), Failure> {
        let PhotoRejected { image_id: image, uploader, source, reason, .. } = rejected;
        let state = self.0.ports.store.photo(&image).await?;
        Committer(self.0).reject(RejectedPhoto { image, uploader, source, state, reason }).await?;
        Ok(())
    }

    /// Enrolls the faces at these positions at a service that did not find them.
    pub async fn enroll(
        &self,
        photo: &PhotoProcessed,
        seq: Seq,
        positions: &[usize],
        pixels: &Arc<Pixels>,
    ) -> Result<(), Failure> {
        let number = |position: &usize| photo.first_face.checked_add(u16::try_from(*position).ok()?);
        let numbers: BTreeSet<u16> = positions.iter().filter_map(number).collect();
        let enrollment = |face: IdentifiedFace| face.enrollment(true, pixels);
        let wanted = identified_faces(photo).into_iter().filter(|face| numbers.contains(&face.face.n));
        let enrollments: Vec<Enrollment> = wanted.map(enrollment).collect();
        if !enrollments.is_empty() {
            self.0.ports.index.enroll(&enrollments, true).await?;
            Effects(self.0).undo_late_enrollment(photo, seq).await?;
        }
        Ok(())
    }
}
