//! Committing: one transaction, retried while its conditions fail for reasons that a corrected plan can meet.

use std::collections::BTreeMap;

use sparks_domain::{ImageId, Key, Level, PersonId, RecordedEvent};
use sparks_engine::{Commit, CommitError, DependencyError, Store, StoreError};

use super::{
    DynamoStore,
    attribute_value::{Fields, text},
    face_items::{self, PhotoItems},
    limits,
    log_items::{self, SEVERAL_ITEMS},
    transact::{TransactionError, transact},
    transaction_plan::{Action, ActionTarget, Assumptions, TransactionPlan},
};
use crate::retry::backoff;

impl DynamoStore {
    /// Returns the assumptions of the first attempt. Reads nothing for a photo of known persons.
    async fn initial_assumptions(&self, commit: &Commit) -> Result<Assumptions, StoreError> {
        let photo = commit.photo.as_ref().map(|guard| &guard.image);
        let pending = photo.is_some_and(|image| self.is_unfinished(image));
        let mut touched = face_items::touched(commit);
        touched.extend(photo.filter(|_| pending).cloned());
        let faces = self.stored_face_items(touched.into_iter().collect()).await?;
        Ok(Assumptions { heads: self.heads(), rows: Default::default(), faces, pending })
    }

    /// Returns the items of the signatures' table for these photos, where they exist.
    pub(super) async fn stored_face_items(
        &self,
        images: Vec<ImageId>,
    ) -> Result<BTreeMap<ImageId, PhotoItems>, StoreError> {
        let mut photos: BTreeMap<ImageId, PhotoItems> = BTreeMap::new();
        let mut keys: Vec<Fields> = images.iter().map(|image| face_items::item_key(image, 0)).collect();
        while !keys.is_empty() {
            for item in self.get_rows(&self.tables.faces, std::mem::take(&mut keys)).await? {
                let image: ImageId =
                    text(&item, "PK")?.parse().map_err(|e| StoreError::Unreadable(format!("face item: {e}")))?;
                let position = face_items::item_position(&item).unwrap_or_default();
                let photo = photos.entry(image.clone()).or_default();
                photo.0.insert(position, item);
                if position == 0 {
                    keys.extend((1..photo.count()?).map(|position| face_items::item_key(&image, position)));
                }
            }
        }
        Ok(photos)
    }

    /// Fails if a person number is taken by another worker's row. Checked before the transaction for rows that are written
    /// after it: events cannot be undone.
    async fn ensure_numbers_free(&self, numbers: &[Key]) -> Result<(), CommitError> {
        let taken = self.batch_get(numbers).await?.into_iter().next();
        match taken.map(|row| row.key.sk.parse::<PersonId>()) {
            Some(Ok(person)) => Err(CommitError::NumberTaken(person)),
            Some(Err(e)) => Err(StoreError::Unreadable(e.to_string()).into()),
            None => Ok(()),
        }
    }

    /// Writes the rows that did not fit into the transaction. If it is interrupted, the photo's state stays marked as
    /// pending, and the next commit of the photo continues.
    async fn write_deferred(&self, plan: &TransactionPlan, commit: &Commit) -> Result<(), CommitError> {
        for mut batch in plan.deferred_batches(&self.tables.log)? {
            while !batch.is_empty() {
                match transact(&self.client, &batch).await {
                    Ok(()) => break,
                    Err(TransactionError::Store(error)) => return Err(error.into()),
                    Err(TransactionError::ConditionFailed(reasons)) => {
                        let has_failed =
                            |n: usize| reasons.get(n).and_then(|r| r.code()) == Some("ConditionalCheckFailed");
                        let is_photo = |action: &Action| matches!(action.target, ActionTarget::Photo);
                        let moved = batch.iter().enumerate().any(|(n, action)| is_photo(action) && has_failed(n));
                        // Another worker has committed the photo since: it writes the rows of its own event.
                        if moved && !commit.events.is_empty() {
                            return Ok(());
                        }
                        if moved {
                            return Err(CommitError::PhotoMoved);
                        }
                        // A failed condition of any other row means that the row is already as it should be.
                        let mut n = 0..;
                        batch.retain(|_| !n.next().is_some_and(has_failed));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the level of the log that the commit is planned for: the one known, unless the commit needs a higher one.
    async fn level_for(&self, commit: &Commit) -> Result<Level, StoreError> {
        let level = match commit.level_after(self.level()) {
            Ok(_) => self.level(),
            Err(_) => self.read_level().await?,
        };
        commit.level_after(level)?;
        Ok(level)
    }

    /// Returns the level of the log if it allows what DynamoDB refuses to store in one item. Fails if it does not, or if the commit has
    /// nothing that is stored in several items.
    async fn level_of_several_items(&self, commit: &Commit, reason: String) -> Result<Level, StoreError> {
        let form = if face_items::has_several_items(commit) {
            "a photo with this many faces"
        } else if commit.events.iter().any(log_items::has_several_items) {
            "an event of this size"
        } else {
            return Err(StoreError::Refused(reason));
        };
        match self.read_level().await? {
            level if level < SEVERAL_ITEMS => {
                Err(StoreError::level_too_low(format!("{form} ({reason})"), SEVERAL_ITEMS, level))
            }
            level => Ok(level),
        }
    }

    /// Commits (optimistic concurrency): plans a transaction on assumptions, sends it, and if a condition fails corrects the
    /// assumptions by the items that DynamoDB returns, until it succeeds or a conflict is for the caller to resolve.
    pub(super) async fn commit_with_retry(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        let mut level = self.level_for(commit).await?;
        let mut assumptions = self.initial_assumptions(commit).await?;
        let mut backoff = backoff();
        for attempt in 0.. {
            let plan = TransactionPlan::new(commit, &assumptions, &self.tables, self.lanes, level)?;
            if plan.core.is_empty() {
                return Ok(Vec::new());
            }
            let sent = match limits::check(&plan.core) {
                Ok(()) => {
                    self.ensure_numbers_free(&plan.deferred_person_keys()).await?;
                    transact(&self.client, &plan.core).await
                }
                Err(error) => Err(TransactionError::Store(error)),
            };
            match sent {
                Ok(()) => return self.finish_commit(plan, commit).await,
                Err(TransactionError::Store(StoreError::Refused(reason))) if level < SEVERAL_ITEMS => {
                    level = self.level_of_several_items(commit, reason).await?;
                    continue;
                }
                Err(TransactionError::Store(error)) => return Err(error.into()),
                Err(TransactionError::ConditionFailed(reasons)) => {
                    assumptions.correct(commit, &plan.core, &reasons)?;
                    let touched = face_items::touched(commit).into_iter();
                    let missing = touched.filter(|image| !assumptions.faces.contains_key(image)).collect();
                    assumptions.faces.extend(self.stored_face_items(missing).await?);
                }
            }
            // The first failure tells what is stored, so the second attempt follows at once. Further failures are conflicts
            // with other workers.
            if attempt > 0 {
                let contended = || {
                    let message = "DynamoDB TransactWriteItems: conflict: other workers keep writing to the same lane";
                    StoreError::Dependency(DependencyError::Throttled(message.to_owned()))
                };
                let pause = backoff.next().ok_or_else(contended)?;
                tracing::debug!(
                    service = "DynamoDB",
                    operation = "TransactWriteItems",
                    attempt,
                    pause_ms = pause.as_millis() as u64,
                    "conflict with another worker, retry after backoff"
                );
                tokio::time::sleep(pause).await;
            }
        }
        Ok(Vec::new())
    }

    /// Updates the known heads after the transaction and writes the deferred rows.
    async fn finish_commit(&self, plan: TransactionPlan, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        plan.recorded.iter().for_each(|recorded| self.advance_head(recorded.lane, recorded.seq));
        let image = commit.photo.as_ref().map(|guard| &guard.image);
        if let Some(image) = image {
            self.set_unfinished(image, !plan.deferred.is_empty());
        }
        self.write_deferred(&plan, commit).await?;
        if let Some(image) = image {
            self.set_unfinished(image, false);
        }
        Ok(plan.recorded)
    }
}
