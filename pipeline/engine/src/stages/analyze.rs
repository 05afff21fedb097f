//! Stage: the faces of a photo.

use std::sync::Arc;

use sparks_domain::{
    Command, DetectedFace, Email, Event, Face, FaceId, IdentificationInput, ImageId, PhotoState, SourceObject, TakenAt,
    Variants,
};

use super::{look_up::LookedUpPhoto, outcome::StageError, process::PhotoProcessor, render::RenderedPhoto};
use crate::{ProbeSet, StoredFace};

/// A photo or profile picture whose faces are detected and not yet identified.
#[derive(Debug)]
pub(super) struct AnalyzedPhoto {
    pub image: ImageId,
    pub state: Option<PhotoState>,
    pub subject: Subject,
    pub analyzer: String,
    pub probes: ProbeSet,
}

/// What the image is.
#[derive(Debug)]
pub(super) enum Subject {
    Photo {
        uploader: Email,
        source: SourceObject,
        dimensions: (u32, u32),
        taken_at: Option<TakenAt>,
        variants: Variants,
    },
    Profile {
        email: Email,
        source: SourceObject,
    },
}

impl PhotoProcessor<'_> {
    /// Detects the faces in the pixels of `large`.
    pub(super) async fn analyze(&self, rendered: RenderedPhoto) -> Result<AnalyzedPhoto, StageError> {
        let RenderedPhoto { looked_up, source, dimensions, taken_at, variants, pixels } = rendered;
        let LookedUpPhoto { photo, uploader, state, .. } = looked_up;
        let analyzer = &self.0.ports.analyzer;
        let faces = analyzer.analyze(Arc::clone(&pixels)).await?;
        let subject = Subject::Photo { uploader, source, dimensions, taken_at, variants };
        let (analyzer, probes) = (analyzer.name().to_owned(), ProbeSet::new(faces, pixels));
        Ok(AnalyzedPhoto { image: photo.image, state, subject, analyzer, probes })
    }
}

impl AnalyzedPhoto {
    /// Returns the command to decide on.
    pub fn command(&self, identification: IdentificationInput) -> Command {
        match &self.subject {
            Subject::Photo { uploader, source, dimensions, taken_at, variants } => Command::Process {
                image_id: self.image.clone(),
                uploader: uploader.clone(),
                source: source.clone(),
                dimensions: *dimensions,
                taken_at: taken_at.clone(),
                variants: variants.clone(),
                identification,
            },
            Subject::Profile { email, source } => {
                Command::Profile { email: email.clone(), source: source.clone(), identification }
            }
        }
    }

    /// Returns the signatures to store with these events.
    pub fn signatures(&self, events: &[Event]) -> Vec<StoredFace> {
        signatures(&self.image, &self.probes.faces, events)
    }
}

/// Returns the signatures of the faces, with the numbers and persons that the events gave them.
pub(super) fn signatures(image: &ImageId, faces: &[DetectedFace], events: &[Event]) -> Vec<StoredFace> {
    let (first, decided): (u16, &[Face]) = match events.last() {
        Some(Event::PhotoProcessed(photo)) => (photo.first_face, &photo.faces),
        Some(Event::ProfileProcessed(profile)) => (profile.first_face, profile.face.as_slice()),
        _ => return Vec::new(),
    };
    let stored = (first..).zip(decided).zip(faces).filter_map(|((n, decided), detected)| {
        Some(StoredFace {
            face: FaceId { image: image.clone(), n },
            model: detected.model.clone(),
            signature: detected.signature.clone()?,
            person: decided.verdict.person(),
            template: decided.template,
        })
    });
    stored.collect()
}
