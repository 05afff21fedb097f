//! Reads of the event log: heads, events and the templates recorded with events.

use std::collections::{BTreeMap, HashMap};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use sparks_domain::{Key, Lane, Position, RecordedEvent, Seq, Timestamp};
use sparks_engine::{IdentityTail, StoreError};

use super::{
    DynamoStore,
    attribute_value::{Fields, key_fields, number},
    log_items::{self, EventTemplates},
    read_rows::{CONCURRENCY, PartitionQuery},
};
use crate::retry::backoff;

impl DynamoStore {
    /// Reads the heads of all lanes.
    pub(super) async fn read_heads(&self) -> Result<Position, StoreError> {
        Ok(self.head_rows().await?.into_iter().map(|(lane, seq, _)| (lane, seq)).collect())
    }

    /// Reads the heads of all lanes, with their items.
    async fn head_rows(&self) -> Result<Vec<(Lane, Seq, Fields)>, StoreError> {
        let query = PartitionQuery {
            table: &self.tables.log,
            pk: log_items::HEADS,
            sort_key: None,
            projection: None,
            limit: usize::MAX,
        };
        let rows = self.query_partition(query).await?.into_iter().map(|row| {
            let (lane, seq) = log_items::parse_head(&row)?;
            self.advance_head(lane, seq);
            if lane == Lane::IDENTITY {
                self.note_level(Some(&row))?;
            }
            Ok((lane, seq, row))
        });
        rows.collect()
    }

    /// Reads at most `most` events of the lane after this one.
    async fn lane_events(&self, lane: Lane, after: Seq, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        let rows = self.lane_rows(lane, after, most, None).await?;
        rows.iter().map(|row| log_items::parse_event(lane, row)).collect()
    }

    /// Reads the templates of at most `most` events of the lane after this one, without the events.
    pub(super) async fn lane_templates(
        &self,
        lane: Lane,
        after: Seq,
        most: usize,
    ) -> Result<Vec<EventTemplates>, StoreError> {
        let rows = self.lane_rows(lane, after, most, Some(log_items::TEMPLATES_PROJECTION)).await?;
        rows.iter().map(|row| log_items::parse_event_templates(lane, row)).collect()
    }

    /// Reads the items of the lane after this one. A query may see a transaction partially, so a gap is read again until it
    /// closes.
    async fn lane_rows(
        &self,
        lane: Lane,
        Seq(after): Seq,
        most: usize,
        projection: Option<&'static str>,
    ) -> Result<Vec<Fields>, StoreError> {
        let mut backoff = backoff();
        loop {
            let sort_key = Some((">=", log_items::sort_key_prefix(Seq(after + 1))));
            let pk = &log_items::lane_partition(lane);
            let query = PartitionQuery { table: &self.tables.log, pk, sort_key, projection, limit: most };
            let rows = self.query_partition(query).await?;
            let positions: Vec<Seq> =
                rows.iter().map(|row| log_items::event_seq(lane, row)).collect::<Result<_, _>>()?;
            let gap = (after + 1..).zip(&positions).find(|(seq, position)| **position != Seq(*seq));
            let Some((missing, _)) = gap else {
                return if projection.is_none() { self.complete_events(lane, rows).await } else { Ok(rows) };
            };
            let gap = || StoreError::Unreadable(format!("event {missing} of lane {lane} is missing from the log"));
            tokio::time::sleep(backoff.next().ok_or_else(gap)?).await;
        }
    }

    /// Adds the parts of their data that other items hold to these events. `TransactGetItems` does not see partial
    /// transactions.
    async fn complete_events(&self, lane: Lane, mut events: Vec<Fields>) -> Result<Vec<Fields>, StoreError> {
        for event in &mut events {
            let keys = log_items::part_keys(lane, event)?;
            if !keys.is_empty() {
                let parts = self.transact_get(&self.tables.log, keys).await?;
                log_items::append_parts(lane, event, parts)?;
            }
        }
        Ok(events)
    }

    /// Reads events after this position: an equal share of each lane that has moved, by time.
    pub(super) async fn events(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        let heads = self.read_heads().await?;
        let moved = heads.lanes().filter(|(lane, head)| *head > after.in_lane(*lane)).map(|(lane, _)| lane);
        let rows = self.rows_of_lanes(moved.collect(), after, most, None).await?;
        Ok(by_time(rows.iter().map(|(lane, row)| log_items::parse_event(*lane, row)).collect::<Result<_, _>>()?))
    }

    /// Reads the templates of events after this position: an equal share of each lane that has moved. A lane without an
    /// enrollment is skipped: otherwise every worker would read what all of them write.
    pub(super) async fn all_lane_templates(
        &self,
        after: &Position,
        most: usize,
    ) -> Result<Vec<EventTemplates>, StoreError> {
        let (mut enrolling, mut templates) = (Vec::new(), Vec::new());
        for (lane, seq, head) in self.head_rows().await? {
            if seq <= after.in_lane(lane) {
                continue;
            }
            match log_items::has_enrollment_since(&head, after.in_lane(lane))? {
                true => enrolling.push(lane),
                false => templates.push(EventTemplates { lane, seq, templates: Vec::new() }),
            }
        }
        let rows = self.rows_of_lanes(enrolling, after, most, Some(log_items::TEMPLATES_PROJECTION)).await?;
        for (lane, row) in &rows {
            templates.push(log_items::parse_event_templates(*lane, row)?);
        }
        Ok(templates)
    }

    /// Reads the items of these lanes after this position, an equal share of each.
    async fn rows_of_lanes(
        &self,
        mut lanes: Vec<Lane>,
        after: &Position,
        most: usize,
        projection: Option<&'static str>,
    ) -> Result<Vec<(Lane, Fields)>, StoreError> {
        // Lanes beyond the limit are read by the next call.
        lanes.truncate(most);
        let share = (most / lanes.len().max(1)).max(1);
        let requests = lanes.into_iter().map(|lane| async move {
            let rows = self.lane_rows(lane, after.in_lane(lane), share, projection).await?;
            Ok::<_, StoreError>(rows.into_iter().map(|row| (lane, row)).collect::<Vec<_>>())
        });
        let found: Vec<_> = stream::iter(requests).buffered(CONCURRENCY).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    pub(super) async fn read_event(&self, lane: Lane, seq: Seq) -> Result<Option<RecordedEvent>, StoreError> {
        let sort_key = Some(("begins_with", format!("{}#", log_items::sort_key_prefix(seq))));
        let pk = &log_items::lane_partition(lane);
        let query = PartitionQuery { table: &self.tables.log, pk, sort_key, projection: None, limit: 1 };
        let rows = self.query_partition(query).await?;
        let row = self.complete_events(lane, rows).await?.pop();
        row.map(|row| log_items::parse_event(lane, &row)).transpose()
    }

    /// Reads the identity events up to the head, and the person counter: one request if there are no new events.
    pub(super) async fn identity_tail(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        let counter = Key::counter();
        let wanted = HashMap::from([
            (self.tables.log.clone(), vec![log_items::head_key(Lane::IDENTITY)]),
            (self.tables.platform.clone(), vec![key_fields(&counter.pk, &counter.sk)]),
        ]);
        let found = self.get_rows_of_tables(wanted).await?;
        let row = |table: &str| found.get(table).and_then(|rows| rows.first());
        let seq = row(&self.tables.log).map_or(Ok(Seq(0)), |head| log_items::parse_head(head).map(|(_, seq)| seq))?;
        let level = self.note_level(row(&self.tables.log))?;
        let count = row(&self.tables.platform).map_or(Ok(0), |row| number(row, "limit"))?;
        let counter = u32::try_from(count);
        let counter = counter.map_err(|_| StoreError::Unreadable(format!("UNKNOWN_PERSONS.limit is {count}")))?;
        self.advance_head(Lane::IDENTITY, seq);
        let events = if seq > after { self.identity_events(after, seq).await? } else { Vec::new() };
        // Events that arrived during the read are included in the returned position.
        let seq = events.last().map_or(seq, |last| last.seq.max(seq));
        self.advance_head(Lane::IDENTITY, seq);
        Ok(IdentityTail { events, seq, counter, level })
    }

    /// Reads the identity events, without gaps at least up to the head: the head may be visible before its event.
    async fn identity_events(&self, after: Seq, head: Seq) -> Result<Vec<RecordedEvent>, StoreError> {
        let mut backoff = backoff();
        loop {
            let events = self.lane_events(Lane::IDENTITY, after, usize::MAX).await?;
            if events.last().is_some_and(|recorded| recorded.seq >= head) {
                return Ok(events);
            }
            let incomplete = || StoreError::Unreadable(format!("the identity lane ends before its head {head}"));
            tokio::time::sleep(backoff.next().ok_or_else(incomplete)?).await;
        }
    }
}

/// Sorts by time, but keeps the order of each lane: clocks of workers differ.
fn by_time(events: Vec<RecordedEvent>) -> Vec<RecordedEvent> {
    let mut latest: BTreeMap<Lane, Timestamp> = BTreeMap::new();
    let timed = events.into_iter().map(|recorded| {
        let time = latest.entry(recorded.lane).or_insert(recorded.when);
        *time = (*time).max(recorded.when);
        (*time, recorded)
    });
    let mut timed: Vec<_> = timed.collect();
    timed.sort_by_key(|(time, recorded)| (*time, recorded.lane, recorded.seq));
    timed.into_iter().map(|(_, recorded)| recorded).collect()
}
