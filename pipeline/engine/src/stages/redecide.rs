//! Photos that are decided already, looked at and committed anew.

use std::{collections::BTreeSet, sync::Arc};

use sparks_domain::{Event, FaceId, Identity, ImageId, PersonId, PhotoProcessed, PhotoState, SeenFace, Verdict};

use super::{
    Committed,
    commit::signatures,
    effects::{Seen, Source, seen},
};
use crate::{
    AnalyzeError, CommitError, DarkroomError, Erasure, Failure, Lesson, Looked, ObjectsError, Pipeline, Pixels,
};

/// Why a picture cannot be looked at, which is no reason to stop.
pub(crate) type Unreadable = String;

impl Pipeline {
    /// The faces in a picture that was made before.
    pub(crate) async fn look_again(&self, large: &str) -> Result<Result<Looked, Unreadable>, Failure> {
        let picture = match self.ports.objects.get(large, self.rules.max_bytes).await {
            Ok(picture) => picture,
            Err(
                error @ (ObjectsError::NotFound(_)
                | ObjectsError::TooLarge { .. }
                | ObjectsError::BadKey(_)
                | ObjectsError::Forbidden { .. }),
            ) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let pixels = match self.decode(move |darkroom| darkroom.open(&picture.bytes)).await {
            Ok(pixels) => Arc::new(pixels),
            Err(DarkroomError::Rejected(reason)) => return Ok(Err(format!("{large}: {}", reason.message))),
            Err(unavailable) => return Err(unavailable.into()),
        };
        match self.ports.analyzer.analyze(Arc::clone(&pixels)).await {
            Ok(faces) => Ok(Ok(Looked::new(faces, pixels))),
            Err(error @ AnalyzeError::Crashed(_)) => Ok(Err(format!("{large}: {error}"))),
            Err(error) => Err(error.into()),
        }
    }

    /// Commits what was decided anew about a photo. What its earlier faces looked like to these models is replaced.
    pub(crate) async fn commit_anew(
        &self,
        image: &ImageId,
        state: &PhotoState,
        events: Vec<Event>,
        identity: Identity,
        faces: &[SeenFace],
        models: &BTreeSet<String>,
    ) -> Result<Committed, CommitError> {
        let earlier: Vec<FaceId> = (0..state.faces).map(|n| FaceId { image: image.clone(), n }).collect();
        let kept = self.ports.store.signatures(&earlier).await?;
        let replaced: Vec<_> = kept.into_iter().filter(|kept| models.contains(&kept.model)).collect();
        let mut commit = self.draft(image, Some(state), events);
        commit.identity = commit.events.iter().any(Event::is_identity).then_some(identity);
        commit.signatures = signatures(image, faces, &commit.events);
        commit.erased = Erasure { faces: replaced.iter().map(|kept| kept.face.clone()).collect(), photos: Vec::new() };
        let recorded = self.ports.store.commit(&commit).await?;
        super::announce::log(&recorded);
        let persons: BTreeSet<PersonId> = replaced.iter().filter_map(|kept| kept.person).collect();
        if !persons.is_empty() {
            let persons: Vec<_> = persons.into_iter().collect();
            let unlearnt = self.ports.index.unlearn(image, &persons).await;
            unlearnt.map_err(|error| CommitError::Store(crate::StoreError::Unavailable(error.to_string())))?;
        }
        Ok(Committed::of(recorded))
    }

    /// What follows such a commit: the same as of any photo, but its pictures are the same as before.
    pub(crate) async fn after_anew(&self, committed: &Committed, pixels: Arc<Pixels>) -> Result<(), Failure> {
        self.effects(committed, pixels, true).await
    }

    /// Sees to what a crash after such a commit may have left undone: the crops of whom it founded.
    pub(crate) async fn complete_anew(&self, photo: &PhotoProcessed, pixels: &Arc<Pixels>) -> Result<(), Failure> {
        let founds = photo.faces.iter().any(|face| matches!(face.verdict, Verdict::Founded(_)));
        if founds && photo.follows.is_some() {
            self.show(&seen(photo), Source::Pixels(Arc::clone(pixels)), false).await?;
        }
        Ok(())
    }

    /// Tells a service who these faces are, which it has not found.
    pub(crate) async fn teach(
        &self,
        photo: &PhotoProcessed,
        places: &[usize],
        pixels: &Arc<Pixels>,
    ) -> Result<(), Failure> {
        let numbers: BTreeSet<u16> =
            places.iter().filter_map(|place| photo.first_face.checked_add(u16::try_from(*place).ok()?)).collect();
        let lesson = |seen: Seen| seen.lesson(true, pixels);
        let lessons: Vec<Lesson> =
            seen(photo).into_iter().filter(|seen| numbers.contains(&seen.face.n)).map(lesson).collect();
        if !lessons.is_empty() {
            self.ports.index.learn(&lessons, true).await?;
        }
        Ok(())
    }
}
