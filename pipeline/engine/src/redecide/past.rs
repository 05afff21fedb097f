//! What was decided before.

use std::collections::BTreeMap;

use sparks_domain::{Event, ImageId, PhotoProcessed, PhotoState, Position, Timestamp};

use crate::{Maintenance, Store, StoreError};

/// All photos that were ever decided, and how much there is to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The photos, in the order in which they were decided first: an order that does not change, whatever is decided anew.
    pub photos: Vec<ImageId>,
    /// The faces in them, as they were seen last.
    pub faces: u64,
}

/// Events are read this many at a time.
const BATCH: usize = 2048;

impl Survey {
    /// Reads the log. `progress` hears how many events were read.
    pub(super) async fn of(store: &dyn Maintenance, progress: impl Fn(u64)) -> Result<Self, StoreError> {
        let mut first: BTreeMap<ImageId, ((Timestamp, u16, u64), u64)> = BTreeMap::new();
        let mut after = Position::default();
        loop {
            let events = store.read_log(&after, BATCH).await?;
            if events.is_empty() {
                break;
            }
            for recorded in events {
                after.pass_event(&recorded);
                let place = (recorded.when, recorded.lane.0, recorded.seq.0);
                match recorded.event {
                    Event::PhotoProcessed(photo) => {
                        let faces = photo.faces.len() as u64;
                        first.entry(photo.image_id).or_insert((place, faces)).1 = faces;
                    }
                    Event::PhotoDeleted(photo) => drop(first.remove(&photo.image_id)),
                    _ => {}
                }
            }
            progress(after.events());
        }
        let faces = first.values().map(|(_, faces)| faces).sum();
        let mut photos: Vec<_> = first.into_iter().map(|(image, (place, _))| (place, image)).collect();
        photos.sort_unstable_by_key(|(place, _)| *place);
        Ok(Self { photos: photos.into_iter().map(|(_, image)| image).collect(), faces })
    }
}

/// A photo as it stands.
#[derive(Debug, Clone)]
pub(super) struct PastPhoto {
    /// What the table shows of it, each verdict as it was decided last.
    pub shown: PhotoProcessed,
    /// Where it stands.
    pub state: PhotoState,
}

impl PastPhoto {
    /// The photo, if the table shows a decision of ours.
    pub async fn read(store: &dyn Store, image: &ImageId) -> Result<Option<Self>, StoreError> {
        let Some(state) = store.photo(image).await? else { return Ok(None) };
        let Some(shows) = state.shows else { return Ok(None) };
        let recorded = store.event(image, shows).await?;
        let Some(Event::PhotoProcessed(mut shown)) = recorded.map(|recorded| recorded.event) else { return Ok(None) };
        let (mut seq, mut reviews) = (state.seq, Vec::new());
        while seq > shows {
            let Some(recorded) = store.event(image, seq).await? else { break };
            seq = match recorded.event {
                Event::FacesReviewed(review) => {
                    reviews.push(review.faces);
                    review.follows
                }
                // A later version that could not be taken changed no face.
                Event::PhotoRejected(rejected) => rejected.follows.unwrap_or_default(),
                Event::PhotoAdopted(adopted) => adopted.follows.unwrap_or_default(),
                _ => break,
            };
        }
        for face in reviews.into_iter().rev().flatten() {
            let place = face.n.checked_sub(shown.first_face).map(usize::from);
            if let Some(reviewed) = place.and_then(|place| shown.faces.get_mut(place)) {
                reviewed.verdict = face.verdict;
            }
        }
        Ok(Some(Self { shown, state }))
    }
}
