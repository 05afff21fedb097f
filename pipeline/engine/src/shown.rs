//! What the table shows of a photo.

use sparks_domain::{Event, ImageId, Merges, PhotoProcessed, PhotoState, Projection, Recorded, Seq, Timestamp};

use crate::{Commit, CommitError, PhotoGuard, Store, StoreError};

/// Says again what the log says.
pub(crate) struct Shown<'a> {
    /// Table and log.
    pub store: &'a dyn Store,
    /// How events become rows.
    pub projection: Projection,
}

/// A photo as the log knows it now.
pub(crate) struct ShownPhoto {
    /// What was decided about what is shown, and when.
    pub event: PhotoProcessed,
    /// When that was.
    pub when: Timestamp,
    /// Where the photo stands.
    pub state: PhotoState,
}

impl Shown<'_> {
    /// The event that the table shows of this photo, if it shows any.
    pub async fn photo(&self, image: &ImageId) -> Result<Option<ShownPhoto>, StoreError> {
        let Some(state) = self.store.photo(image).await? else { return Ok(None) };
        let Some(Seq(seq)) = state.shows else { return Ok(None) };
        match self.store.read_log(Seq(seq.saturating_sub(1)), 1).await?.pop() {
            Some(Recorded { event: Event::PhotoProcessed(event), when, .. }) => {
                Ok(Some(ShownPhoto { event, when, state }))
            }
            _ => Ok(None),
        }
    }

    /// Makes the photo's rows what the log says. A commit without events, so that nobody who is faster is overwritten;
    /// where the platform has removed the row, there is nothing to say.
    pub async fn reassert(&self, image: &ImageId, merges: &Merges) -> Result<Option<PhotoProcessed>, CommitError> {
        let Some(photo) = self.photo(image).await? else { return Ok(None) };
        let commit = Commit {
            mutations: self.projection.photo(&photo.event, photo.when, &photo.state.persons, &[], merges),
            ..Commit::without_events(photo.when, Some(PhotoGuard { image: image.clone(), before: Some(photo.state) }))
        };
        match self.store.commit(&commit).await {
            Ok(_) | Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => Ok(Some(photo.event)),
            Err(error) => Err(error),
        }
    }
}
