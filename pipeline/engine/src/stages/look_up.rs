//! Stage: the photo's row in the platform's table, and its state in the log.

use sparks_domain::{Email, PhotoState, PhotoStatus};

use super::{outcome::StageError, process::PhotoProcessor, table::Table};
use crate::{Cause, Failure, PhotoRef};

/// A photo whose row exists.
#[derive(Debug)]
pub(super) struct LookedUpPhoto {
    pub photo: PhotoRef,
    pub uploader: Email,
    pub state: Option<PhotoState>,
    /// Whether the state was not read, because the row has no variants.
    pub is_presumed_new: bool,
}

impl LookedUpPhoto {
    /// Returns whether this version is committed.
    pub fn is_committed(&self) -> bool {
        self.state.as_ref().is_some_and(|state| {
            state.status == PhotoStatus::Processed && Some(&state.version) == self.photo.version.as_ref()
        })
    }

    /// Returns whether the photo is deleted.
    pub fn is_deleted(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.status == PhotoStatus::Deleted)
    }
}

impl PhotoProcessor<'_> {
    /// Reads the IMAGE row; while the platform has not created it, the photo waits. A new photo costs one request: a row without
    /// variants is presumed to have no decision yet, which the commit's condition verifies.
    pub(super) async fn look_up(&self, photo: PhotoRef) -> Result<LookedUpPhoto, StageError> {
        let row = Table(self.0).image_row(&photo.image).await?;
        match row {
            Some((uploader, row)) if !row.attributes.contains_key("images") => {
                Ok(LookedUpPhoto { photo, uploader, state: None, is_presumed_new: true })
            }
            row => {
                let state = self.0.ports.store.photo(&photo.image).await?;
                self.check_state(photo, row.map(|(uploader, _)| uploader), state).await
            }
        }
    }

    /// Reads the IMAGE row, with a state that was read from the log.
    pub(super) async fn look_up_with_state(
        &self,
        photo: PhotoRef,
        state: Option<PhotoState>,
    ) -> Result<LookedUpPhoto, StageError> {
        let row = Table(self.0).image_row(&photo.image).await?;
        self.check_state(photo, row.map(|(uploader, _)| uploader), state).await
    }

    async fn check_state(
        &self,
        photo: PhotoRef,
        mut uploader: Option<Email>,
        state: Option<PhotoState>,
    ) -> Result<LookedUpPhoto, StageError> {
        if uploader.is_some() && state.as_ref().is_some_and(|state| state.status == PhotoStatus::Deleted) {
            // The row may have been read before the deletion that the state records.
            uploader = Table(self.0).image_row(&photo.image).await?.map(|(uploader, _)| uploader);
        }
        match uploader {
            Some(uploader) => Ok(LookedUpPhoto { photo, uploader, state, is_presumed_new: false }),
            // A deletion removes row and original. An upload under the ID of a deleted photo waits for its row like any other.
            None if state.is_some_and(|state| state.status == PhotoStatus::Deleted)
                && self.0.ports.objects.head(&photo.key).await?.is_none() =>
            {
                Err(StageError::Deleted)
            }
            None => Err(Failure::new(Cause::NoImageRow, format!("there is no IMAGE row for {}", photo.image)).into()),
        }
    }
}
