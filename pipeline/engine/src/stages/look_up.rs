//! What is known of a photo before anything is read: its row in the platform's table, and its state in the log.

use sparks_domain::{Email, ImageId, Item, Outcome, PhotoState};

use super::outcome::Setback;
use crate::{Cause, Failure, Filter, PhotoRef, Pipeline, Query};

/// A photo whose row exists.
#[derive(Debug)]
pub(super) struct KnownPhoto {
    pub photo: PhotoRef,
    pub uploader: Email,
    pub state: Option<PhotoState>,
    /// Whether the log was not asked, because the row shows no pictures.
    pub is_presumed_new: bool,
}

impl KnownPhoto {
    /// Whether the log says already what came of this version.
    pub fn is_committed(&self) -> bool {
        self.state.as_ref().is_some_and(|state| {
            state.outcome == Outcome::Processed && Some(&state.version) == self.photo.version.as_ref()
        })
    }

    /// Whether the photo has been deleted.
    pub fn is_gone(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.outcome == Outcome::Deleted)
    }
}

impl Pipeline {
    /// Finds the row that the platform made; while there is none, the photo waits. Costs no image decoding, and one request
    /// for a photo that is new: a row without pictures is taken for one that nobody has decided on, which the commit checks.
    pub(super) async fn look_up(&self, photo: PhotoRef) -> Result<KnownPhoto, Setback> {
        let row = self.image_row(&photo.image).await?;
        match row {
            Some((uploader, row)) if !row.attributes.contains_key("images") => {
                Ok(KnownPhoto { photo, uploader, state: None, is_presumed_new: true })
            }
            row => {
                let state = self.ports.store.photo(&photo.image).await?;
                self.compare(photo, row.map(|(uploader, _)| uploader), state).await
            }
        }
    }

    /// Finds the row, and believes the log alone.
    pub(super) async fn look_up_again(
        &self,
        photo: PhotoRef,
        state: Option<PhotoState>,
    ) -> Result<KnownPhoto, Setback> {
        let row = self.image_row(&photo.image).await?;
        self.compare(photo, row.map(|(uploader, _)| uploader), state).await
    }

    async fn compare(
        &self,
        photo: PhotoRef,
        uploader: Option<Email>,
        state: Option<PhotoState>,
    ) -> Result<KnownPhoto, Setback> {
        let (version, sequencer) = (photo.version.as_deref(), photo.sequencer.as_deref());
        if state.as_ref().is_some_and(|state| state.buries(version, sequencer)) {
            return Err(Setback::Gone);
        }
        match uploader {
            Some(uploader) => Ok(KnownPhoto { photo, uploader, state, is_presumed_new: false }),
            // A new upload under the name of a deleted photo waits for its row like any other.
            None if state.is_some_and(|state| state.outcome == Outcome::Deleted)
                && self.ports.objects.head(&photo.key).await?.is_none() =>
            {
                Err(Setback::Gone)
            }
            None => Err(Failure::new(Cause::NoImageRow, format!("there is no IMAGE row for {}", photo.image)).into()),
        }
    }

    /// The row that the platform made of a photo, and whose it is.
    pub(super) async fn image_row(&self, image: &ImageId) -> Result<Option<(Email, Item)>, Failure> {
        let filter = Filter::Partition { pk: image.to_string(), sk_prefix: "UPLOADED_BY#".into() };
        let rows = self.ports.store.query(&Query { filter, after: None, limit: 1, backwards: false }).await?;
        let Some(row) = rows.items.into_iter().next() else { return Ok(None) };
        let uploader = row.key.sk.trim_start_matches("UPLOADED_BY#").parse();
        let uploader = uploader.map_err(|e| Failure::new(Cause::Fault, format!("the IMAGE row of {image}: {e}")))?;
        Ok(Some((uploader, row)))
    }
}
