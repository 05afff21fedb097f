//! Announcements of workers, as items of the log's table.
//!
//! A worker takes a numbered item whose announcement has expired, or else a new number: no role may delete from the log's table,
//! and so there are no more items than there ever were workers at the same time.

use async_trait::async_trait;
use sparks_domain::{Level, Timestamp};
use sparks_engine::{LogStatus, StoreError, WorkerAnnouncement, WorkerRegistry};

use super::{
    DynamoStore,
    attribute_value::{Fields, key_fields, n, number, s, text},
    read_rows::PartitionQuery,
};
use crate::{error::AwsError, retry::with_retry};

/// The partition of the announcements. The worker's role may write it without a transaction.
pub(crate) const WORKERS: &str = "WORKER";
/// The time of the last announcement, in milliseconds since 1970; 0 after the worker has stopped.
const SEEN: &str = "seen";

impl DynamoStore {
    /// Returns the announcements, those of stopped workers included, with their sort keys.
    async fn announcements(&self) -> Result<Vec<(String, WorkerAnnouncement)>, StoreError> {
        let query = PartitionQuery {
            table: &self.tables.log,
            pk: WORKERS,
            sort_key: None,
            projection: None,
            limit: usize::MAX,
        };
        self.query_partition(query).await?.iter().map(parse).collect()
    }

    /// Writes the announcement, unless the item is that of another worker that was seen after `expired`.
    async fn put_announcement(
        &self,
        slot: &str,
        worker: &WorkerAnnouncement,
        expired: Timestamp,
    ) -> Result<bool, AwsError> {
        let put = || {
            let put = self.client.put_item().table_name(&self.tables.log).set_item(Some(item(slot, worker)));
            put.condition_expression("attribute_not_exists(PK) OR #id = :id OR #seen <= :expired")
                .expression_attribute_names("#id", "id")
                .expression_attribute_names("#seen", SEEN)
                .expression_attribute_values(":id", s(&worker.id))
                .expression_attribute_values(":expired", n(expired.as_millis()))
                .send()
        };
        match with_retry(put).await {
            Ok(_) => Ok(true),
            Err(error) if error.has_code(&["ConditionalCheckFailedException"]) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl WorkerRegistry for DynamoStore {
    async fn announce(&self, worker: &WorkerAnnouncement) -> Result<(), StoreError> {
        let max_age = i64::try_from(LogStatus::MAX_ANNOUNCEMENT_AGE.as_millis()).unwrap_or(i64::MAX);
        let expired = Timestamp::from_millis(worker.seen.as_millis() - max_age);
        let mut known = self.announcements().await?;
        // Its own item first, then free ones.
        known.sort_by_key(|(_, announced)| announced.id != worker.id);
        let is_free = |announced: &WorkerAnnouncement| announced.id == worker.id || announced.seen <= expired;
        let free = known.iter().filter(|(_, announced)| is_free(announced)).map(|(slot, _)| slot.clone());
        let new = (known.len() + 1..).map(|number| format!("{number:05}"));
        for slot in free.chain(new) {
            if self.put_announcement(&slot, worker, expired).await? {
                break;
            }
        }
        Ok(())
    }

    async fn withdraw(&self, worker: &WorkerAnnouncement) -> Result<(), StoreError> {
        let stopped = WorkerAnnouncement { seen: Timestamp::from_millis(0), ..worker.clone() };
        for (slot, announced) in self.announcements().await? {
            if announced.id == worker.id {
                self.put_announcement(&slot, &stopped, stopped.seen).await?;
            }
        }
        Ok(())
    }

    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerAnnouncement>, StoreError> {
        let announced = self.announcements().await?.into_iter().map(|(_, announced)| announced);
        Ok(announced.filter(|announced| announced.seen >= since).collect())
    }

    fn knows_all_releases(&self) -> bool {
        false
    }
}

fn item(slot: &str, worker: &WorkerAnnouncement) -> Fields {
    let WorkerAnnouncement { id, host, version, level, seen } = worker;
    let mut item = key_fields(WORKERS, slot);
    item.extend([
        ("id".to_owned(), s(id)),
        ("host".to_owned(), s(host)),
        ("version".to_owned(), s(version)),
        ("level".to_owned(), n(level)),
        (SEEN.to_owned(), n(seen.as_millis())),
    ]);
    item
}

fn parse(item: &Fields) -> Result<(String, WorkerAnnouncement), StoreError> {
    let text = |name| text(item, name).map(str::to_owned);
    let level = u32::try_from(number(item, "level")?).unwrap_or_default();
    let seen = Timestamp::from_millis(i64::try_from(number(item, SEEN)?).unwrap_or(i64::MAX));
    let (id, host, version) = (text("id")?, text("host")?, text("version")?);
    Ok((text("SK")?, WorkerAnnouncement { id, host, version, level: Level(level), seen }))
}
