//! Reading: consistently wherever an answer is decided on, and every answer to its end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{Get, KeysAndAttributes, TransactGetItem};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use sparks_domain::{FaceId, ImageId, Key, Lane, PersonId, Position, Recorded, Seq, Timestamp};
use sparks_engine::{DecidedFace, Filter, IdentityTail, Page, Query, StoreError, StoredFace, Templates};

use super::{
    DynamoStore, faces,
    log::{self, Lesson},
    value::{Fields, item, key, key_fields, number, s, text},
};
use crate::trouble::{Trouble, patiently, pauses};

/// As many rows as one request gets.
const BATCH: usize = 100;

/// What DynamoDB says to a transaction that does not come about.
const CANCELLED: &str = "TransactionCanceledException";

/// Requests at once, where there are many to make.
const AT_ONCE: usize = 8;

/// A question to one partition, answered to its end or as far as is wanted.
pub(super) struct Question<'a> {
    pub table: &'a str,
    pub pk: &'a str,
    /// What the sort key must be like, and with what.
    pub sort: Option<(&'static str, String)>,
    /// What is wanted of the rows, if not all.
    pub only: Option<&'static str>,
    pub most: usize,
}

impl DynamoStore {
    /// One row, as of now.
    pub(super) async fn one(&self, table: &str, key: Fields) -> Result<Option<Fields>, StoreError> {
        let get = || self.client.get_item().table_name(table).set_key(Some(key.clone())).consistent_read(true).send();
        Ok(patiently(get).await?.item)
    }

    /// The rows of these keys that exist, as of now.
    pub(super) async fn batch(&self, table: &str, keys: Vec<Fields>) -> Result<Vec<Fields>, StoreError> {
        let chunks: Vec<Vec<Fields>> = unique(keys).chunks(BATCH).map(<[Fields]>::to_vec).collect();
        let asked = chunks.into_iter().map(|keys| self.batch_of(HashMap::from([(table.to_owned(), keys)])));
        let found: Vec<_> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flat_map(|mut found| found.remove(table).unwrap_or_default()).collect())
    }

    /// Rows of several tables in one request, which is repeated for what it left out.
    async fn batch_of(
        &self,
        mut wanted: HashMap<String, Vec<Fields>>,
    ) -> Result<HashMap<String, Vec<Fields>>, StoreError> {
        let mut found: HashMap<String, Vec<Fields>> = HashMap::new();
        let mut pauses = pauses();
        loop {
            let mut requests = HashMap::new();
            for (table, keys) in wanted.iter().filter(|(_, keys)| !keys.is_empty()) {
                let request = KeysAndAttributes::builder().set_keys(Some(keys.clone())).consistent_read(true).build();
                let request = request.map_err(|error| StoreError::Unreadable(error.to_string()))?;
                requests.insert(table.clone(), request);
            }
            if requests.is_empty() {
                return Ok(found);
            }
            let get = || self.client.batch_get_item().set_request_items(Some(requests.clone())).send();
            let answer = patiently(get).await?;
            for (table, rows) in answer.responses.unwrap_or_default() {
                found.entry(table).or_default().extend(rows);
            }
            let left = answer.unprocessed_keys.unwrap_or_default();
            wanted = left.into_iter().map(|(table, keys)| (table, keys.keys)).collect();
            if !wanted.is_empty() {
                let busy = || StoreError::Busy("the table does not keep up with reading".into());
                tokio::time::sleep(pauses.next().ok_or_else(busy)?).await;
            }
        }
    }

    /// The rows of these keys that exist, each transaction seen whole or not at all.
    async fn whole(&self, table: &str, keys: Vec<Fields>) -> Result<Vec<Fields>, StoreError> {
        let mut found = Vec::new();
        for keys in unique(keys).chunks(BATCH) {
            let get = |key: &Fields| Get::builder().table_name(table).set_key(Some(key.clone())).build();
            let gets = keys.iter().map(|key| Ok(TransactGetItem::builder().get(get(key)?).build()));
            let gets = gets.collect::<Result<Vec<_>, aws_sdk_dynamodb::error::BuildError>>();
            let gets = gets.map_err(|error| StoreError::Unreadable(error.to_string()))?;
            let mut pauses = pauses();
            let answer = loop {
                match self.client.transact_get_items().set_transact_items(Some(gets.clone())).send().await {
                    Ok(answer) => break answer,
                    // Reading is cancelled for nothing but what is being written.
                    Err(error) => match (Trouble::from(error), pauses.next()) {
                        (trouble, Some(pause)) if trouble.is_busy() || trouble.is(&[CANCELLED]) => {
                            tokio::time::sleep(pause).await;
                        }
                        (trouble, _) => return Err(trouble.into()),
                    },
                }
            };
            found.extend(answer.responses.unwrap_or_default().into_iter().filter_map(|row| row.item));
        }
        Ok(found)
    }

    /// The rows of a partition, as of now.
    pub(super) async fn ask(&self, question: Question<'_>) -> Result<Vec<Fields>, StoreError> {
        let Question { table, pk, sort, only, most } = question;
        let (mut rows, mut start) = (Vec::new(), None);
        let condition = match &sort {
            None => "PK = :pk".to_owned(),
            Some(("begins_with", _)) => "PK = :pk AND begins_with(SK, :sk)".to_owned(),
            Some((comparison, _)) => format!("PK = :pk AND SK {comparison} :sk"),
        };
        let mut values = Fields::from([(":pk".to_owned(), s(pk))]);
        values.extend(sort.map(|(_, sk)| (":sk".to_owned(), s(sk))));
        loop {
            let room = i32::try_from(most - rows.len()).unwrap_or(i32::MAX);
            let query = || {
                let query = self.client.query().table_name(table).consistent_read(true).limit(room);
                let query =
                    query.key_condition_expression(&condition).set_projection_expression(only.map(str::to_owned));
                let query = query.set_expression_attribute_values(Some(values.clone()));
                query.set_exclusive_start_key(Clone::clone(&start)).send()
            };
            let answer = patiently(query).await?;
            rows.extend(answer.items.unwrap_or_default());
            start = answer.last_evaluated_key;
            if start.is_none() || rows.len() >= most {
                return Ok(rows);
            }
        }
    }

    /// How far every lane has come.
    pub(super) async fn read_heads(&self) -> Result<Position, StoreError> {
        Ok(self.head_rows().await?.into_iter().map(|(lane, seq, _)| (lane, seq)).collect())
    }

    /// Every lane, how far it has come, and what else its head says.
    async fn head_rows(&self) -> Result<Vec<(Lane, Seq, Fields)>, StoreError> {
        let question = Question { table: &self.tables.log, pk: log::HEADS, sort: None, only: None, most: usize::MAX };
        let rows = self.ask(question).await?.into_iter().map(|row| {
            let (lane, seq) = log::head(&row)?;
            self.has_come(lane, seq);
            Ok((lane, seq, row))
        });
        rows.collect()
    }

    /// At most `most` events of the lane after this one.
    async fn lane(&self, lane: Lane, after: Seq, most: usize) -> Result<Vec<Recorded>, StoreError> {
        let rows = self.lane_rows(lane, after, most, None).await?;
        rows.iter().map(|row| log::recorded(lane, row)).collect()
    }

    /// What at most `most` events of the lane after this one taught, without reading them.
    pub(super) async fn lessons(&self, lane: Lane, after: Seq, most: usize) -> Result<Vec<Lesson>, StoreError> {
        let rows = self.lane_rows(lane, after, most, Some(log::LESSON)).await?;
        rows.iter().map(|row| log::lesson(lane, row)).collect()
    }

    /// The rows of the lane after this one. A transaction may be seen in parts, but an event never before those that its lane
    /// has before it.
    async fn lane_rows(
        &self,
        lane: Lane,
        Seq(after): Seq,
        most: usize,
        only: Option<&'static str>,
    ) -> Result<Vec<Fields>, StoreError> {
        let mut pauses = pauses();
        loop {
            let sort = Some((">=", log::place(Seq(after + 1))));
            let question = Question { table: &self.tables.log, pk: &log::partition(lane), sort, only, most };
            let rows = self.ask(question).await?;
            let places: Vec<Seq> = rows.iter().map(|row| log::place_of(lane, row)).collect::<Result<_, _>>()?;
            let gap = (after + 1..).zip(&places).find(|(seq, place)| **place != Seq(*seq));
            let Some((missing, _)) = gap else { return Ok(rows) };
            let hole = || StoreError::Unreadable(format!("event {missing} of lane {lane} is not in the log"));
            tokio::time::sleep(pauses.next().ok_or_else(hole)?).await;
        }
    }

    /// The events after this position: a fair share of each lane that has moved, by time.
    pub(super) async fn events(&self, after: &Position, most: usize) -> Result<Vec<Recorded>, StoreError> {
        let heads = self.read_heads().await?;
        let moved = heads.lanes().filter(|(lane, head)| *head > after.in_lane(*lane)).map(|(lane, _)| lane);
        let rows = self.of_each_lane(moved.collect(), after, most, None).await?;
        Ok(by_time(rows.iter().map(|(lane, row)| log::recorded(*lane, row)).collect::<Result<_, _>>()?))
    }

    /// What the events after this position taught: a fair share of each lane that has moved. A lane in which nobody taught
    /// anything is passed without a look: workers would otherwise each read what all of them write.
    pub(super) async fn all_lessons(&self, after: &Position, most: usize) -> Result<Vec<Lesson>, StoreError> {
        let (mut teaching, mut lessons) = (Vec::new(), Vec::new());
        for (lane, seq, head) in self.head_rows().await? {
            if seq <= after.in_lane(lane) {
                continue;
            }
            match log::has_taught_since(&head, after.in_lane(lane))? {
                true => teaching.push(lane),
                false => lessons.push(Lesson { lane, seq, templates: Vec::new() }),
            }
        }
        let rows = self.of_each_lane(teaching, after, most, Some(log::LESSON)).await?;
        for (lane, row) in &rows {
            lessons.push(log::lesson(*lane, row)?);
        }
        Ok(lessons)
    }

    /// The rows of these lanes after this position, a fair share of each.
    async fn of_each_lane(
        &self,
        mut lanes: Vec<Lane>,
        after: &Position,
        most: usize,
        only: Option<&'static str>,
    ) -> Result<Vec<(Lane, Fields)>, StoreError> {
        // Where there are more lanes than are to be read, the others are next.
        lanes.truncate(most);
        let share = (most / lanes.len().max(1)).max(1);
        let asked = lanes.into_iter().map(|lane| async move {
            let rows = self.lane_rows(lane, after.in_lane(lane), share, only).await?;
            Ok::<_, StoreError>(rows.into_iter().map(|row| (lane, row)).collect::<Vec<_>>())
        });
        let found: Vec<_> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    pub(super) async fn event_at(&self, lane: Lane, seq: Seq) -> Result<Option<Recorded>, StoreError> {
        let sort = Some(("begins_with", format!("{}#", log::place(seq))));
        let question = Question { table: &self.tables.log, pk: &log::partition(lane), sort, only: None, most: 1 };
        let row = self.ask(question).await?.pop();
        row.map(|row| log::recorded(lane, &row)).transpose()
    }

    /// Identity events up to the head, and the counter: one request where nothing has happened.
    pub(super) async fn identity_tail(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        let counter = Key::counter();
        let wanted = HashMap::from([
            (self.tables.log.clone(), vec![log::head_key(Lane::IDENTITY)]),
            (self.tables.platform.clone(), vec![key_fields(&counter.pk, &counter.sk)]),
        ]);
        let found = self.batch_of(wanted).await?;
        let row = |table: &str| found.get(table).and_then(|rows| rows.first());
        let seq = row(&self.tables.log).map_or(Ok(Seq(0)), |head| log::head(head).map(|(_, seq)| seq))?;
        let count = row(&self.tables.platform).map_or(Ok(0), |row| number(row, "limit"))?;
        let counter = u32::try_from(count);
        let counter = counter.map_err(|_| StoreError::Unreadable(format!("UNKNOWN_PERSONS.limit is {count}")))?;
        self.has_come(Lane::IDENTITY, seq);
        let events = if seq > after { self.identity_events(after, seq).await? } else { Vec::new() };
        // What came while we read is not left out: somebody else's count would not fit it.
        let seq = events.last().map_or(seq, |last| last.seq.max(seq));
        self.has_come(Lane::IDENTITY, seq);
        Ok(IdentityTail { events, seq, counter })
    }

    /// The identity events, dense up to the head at least: the head may be seen before what it counts.
    async fn identity_events(&self, after: Seq, head: Seq) -> Result<Vec<Recorded>, StoreError> {
        let mut pauses = pauses();
        loop {
            let events = self.lane(Lane::IDENTITY, after, usize::MAX).await?;
            if events.last().is_some_and(|recorded| recorded.seq >= head) {
                return Ok(events);
            }
            let hole = || StoreError::Unreadable(format!("the log does not reach its head at {head}"));
            tokio::time::sleep(pauses.next().ok_or_else(hole)?).await;
        }
    }

    /// The faces that were taught, where they are still kept. An event may be seen before the rest of its transaction, and a
    /// face that is taken for erased would be a stranger for ever: what seems to be missing is asked for once more, where
    /// half a transaction cannot be seen.
    pub(super) async fn templates_of(&self, lessons: Vec<Lesson>, after: &Position) -> Result<Templates, StoreError> {
        let mut read = after.clone();
        lessons.iter().for_each(|lesson| read.pass(lesson.lane, lesson.seq));
        let names: Vec<FaceId> = lessons.into_iter().flat_map(|lesson| lesson.templates).collect();
        let mut faces = self.kept(&names).await?;
        let seen: BTreeSet<&FaceId> = faces.iter().map(|kept| &kept.face).collect();
        let missing: Vec<FaceId> = names.into_iter().filter(|face| !seen.contains(face)).collect();
        if !missing.is_empty() {
            let rows = self.whole(&self.tables.faces, photo_keys(&missing)).await?;
            faces.extend(among(&missing, &rows)?);
        }
        Ok(Templates { faces: faces.into_iter().filter(|kept| kept.template).collect(), read })
    }

    /// These faces, where they are kept.
    pub(super) async fn kept(&self, wanted: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        among(wanted, &self.batch(&self.tables.faces, photo_keys(wanted)).await?)
    }

    /// The faces of these persons, the latest of each lane first.
    pub(super) async fn faces_led_to(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        let persons: BTreeSet<PersonId> = persons.iter().copied().collect();
        let mut found = Vec::new();
        for item in self.photos_led_to(&persons).await?.values() {
            let is_theirs = |decided: &DecidedFace| decided.kept.person.is_some_and(|who| persons.contains(&who));
            found.extend(faces::faces(item)?.into_iter().filter(is_theirs));
        }
        found.sort_by(|a, b| b.seq.cmp(&a.seq).then(a.kept.face.n.cmp(&b.kept.face.n)));
        Ok(found)
    }

    /// The faces of all photos in which these persons may be.
    pub(super) async fn photos_led_to(
        &self,
        persons: &BTreeSet<PersonId>,
    ) -> Result<BTreeMap<ImageId, Fields>, StoreError> {
        let mut photos: BTreeMap<ImageId, Fields> = BTreeMap::new();
        for person in persons {
            let images = self.led_to(Some(*person), None, usize::MAX).await?;
            let unread = images.into_iter().filter(|image| !photos.contains_key(image)).collect();
            photos.extend(self.kept_faces(unread).await?);
        }
        Ok(photos)
    }

    /// The photos in which somebody's faces may be, by name, from this one on.
    pub(super) async fn led_to(
        &self,
        person: Option<PersonId>,
        from: Option<&ImageId>,
        most: usize,
    ) -> Result<Vec<ImageId>, StoreError> {
        let (pk, sort) = (faces::leads_to(person), from.map(|image| (">=", image.to_string())));
        let rows = self.ask(Question { table: &self.tables.faces, pk: &pk, sort, only: None, most }).await?;
        let image = |row: &Fields| {
            text(row, "SK")?.parse().map_err(|e| StoreError::Unreadable(format!("a row that leads to faces: {e}")))
        };
        rows.iter().map(image).collect()
    }

    /// A page of rows, of the table itself or of an index. Indexes lag behind, the table does not.
    pub(super) async fn page(&self, query: &Query) -> Result<Page, StoreError> {
        let (index, name, value, prefix) = match &query.filter {
            Filter::Partition { pk, sk_prefix } => (None, "PK", pk, sk_prefix.as_str()),
            Filter::EntityType(value) => (Some("entityType-PK-index"), "entityType", value, ""),
            Filter::UploadedBy(value) => (Some("uploadedBy-PK-index"), "uploadedBy", value, ""),
        };
        let narrowed = if prefix.is_empty() { "" } else { " AND begins_with(SK, :sk)" };
        let condition = format!("#key = :key{narrowed}");
        let mut values = Fields::from([(":key".to_owned(), s(value.as_str()))]);
        values.extend((!prefix.is_empty()).then(|| (":sk".to_owned(), s(prefix))));
        let start = |after: &Key| {
            let mut start = key_fields(&after.pk, &after.sk);
            start.insert(name.to_owned(), s(if index.is_some() { value } else { &after.pk }));
            start
        };
        let (mut page, mut after) = (Page::default(), query.after.as_ref().map(start));
        // One row more than asked for tells whether there are more.
        while page.items.len() <= query.limit {
            let room = i32::try_from(query.limit - page.items.len()).unwrap_or(i32::MAX - 1) + 1;
            let ask = || {
                let ask =
                    self.client.query().table_name(&self.tables.platform).set_index_name(index.map(str::to_owned));
                let ask = ask.consistent_read(index.is_none()).scan_index_forward(!query.backwards).limit(room);
                let ask = ask.key_condition_expression(&condition).expression_attribute_names("#key", name);
                let ask = ask.set_expression_attribute_values(Some(values.clone()));
                ask.set_exclusive_start_key(after.clone()).send()
            };
            let answer = patiently(ask).await?;
            for row in answer.items.unwrap_or_default() {
                page.items.push(item(&row)?);
            }
            after = answer.last_evaluated_key;
            if after.is_none() {
                break;
            }
        }
        if page.items.len() > query.limit {
            page.items.truncate(query.limit);
            page.last = page.items.last().map(|item| item.key.clone());
        }
        Ok(page)
    }
}

/// Where these faces are.
fn photo_keys(wanted: &[FaceId]) -> Vec<Fields> {
    let images: BTreeSet<&ImageId> = wanted.iter().map(|face| &face.image).collect();
    images.into_iter().map(faces::photo_key).collect()
}

/// Those of these faces that the photos' items keep.
fn among(wanted: &[FaceId], items: &[Fields]) -> Result<Vec<StoredFace>, StoreError> {
    let wanted: BTreeSet<&FaceId> = wanted.iter().collect();
    let mut found = Vec::new();
    for item in items {
        let kept = faces::faces(item)?.into_iter().map(|decided| decided.kept);
        found.extend(kept.filter(|kept| wanted.contains(&kept.face)));
    }
    Ok(found)
}

/// By time, as far as the order of each lane allows: clocks differ.
fn by_time(events: Vec<Recorded>) -> Vec<Recorded> {
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

/// A request may name a row once.
fn unique(keys: Vec<Fields>) -> Vec<Fields> {
    let mut seen = BTreeSet::new();
    let name = |fields: &Fields| key(fields).map_or_else(|_| String::new(), |key| format!("{key:?}"));
    keys.into_iter().filter(|fields| seen.insert(name(fields))).collect()
}
