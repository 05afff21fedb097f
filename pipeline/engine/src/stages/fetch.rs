//! Stage: the bytes of the original.

use sparks_domain::{PhotoStatus, RejectCode, Rejection, SourceObject};

use super::{
    look_up::LookedUpPhoto,
    outcome::{RejectedPhoto, StageError},
    process::PhotoProcessor,
};
use crate::ObjectsError;

/// A photo with its bytes.
#[derive(Debug)]
pub(super) struct FetchedPhoto {
    pub looked_up: LookedUpPhoto,
    pub source: SourceObject,
    pub bytes: Vec<u8>,
}

impl FetchedPhoto {
    /// Returns whether this version is committed, by the ETag of the object instead of the message's.
    pub fn is_committed(&self) -> bool {
        let state = self.looked_up.state.as_ref();
        state.is_some_and(|state| state.status == PhotoStatus::Processed && state.version == self.source.version)
    }
}

impl PhotoProcessor<'_> {
    /// Reads the original, unless it exceeds the size limit.
    pub(super) async fn fetch(&self, looked_up: LookedUpPhoto) -> Result<FetchedPhoto, StageError> {
        let photo = &looked_up.photo;
        let source = |bytes: u64, version: String| SourceObject {
            key: photo.key.clone(),
            version,
            sequencer: photo.sequencer.clone(),
            bytes,
            mime_type: None,
            file_name: photo.file_name.clone(),
        };
        match self.0.ports.objects.get(&photo.key, self.0.config.max_bytes).await {
            Ok(object) => {
                let source = source(object.bytes.len() as u64, object.version);
                Ok(FetchedPhoto { looked_up, source, bytes: object.bytes })
            }
            Err(ObjectsError::TooLarge { bytes, most, .. }) => {
                // The object was not read, so the version is the message's.
                let source = source(bytes, photo.version.clone().unwrap_or_default());
                let message = format!("{bytes} bytes are more than the limit of {most}");
                Err(looked_up.rejected(source, Rejection { code: RejectCode::TooManyBytes, message }))
            }
            // A deletion removes the original.
            Err(ObjectsError::NotFound(_)) if looked_up.is_deleted() || looked_up.is_presumed_new => {
                Err(StageError::Deleted)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl LookedUpPhoto {
    /// Returns the rejection of this photo.
    pub fn rejected(self, source: SourceObject, reason: Rejection) -> StageError {
        let Self { photo, uploader, state, .. } = self;
        StageError::Rejected(Box::new(RejectedPhoto { image: photo.image, uploader, source, state, reason }))
    }
}
