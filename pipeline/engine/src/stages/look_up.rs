//! What is known of a photo before anything is read: its row in the platform's table, and its state in the log.

use sparks_domain::{Email, Outcome, PhotoState};

use super::outcome::Failure;
use crate::{Filter, PhotoRef, Pipeline, Query};

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
}

impl Pipeline {
    /// Finds the row that the platform made; while there is none, the photo waits. Costs no image decoding.
    pub(super) async fn look_up(&self, photo: PhotoRef) -> Result<KnownPhoto, Failure> {
        let filter = Filter::Partition { pk: photo.image.to_string(), sk_prefix: "UPLOADED_BY#".into() };
        let rows = self.ports.store.query(&Query { filter, after: None, limit: 1, backwards: false }).await?;
        let row =
            rows.items.first().ok_or_else(|| Failure::NotYet(format!("there is no IMAGE row for {}", photo.image)))?;
        let uploader = row.key.sk.trim_start_matches("UPLOADED_BY#");
        let uploader =
            uploader.parse().map_err(|e| Failure::Poison(format!("the IMAGE row of {}: {e}", photo.image)))?;
        let state = self.ports.store.photo(&photo.image).await?;
        Ok(KnownPhoto { photo, uploader, state })
    }
}
