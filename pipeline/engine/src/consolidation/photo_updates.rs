//! Updates of the rows of photos, of crops and of persons, after persons were merged or unmerged.

use std::sync::atomic::Ordering;

use sparks_domain::{Event, ImageId, Lane, Merges, PersonId, Position, RecordedEvent, Seq, Timestamp, object_keys};

use super::{Consolidator, MergeError, PAGE};
use crate::{
    Checkpoint, Content, FaceSearch, Filter, ObjectsError, PutMode, Query,
    stages::{PersonLifecycle, ProfileProcessor},
    users::users_of_person,
};

const MAX_CROP_BYTES: u64 = 16 << 20;

/// The result of updating photos.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhotoUpdateReport {
    /// Merges and unmerges that were applied.
    pub changes: usize,
    /// Photos whose rows were written again.
    pub photos: usize,
    /// Whether some changes are so recent that an index may not return all their photos yet: another run is needed.
    pub is_incomplete: bool,
}

impl Consolidator {
    /// Updates photos and crops to all recorded merges and unmerges. Safe to interrupt and to repeat: the next call, of any
    /// process, continues. `progress` receives the number of photos.
    pub async fn apply_merges(&self, progress: impl Fn(usize)) -> Result<PhotoUpdateReport, MergeError> {
        let mut report = PhotoUpdateReport::default();
        let mut after = self.store.checkpoint(Checkpoint::Followed).await?.in_lane(Lane::IDENTITY);
        loop {
            let before = report.changes;
            after = self.apply_merges_after(after, &mut report, &progress).await?;
            if !report.is_incomplete {
                self.set_checkpoint(after).await?;
            }
            self.updated_once.fetch_max(after.0, Ordering::Relaxed);
            // A merge recorded meanwhile may have updated a photo before this call did, so another pass applies it again.
            if report.changes == before {
                return Ok(report);
            }
        }
    }

    /// Applies the changes after this identity event. Returns the last identity event.
    async fn apply_merges_after(
        &self,
        after: Seq,
        report: &mut PhotoUpdateReport,
        progress: &impl Fn(usize),
    ) -> Result<Seq, MergeError> {
        let tail = self.store.identity(after).await?;
        self.index.catch_up().await?;
        let merges = self.index.state().people.merges().clone();
        let updated_once = Seq(self.updated_once.load(Ordering::Relaxed));
        for RecordedEvent { seq, when, event, .. } in &tail.events {
            let (tagged, from) = match event {
                Event::PersonsMerged(e) => (e.from, e.from),
                // The survivor may have been merged further since, and its photos are tagged accordingly.
                Event::MergeUndone(e) => (merges.current(e.into), e.from),
                _ => continue,
            };
            let is_indexed = self.is_indexed(*when);
            if !is_indexed && !report.is_incomplete {
                let before = Seq(seq.0.saturating_sub(1));
                if before > after {
                    self.set_checkpoint(before).await?;
                }
                report.is_incomplete = true;
            }
            if !is_indexed && *seq <= updated_once {
                continue;
            }
            report.changes += 1;
            self.move_crop(from, merges.is_absorbed(from)).await?;
            self.update_photos(tagged, &merges, report, progress).await?;
            self.update_users(tagged).await?;
            if let Event::MergeUndone(undone) = event {
                PersonLifecycle(&self.pipeline).after_unmerge(&[undone.into, undone.from]).await?;
            }
        }
        Ok(tail.seq)
    }

    async fn set_checkpoint(&self, up_to: Seq) -> Result<(), MergeError> {
        Ok(self.store.set_checkpoint(Checkpoint::Followed, &Position::at(Lane::IDENTITY, up_to)).await?)
    }

    /// Whether indexes return all tags written before this time. Photos committed later apply merges themselves.
    fn is_indexed(&self, when: Timestamp) -> bool {
        let lag = i64::try_from(self.config.index_lag.as_millis()).unwrap_or(i64::MAX);
        lag == 0 || self.clock.now().as_millis() >= when.as_millis().saturating_add(lag)
    }

    /// Rewrites the rows of all photos that are tagged with this person.
    async fn update_photos(
        &self,
        person: PersonId,
        merges: &Merges,
        report: &mut PhotoUpdateReport,
        progress: &impl Fn(usize),
    ) -> Result<(), MergeError> {
        let filter = Filter::EntityType(format!("TAGGING#{person}"));
        let mut query = Query { filter, after: None, limit: PAGE, backwards: false };
        loop {
            let page = self.store.query(&query).await?;
            let images: Vec<ImageId> = page.items.iter().filter_map(|item| item.key.pk.parse().ok()).collect();
            let mut written = merges.clone();
            loop {
                for (n, image) in (1..).zip(&images) {
                    self.photo_rows().rewrite(image, &written).await?;
                    progress(report.photos + n);
                }
                // Another process may have applied a later merge or unmerge before, and an index need not return these rows to it.
                self.index.catch_up().await?;
                let current = self.index.merges();
                if *current == written {
                    break;
                }
                written = Merges::clone(&current);
            }
            report.photos += images.len();
            match page.last {
                Some(last) => query.after = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// Rewrites the rows of the users who are linked to this person. A merge relinks the users that the index lists at that time
    /// (eventual consistency).
    async fn update_users(&self, person: PersonId) -> Result<(), MergeError> {
        for user in users_of_person(self.store.as_ref(), person).await? {
            ProfileProcessor(&self.pipeline).rewrite_user(&user).await?;
        }
        Ok(())
    }

    /// Moves the crop of a merged person out of the public folder, or back after an unmerge.
    async fn move_crop(&self, person: PersonId, is_merged: bool) -> Result<(), MergeError> {
        let (public, archived) = (object_keys::crop(person), object_keys::merged_crop(person));
        let (from, to) = if is_merged { (public, archived) } else { (archived, public) };
        match self.objects.get(&from, MAX_CROP_BYTES).await {
            Ok(crop) => {
                self.objects.put(&to, crop.bytes, Content::image("image/jpeg"), PutMode::Replace).await?;
                self.objects.delete(&from).await?;
                Ok(())
            }
            Err(ObjectsError::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
