//! Photos and crops that follow what was decided about persons.

use std::sync::atomic::Ordering;

use sparks_domain::{Event, ImageId, Lane, Merges, PersonId, Position, Projection, Recorded, Seq, Timestamp};

use super::{PAGE, Register, RegisterError};
use crate::{Content, Filter, Mark, ObjectsError, PutMode, Query};

const MOST_CROP_BYTES: u64 = 16 << 20;

/// What followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Followed {
    /// Changes of who is who that photos had not followed yet.
    pub changes: usize,
    /// Photos whose rows were written again.
    pub photos: usize,
    /// Whether changes are so young that an index may not show all their photos: those follow another time.
    pub again: bool,
}

impl Register {
    /// Lets photos, crops and templates follow what was decided about persons. Safe to interrupt and to repeat; whoever
    /// comes next goes on.
    pub async fn follow(&self, progress: impl Fn(usize)) -> Result<Followed, RegisterError> {
        let mut followed = Followed::default();
        let mut after = self.store.mark(Mark::Followed).await?.in_lane(Lane::IDENTITY);
        loop {
            let before = followed.changes;
            after = self.follow_once(after, &mut followed, &progress).await?;
            if !followed.again {
                self.set_followed(after).await?;
            }
            self.swept.fetch_max(after.0, Ordering::Relaxed);
            // Whoever changed who is who meanwhile may have been faster with a photo than we: it follows once more.
            if followed.changes == before {
                return Ok(followed);
            }
        }
    }

    /// Follows the changes after this identity event, and says up to which.
    async fn follow_once(
        &self,
        after: Seq,
        followed: &mut Followed,
        progress: &impl Fn(usize),
    ) -> Result<Seq, RegisterError> {
        let tail = self.store.identity(after).await?;
        self.index.follow().await?;
        let merges = self.index.known().people.merges().clone();
        let swept = Seq(self.swept.load(Ordering::Relaxed));
        for Recorded { seq, when, event, .. } in &tail.events {
            let (person, from) = match event {
                Event::PersonsMerged(e) => (e.from, e.from),
                // Whoever they were taken for may be somebody else since, and their photos with them.
                Event::MergeUndone(e) => (merges.now(e.into), e.from),
                _ => continue,
            };
            let is_settled = self.is_settled(*when);
            if !is_settled && !followed.again {
                let before = Seq(seq.0.saturating_sub(1));
                if before > after {
                    self.set_followed(before).await?;
                }
                followed.again = true;
            }
            if !is_settled && *seq <= swept {
                continue;
            }
            followed.changes += 1;
            self.move_crop(from, merges.is_absorbed(from)).await?;
            self.photos_follow(person, &merges, followed, progress).await?;
        }
        Ok(tail.seq)
    }

    async fn set_followed(&self, up_to: Seq) -> Result<(), RegisterError> {
        Ok(self.store.set_mark(Mark::Followed, &Position::at(Lane::IDENTITY, up_to)).await?)
    }

    /// Whether indexes show by now all that was tagged before this. What is tagged later is seen to by whoever tags it.
    fn is_settled(&self, when: Timestamp) -> bool {
        let lag = i64::try_from(self.rules.lag.as_millis()).unwrap_or(i64::MAX);
        lag == 0 || self.clock.now().as_millis() >= when.as_millis().saturating_add(lag)
    }

    async fn photos_follow(
        &self,
        person: PersonId,
        merges: &Merges,
        followed: &mut Followed,
        progress: &impl Fn(usize),
    ) -> Result<(), RegisterError> {
        let filter = Filter::EntityType(format!("TAGGING#{person}"));
        let mut query = Query { filter, after: None, limit: PAGE, backwards: false };
        loop {
            let page = self.store.query(&query).await?;
            for item in page.items {
                if let Ok(image) = item.key.pk.parse::<ImageId>() {
                    self.shown().reassert(&image, merges).await?;
                    followed.photos += 1;
                    progress(followed.photos);
                }
            }
            match page.last {
                Some(last) => query.after = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// Whoever is somebody else is not shown, and their crop is kept where it can be taken back from.
    async fn move_crop(&self, person: PersonId, away: bool) -> Result<(), RegisterError> {
        let (shown, kept) = (Projection::crop_key(person), format!("merged/{person}.jpg"));
        let (from, to) = if away { (shown, kept) } else { (kept, shown) };
        match self.objects.get(&from, MOST_CROP_BYTES).await {
            Ok(crop) => {
                self.objects.put(&to, crop.bytes, Content::picture("image/jpeg"), PutMode::Replace).await?;
                self.objects.delete(&from).await?;
                Ok(())
            }
            Err(ObjectsError::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
