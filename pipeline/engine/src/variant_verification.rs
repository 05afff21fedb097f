//! Comparison of the variants of all photos with the event log.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use sparks_domain::{Event, ImageId, PhotoProcessed, Position, RecordedEvent, Seq};
use tokio::time::{MissedTickBehavior, interval};

use crate::{Drift, Failure, Filter, Maintenance, Query, Restoration, VariantStore};

/// Compares the stored variants of all photos with the event log, and renders them again.
pub struct VariantVerification {
    /// The event log and the table.
    pub store: Arc<dyn Maintenance>,
    /// The variants.
    pub variants: VariantStore,
}

/// The differences between the stored variants and the event log.
#[derive(Debug, Default)]
pub struct VariantDrift {
    /// Photos that were compared.
    pub photos: u64,
    /// Photos whose variants differ.
    pub total: u64,
    /// Their differences, at most [`Drift::MAX_LISTED`].
    pub differences: Vec<String>,
    /// Photos whose variants differ and were rendered again.
    pub restored: u64,
}

const BATCH: usize = 2048;
/// Photos compared at the same time.
const CONCURRENT: usize = 16;
/// The time between the first requests of two photos: leaves most of the bucket's request rate to workers.
const PACE: Duration = Duration::from_millis(2);

impl VariantVerification {
    /// Compares the variants of every photo, and with `write` renders those that differ again. `progress` receives the number of events
    /// read. Runs beside active workers.
    pub async fn run(&self, write: bool, progress: impl Fn(u64)) -> Result<VariantDrift, Failure> {
        let (mut drift, mut read) = (VariantDrift::default(), Position::default());
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let batch = self.store.read_log(&read, BATCH).await?;
            if batch.is_empty() {
                return Ok(drift);
            }
            batch.iter().for_each(|recorded| read.advance_past(recorded));
            let photos = self.current_photos(batch).await?;
            drift.photos += photos.len() as u64;
            let pace = &mut pace;
            let paced = stream::unfold((photos.into_iter(), pace), |(mut photos, pace)| async {
                let photo = photos.next()?;
                pace.tick().await;
                Some((photo, (photos, pace)))
            });
            let checks = paced.map(|(seq, photo)| async move { self.check(seq, &photo, write).await });
            let mut checks = std::pin::pin!(checks.buffer_unordered(CONCURRENT));
            while let Some(checked) = checks.next().await {
                let Some((differences, is_restored)) = checked? else { continue };
                drift.total += 1;
                drift.restored += u64::from(is_restored);
                let room = Drift::MAX_LISTED.saturating_sub(drift.differences.len());
                drift.differences.extend(differences.into_iter().take(room));
            }
            progress(read.events());
        }
    }

    /// Returns the decisions among these events that the rows of their photos are projected from.
    async fn current_photos(&self, batch: Vec<RecordedEvent>) -> Result<Vec<(Seq, PhotoProcessed)>, Failure> {
        let photos = batch.into_iter().filter_map(|recorded| match recorded.event {
            Event::PhotoProcessed(photo) => Some((recorded.seq, photo)),
            _ => None,
        });
        let photos: Vec<_> = photos.collect();
        let images: Vec<ImageId> = photos.iter().map(|(_, photo)| photo.image_id.clone()).collect();
        let states = self.store.photos(&images).await?;
        let current = photos
            .into_iter()
            .zip(states)
            .filter(|((seq, _), state)| state.as_ref().is_some_and(|state| state.projected_seq == Some(*seq)));
        Ok(current.map(|(photo, _)| photo).collect())
    }

    /// Returns the differences of a photo's variants, and whether they were restored. `None` if there are none.
    async fn check(
        &self,
        seq: Seq,
        photo: &PhotoProcessed,
        write: bool,
    ) -> Result<Option<(Vec<String>, bool)>, Failure> {
        let mut differences = self.variants.differences(photo).await?;
        if differences.is_empty() || !self.is_current(seq, &photo.image_id).await? {
            return Ok(None);
        }
        let mut is_restored = false;
        if write {
            match self.variants.restore(photo).await? {
                Restoration::Unchanged => return Ok(None),
                Restoration::Restored => is_restored = true,
                Restoration::Impossible(reason) => {
                    differences.push(format!("{} cannot be rendered again: {reason}", photo.image_id));
                }
            }
        }
        Ok(Some((differences, is_restored)))
    }

    /// Returns whether the photo exists and this event is still its decision: a worker may have processed or deleted it meanwhile.
    async fn is_current(&self, seq: Seq, image: &ImageId) -> Result<bool, Failure> {
        let filter = Filter::Partition { pk: image.to_string(), sk_prefix: "UPLOADED_BY#".into() };
        let rows = self.store.query(&Query { filter, after: None, limit: 1, backwards: false }).await?;
        let state = self.store.photo(image).await?;
        Ok(!rows.items.is_empty() && state.is_some_and(|state| state.projected_seq == Some(seq)))
    }
}
