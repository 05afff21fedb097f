//! What the table shows of a photo.

use sparks_domain::{Event, ImageId, Merges, PhotoProcessed, PhotoState, Projection, Recorded, Timestamp};

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
    /// What was decided about what is shown.
    pub event: PhotoProcessed,
    /// When that was.
    pub when: Timestamp,
    /// Where the photo stands.
    pub state: PhotoState,
}

impl Shown<'_> {
    /// Our own decision that the table shows of this photo, if it shows any.
    pub async fn photo(&self, image: &ImageId) -> Result<Option<ShownPhoto>, StoreError> {
        match self.event(image).await? {
            Some((Recorded { event: Event::PhotoProcessed(event), when, .. }, state)) => {
                Ok(Some(ShownPhoto { event, when, state }))
            }
            _ => Ok(None),
        }
    }

    /// The event that the table shows of this photo, whoever decided, and where the photo stands.
    pub async fn event(&self, image: &ImageId) -> Result<Option<(Recorded, PhotoState)>, StoreError> {
        let Some(state) = self.store.photo(image).await? else { return Ok(None) };
        let Some(seq) = state.shows else { return Ok(None) };
        Ok(self.store.event(image, seq).await?.map(|recorded| (recorded, state)))
    }

    /// Makes the photo's rows what the log says.
    pub async fn reassert(&self, image: &ImageId, merges: &Merges) -> Result<Option<Recorded>, CommitError> {
        let Some((recorded, commit)) = self.draft(image, merges).await? else { return Ok(None) };
        self.commit(&commit).await?;
        Ok(Some(recorded))
    }

    /// What makes the photo's rows what the log says, and the event that says so. A commit without events, so that nobody who
    /// is faster is overwritten.
    pub async fn draft(&self, image: &ImageId, merges: &Merges) -> Result<Option<(Recorded, Commit)>, StoreError> {
        let Some((recorded, state)) = self.event(image).await? else { return Ok(None) };
        let rows = self.projection.shown(&recorded.event, recorded.when, &state.persons, merges);
        let Some(mutations) = rows else { return Ok(None) };
        let guard = PhotoGuard { image: image.clone(), before: Some(state) };
        let commit = Commit { mutations, ..Commit::without_events(recorded.when, Some(guard)) };
        Ok(Some((recorded, commit)))
    }

    /// Commits such a draft. Where somebody else was faster, or the platform has removed the row, there is nothing to say.
    pub async fn commit(&self, draft: &Commit) -> Result<(), CommitError> {
        match self.store.commit(draft).await {
            Ok(_) | Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
