//! What the table shows of a photo.

use sparks_domain::{
    Event, EventId, ImageId, Merges, PhotoProcessed, PhotoState, Projection, Recorded, Seq, Timestamp,
};

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
    /// The event's name.
    pub id: EventId,
    /// Who decided.
    pub actor: String,
    /// Where the photo stands.
    pub state: PhotoState,
}

impl Shown<'_> {
    /// The event that the table shows of this photo, if it shows any.
    pub async fn photo(&self, image: &ImageId) -> Result<Option<ShownPhoto>, StoreError> {
        let Some(state) = self.store.photo(image).await? else { return Ok(None) };
        let Some(Seq(seq)) = state.shows else { return Ok(None) };
        match self.store.read_log(Seq(seq.saturating_sub(1)), 1).await?.pop() {
            Some(Recorded { event: Event::PhotoProcessed(event), when, id, actor, .. }) => {
                Ok(Some(ShownPhoto { event, when, id, actor, state }))
            }
            _ => Ok(None),
        }
    }

    /// Makes the photo's rows what the log says. A commit without events, so that nobody who is faster is overwritten;
    /// where the platform has removed the row, there is nothing to say.
    pub async fn reassert(&self, image: &ImageId, merges: &Merges) -> Result<Option<Recorded>, CommitError> {
        let Some(ShownPhoto { event, when, id, actor, state }) = self.photo(image).await? else { return Ok(None) };
        let seq = state.shows.unwrap_or(state.seq);
        let commit = Commit {
            mutations: self.projection.photo(&event, when, &state.persons, &[], merges),
            ..Commit::without_events(when, Some(PhotoGuard { image: image.clone(), before: Some(state) }))
        };
        match self.store.commit(&commit).await {
            Ok(_) | Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => {
                Ok(Some(Recorded { seq, id, actor, when, event: Event::PhotoProcessed(event) }))
            }
            Err(error) => Err(error),
        }
    }
}
