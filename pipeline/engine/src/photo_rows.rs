//! The rows of a photo in the platform's table, as the event log implies them.

use sparks_domain::{ImageId, Merges, PhotoState, Projection, RecordedEvent};

use crate::{Commit, CommitError, PhotoGuard, Store, StoreError};

/// Reads the event behind the rows of a photo, and writes the rows again from it.
pub(crate) struct PhotoRows<'a> {
    /// Table and event log.
    pub store: &'a dyn Store,
    /// How events become rows.
    pub projection: Projection,
}

impl PhotoRows<'_> {
    /// Returns the event of any type that the rows of this photo are projected from, and the state of the photo.
    pub async fn current_event(&self, image: &ImageId) -> Result<Option<(RecordedEvent, PhotoState)>, StoreError> {
        let Some(state) = self.store.photo(image).await? else { return Ok(None) };
        let Some(seq) = state.projected_seq else { return Ok(None) };
        Ok(self.store.event(image, seq).await?.map(|recorded| (recorded, state)))
    }

    /// Writes the rows of the photo again. Returns the event that they are projected from.
    pub async fn rewrite(&self, image: &ImageId, merges: &Merges) -> Result<Option<RecordedEvent>, CommitError> {
        let Some((recorded, commit)) = self.plan(image, merges).await? else { return Ok(None) };
        self.commit(&commit).await?;
        Ok(Some(recorded))
    }

    /// Returns the commit that writes the rows of the photo again, and the event that they are projected from. The commit has no
    /// events and is guarded by the state of the photo, so a concurrent change is never overwritten.
    pub async fn plan(&self, image: &ImageId, merges: &Merges) -> Result<Option<(RecordedEvent, Commit)>, StoreError> {
        let Some((recorded, state)) = self.current_event(image).await? else { return Ok(None) };
        let rows = self.projection.photo_rows(&recorded.event, recorded.when, &state.persons, merges);
        let Some(mutations) = rows else { return Ok(None) };
        let guard = PhotoGuard { image: image.clone(), before: Some(state) };
        let commit = Commit { mutations, ..Commit::without_events(recorded.when, Some(guard)) };
        Ok(Some((recorded, commit)))
    }

    /// Commits such a plan. A conflict is not an error: the other commit has written the rows, or the platform has removed them.
    pub async fn commit(&self, plan: &Commit) -> Result<(), CommitError> {
        match self.store.commit(plan).await {
            Ok(_) | Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
