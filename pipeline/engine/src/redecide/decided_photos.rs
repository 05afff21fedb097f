//! The current decisions about photos.

use std::collections::BTreeMap;

use sparks_domain::{Event, ImageId, PhotoProcessed, PhotoRejected, PhotoState, Position, RecordedEvent, Timestamp};

use crate::{Maintenance, Store, StoreError};

/// All decided photos.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedecideSurvey {
    /// The photos in the order of their first decisions, which does not change when they are decided again.
    pub photos: Vec<ImageId>,
    /// The number of faces in their latest decisions.
    pub faces: u64,
}

/// The number of events read at a time.
const BATCH: usize = 2048;

impl RedecideSurvey {
    /// Reads the event log. `progress` receives the number of events read.
    pub(super) async fn of(store: &dyn Maintenance, progress: impl Fn(u64)) -> Result<Self, StoreError> {
        let mut photos: BTreeMap<ImageId, ((Timestamp, u16, u64), u64)> = BTreeMap::new();
        let mut after = Position::default();
        loop {
            let events = store.read_log(&after, BATCH).await?;
            if events.is_empty() {
                break;
            }
            for recorded in events {
                after.advance_past(&recorded);
                let order = (recorded.when, recorded.lane.0, recorded.seq.0);
                match recorded.event {
                    Event::PhotoProcessed(photo) => {
                        let faces = photo.faces.len() as u64;
                        photos.entry(photo.image_id).or_insert((order, faces)).1 = faces;
                    }
                    Event::PhotoDeleted(photo) => drop(photos.remove(&photo.image_id)),
                    _ => {}
                }
            }
            progress(after.events());
        }
        let faces = photos.values().map(|(_, faces)| faces).sum();
        let mut photos: Vec<_> = photos.into_iter().map(|(image, (order, _))| (order, image)).collect();
        photos.sort_unstable_by_key(|(order, _)| *order);
        Ok(Self { photos: photos.into_iter().map(|(_, image)| image).collect(), faces })
    }
}

/// A photo with its current decision.
#[derive(Debug, Clone)]
pub(super) struct DecidedPhoto {
    /// The decision that the rows are projected from, with the verdicts of later reviews.
    pub event: PhotoProcessed,
    /// The event as it is recorded.
    pub recorded: RecordedEvent,
    /// The rejection of a later version, which a new decision must not undo.
    pub rejection: Option<PhotoRejected>,
    /// The state of the photo.
    pub state: PhotoState,
}

impl DecidedPhoto {
    /// Reads the photo. `None` if its rows are not projected from a decision of a worker.
    pub async fn read(store: &dyn Store, image: &ImageId) -> Result<Option<Self>, StoreError> {
        let Some(state) = store.photo(image).await? else { return Ok(None) };
        let Some(projected) = state.projected_seq else { return Ok(None) };
        let Some(recorded) = store.event(image, projected).await? else { return Ok(None) };
        let Event::PhotoProcessed(mut event) = recorded.event.clone() else { return Ok(None) };
        let (mut seq, mut reviews, mut rejection) = (state.seq, Vec::new(), None);
        while seq > projected {
            let Some(later) = store.event(image, seq).await? else { break };
            seq = match later.event {
                Event::FacesReviewed(review) => {
                    reviews.push(review.faces);
                    review.follows
                }
                // A rejected later version or adopted tags change no face.
                Event::PhotoRejected(rejected) => {
                    let follows = rejected.follows.unwrap_or_default();
                    rejection.get_or_insert(rejected);
                    follows
                }
                Event::PhotoAdopted(adopted) => adopted.follows.unwrap_or_default(),
                _ => break,
            };
        }
        for face in reviews.into_iter().rev().flatten() {
            let position = face.n.checked_sub(event.first_face).map(usize::from);
            if let Some(reviewed) = position.and_then(|position| event.faces.get_mut(position)) {
                reviewed.verdict = face.verdict;
            }
        }
        Ok(Some(Self { event, recorded, rejection, state }))
    }

    /// Returns the rejection that an interrupted run left behind this decision: the photo was decided again, and the rejection of a
    /// later version was not repeated.
    pub async fn undone_rejection(&self, store: &dyn Store) -> Result<Option<PhotoRejected>, StoreError> {
        let (image, Some(follows)) = (&self.event.image_id, self.event.follows) else { return Ok(None) };
        let before = store.event(image, follows).await?.map(|recorded| recorded.event);
        let Some(Event::PhotoRejected(rejected)) = before.filter(|_| self.state.projected_seq == Some(self.state.seq))
        else {
            return Ok(None);
        };
        let mut earlier = rejected.follows;
        while let Some(seq) = earlier {
            earlier = match store.event(image, seq).await?.map(|recorded| recorded.event) {
                Some(Event::PhotoProcessed(photo)) if photo.source.version == self.event.source.version => {
                    return Ok(Some(rejected));
                }
                Some(event @ (Event::PhotoRejected(_) | Event::FacesReviewed(_) | Event::PhotoAdopted(_))) => {
                    event.follows()
                }
                _ => None,
            };
        }
        Ok(None)
    }
}
