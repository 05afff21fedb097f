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
    /// Finds the row that the platform made; while there is none, the photo waits. Costs no image decoding.
    pub(super) async fn look_up(&self, photo: PhotoRef) -> Result<KnownPhoto, Setback> {
        let state = self.ports.store.photo(&photo.image).await?;
        let (version, sequencer) = (photo.version.as_deref(), photo.sequencer.as_deref());
        if state.as_ref().is_some_and(|state| state.buries(version, sequencer)) {
            return Err(Setback::Gone);
        }
        match self.image_row(&photo.image).await? {
            Some((uploader, _)) => Ok(KnownPhoto { photo, uploader, state }),
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
