//! What the table shows of a photo.

use sparks_domain::{
    Event, EventId, ImageId, Lane, Merges, PhotoProcessed, PhotoState, Projection, Recorded, Seq, Timestamp,
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
    /// Where the log has it.
    pub lane: Lane,
    /// At which place.
    pub seq: Seq,
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
        let Some(seq) = state.shows else { return Ok(None) };
        match self.store.event(image, seq).await? {
            Some(Recorded { event: Event::PhotoProcessed(event), lane, seq, when, id, actor }) => {
                Ok(Some(ShownPhoto { event, lane, seq, when, id, actor, state }))
            }
            _ => Ok(None),
        }
    }

    /// Makes the photo's rows what the log says. A commit without events, so that nobody who is faster is overwritten;
    /// where the platform has removed the row, there is nothing to say.
    pub async fn reassert(&self, image: &ImageId, merges: &Merges) -> Result<Option<Recorded>, CommitError> {
        let Some(shown) = self.photo(image).await? else { return Ok(None) };
        let ShownPhoto { event, lane, seq, when, id, actor, state } = shown;
        let commit = Commit {
            mutations: self.projection.photo(&event, when, &state.persons, &[], merges),
            ..Commit::without_events(when, Some(PhotoGuard { image: image.clone(), before: Some(state) }))
        };
        match self.store.commit(&commit).await {
            Ok(_) | Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => {
                Ok(Some(Recorded { lane, seq, id, actor, when, event: Event::PhotoProcessed(event) }))
            }
            Err(error) => Err(error),
        }
    }
}
