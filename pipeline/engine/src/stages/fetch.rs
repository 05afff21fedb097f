//! From the name of a photo to its bytes.

use sparks_domain::{Outcome, RejectCode, Rejection, Source};

use super::{
    look_up::KnownPhoto,
    outcome::{Setback, Unfit},
};
use crate::{ObjectsError, Pipeline};

/// A photo's bytes.
#[derive(Debug)]
pub(super) struct FetchedPhoto {
    pub known: KnownPhoto,
    pub source: Source,
    pub bytes: Vec<u8>,
}

impl FetchedPhoto {
    /// Whether the log says already what came of this version, whatever the message called it.
    pub fn is_committed(&self) -> bool {
        let state = self.known.state.as_ref();
        state.is_some_and(|state| state.outcome == Outcome::Processed && state.version == self.source.version)
    }
}

impl Pipeline {
    /// Reads the original, unless it is larger than we take.
    pub(super) async fn fetch(&self, known: KnownPhoto) -> Result<FetchedPhoto, Setback> {
        let photo = &known.photo;
        let source = |bytes: u64, version: String| Source {
            key: photo.key.clone(),
            version,
            sequencer: photo.sequencer.clone(),
            bytes,
            mime_type: None,
            file_name: photo.file_name.clone(),
        };
        match self.ports.objects.get(&photo.key, self.rules.max_bytes).await {
            Ok(object) => {
                let source = source(object.bytes.len() as u64, object.version);
                Ok(FetchedPhoto { known, source, bytes: object.bytes })
            }
            Err(ObjectsError::TooLarge { bytes, most, .. }) => {
                // Nobody has read it, so the message's word for its version must do.
                let source = source(bytes, photo.version.clone().unwrap_or_default());
                let message = format!("{bytes} bytes are more than the limit of {most}");
                Err(known.unfit(source, Rejection { code: RejectCode::TooManyBytes, message }))
            }
            // Whoever deletes a photo removes its original.
            Err(ObjectsError::NotFound(_)) if known.is_gone() || known.is_presumed_new => Err(Setback::Gone),
            Err(error) => Err(error.into()),
        }
    }
}

impl KnownPhoto {
    /// This photo cannot be taken.
    pub fn unfit(self, source: Source, reason: Rejection) -> Setback {
        let Self { photo, uploader, state, .. } = self;
        Setback::Unfit(Box::new(Unfit { image: photo.image, uploader, source, state, reason }))
    }
}
