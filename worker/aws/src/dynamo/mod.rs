//! The store on DynamoDB: the platform's table, the event log and the signatures. A commit is one `TransactWriteItems`.

pub(crate) mod attribute_value;
mod commit;
mod expression;
mod face_items;
mod limits;
pub(crate) mod log_items;
mod maintenance;
mod mutations;
mod read_faces;
mod read_log;
mod read_rows;
mod scan;
mod transact;
mod transaction_plan;
pub(crate) mod workers;

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use sparks_domain::{FaceId, ImageId, Item, Key, Lane, Level, PersonId, PhotoState, Position, RecordedEvent, Seq};
use sparks_engine::{
    Commit, CommitError, DecidedFace, IdentityTail, Page, Query, Store, StoreError, StoredFace, TemplateScope,
    Templates, readable_level,
};

pub(crate) use self::attribute_value::fields;
use self::{
    attribute_value::{Fields, key_fields, n, number},
    log_items::PhotoLanes,
};
use crate::{connect::Connection, retry::with_retry};

/// The names of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// The platform's table.
    pub platform: String,
    /// The event log.
    pub log: String,
    /// The signatures of faces.
    pub faces: String,
}

/// The platform's table, the event log and the signatures.
pub struct DynamoStore {
    client: Client,
    tables: Tables,
    lanes: PhotoLanes,
    /// The heads of the lanes when they were last read. May be stale: every commit checks them by a condition.
    heads: Mutex<Position>,
    /// The reader level of the log when it was last read. May be too low, as levels only rise: then lower forms are written.
    level: AtomicU32,
    /// Photos with rows of their last event still to write: the next commit of such a photo writes them.
    unfinished: Mutex<HashSet<ImageId>>,
}

impl DynamoStore {
    /// Opens the tables, which must exist. A new log gets this many lanes for photos; an existing one keeps its own number.
    pub async fn open(connection: &Connection, tables: Tables, lanes: u16) -> Result<Self, StoreError> {
        let client = connection.dynamodb();
        let lanes = Self::ensure_lane_count(&client, &tables, lanes).await?;
        Ok(Self::new(client, tables, lanes))
    }

    /// Opens the tables without writing to them; `None` if the log is new.
    pub(crate) async fn open_existing(connection: &Connection, tables: Tables) -> Result<Option<Self>, StoreError> {
        let client = connection.dynamodb();
        let lanes = Self::read_lane_count(&client, &tables).await?;
        Ok(lanes.map(|lanes| Self::new(client, tables, lanes)))
    }

    fn new(client: Client, tables: Tables, lanes: PhotoLanes) -> Self {
        let (heads, unfinished) = (Mutex::default(), Mutex::default());
        Self { client, tables, lanes, heads, level: AtomicU32::new(Level::FIRST.0), unfinished }
    }

    async fn ensure_lane_count(client: &Client, tables: &Tables, wanted: u16) -> Result<PhotoLanes, StoreError> {
        let mut row = lanes_key();
        row.insert("lanes".to_owned(), n(wanted.max(1)));
        let put = || {
            let condition = "attribute_not_exists(PK)";
            client.put_item().table_name(&tables.log).set_item(Some(row.clone())).condition_expression(condition).send()
        };
        match with_retry(put).await {
            Ok(_) => return Ok(PhotoLanes(wanted.max(1))),
            Err(error) if error.has_code(&["ConditionalCheckFailedException"]) => {}
            Err(error) if error.has_code(&["ResourceNotFoundException"]) => {
                let message = format!("table {} does not exist; create it with `sparks setup`", tables.log);
                return Err(StoreError::Unreadable(message));
            }
            Err(error) => return Err(error.into()),
        }
        Self::read_lane_count(client, tables).await?.ok_or_else(no_lane_count)
    }

    async fn read_lane_count(client: &Client, tables: &Tables) -> Result<Option<PhotoLanes>, StoreError> {
        let get = || client.get_item().table_name(&tables.log).set_key(Some(lanes_key())).consistent_read(true).send();
        let Some(found) = with_retry(get).await?.item else { return Ok(None) };
        let lanes = u16::try_from(number(&found, "lanes")?).ok().filter(|lanes| *lanes > 0);
        lanes.map(PhotoLanes).map(Some).ok_or_else(no_lane_count)
    }

    /// Returns the reader level of the log when it was last read.
    fn level(&self) -> Level {
        Level(self.level.load(Ordering::Relaxed))
    }

    /// Parses and remembers the level that the head of the identity lane holds. Fails if this release cannot read it.
    fn note_level(&self, head: Option<&Fields>) -> Result<Level, StoreError> {
        let level = readable_level(head.map_or(Ok(Level::FIRST), log_items::parse_level)?)?;
        self.level.fetch_max(level.0, Ordering::Relaxed);
        Ok(level)
    }

    /// Reads the reader level of the log.
    async fn read_level(&self) -> Result<Level, StoreError> {
        let head = self.get_row(&self.tables.log, log_items::head_key(Lane::IDENTITY)).await?;
        self.note_level(head.as_ref())
    }

    fn heads(&self) -> Position {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn advance_head(&self, lane: Lane, seq: Seq) {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).advance(lane, seq);
    }

    fn is_unfinished(&self, image: &ImageId) -> bool {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).contains(image)
    }

    fn set_unfinished(&self, image: &ImageId, unfinished: bool) {
        let mut images = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        if unfinished {
            images.insert(image.clone());
        } else {
            images.remove(image);
        }
    }
}

fn lanes_key() -> Fields {
    key_fields("LOG", "LANES")
}

fn no_lane_count() -> StoreError {
    StoreError::Unreadable("the event log has no valid number of lanes".into())
}

#[async_trait]
impl Store for DynamoStore {
    async fn commit(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        self.commit_with_retry(commit).await
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        let Some(fields) = self.get_row(&self.tables.log, log_items::state_key(image)).await? else { return Ok(None) };
        let (state, pending) = log_items::parse_state(&fields)?;
        if pending {
            self.set_unfinished(image, true);
        }
        Ok(Some(state))
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        self.identity_tail(after).await
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        self.events(after, most).await
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<RecordedEvent>, StoreError> {
        self.read_event(self.lanes.of(image), seq).await
    }

    async fn templates(&self, after: &Position, scope: TemplateScope, most: usize) -> Result<Templates, StoreError> {
        match scope {
            TemplateScope::Everything => self.templates_of(self.all_lane_templates(after, most).await?, after).await,
            // The identity head was read just before: if the lane has not moved, there is nothing to read.
            TemplateScope::Persons if after.in_lane(Lane::IDENTITY) >= self.heads().in_lane(Lane::IDENTITY) => {
                Ok(Templates { faces: Vec::new(), read: after.clone() })
            }
            TemplateScope::Persons => {
                let templates = self.lane_templates(Lane::IDENTITY, after.in_lane(Lane::IDENTITY), most).await?;
                self.templates_of(templates, after).await
            }
        }
    }

    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        self.stored_faces(faces).await
    }

    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        self.faces_of_persons(persons).await
    }

    /// Writes to the log's table and reads the platform's.
    async fn check(&self) -> Result<(), StoreError> {
        let row = key_fields("CHECK", "CHECK");
        let put = || self.client.put_item().table_name(&self.tables.log).set_item(Some(row.clone())).send();
        with_retry(put).await?;
        self.get(&Key::counter()).await?;
        Ok(())
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        let fields = self.get_row(&self.tables.platform, key_fields(&key.pk, &key.sk)).await?;
        fields.as_ref().map(attribute_value::item).transpose()
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let keys = keys.iter().map(|key| key_fields(&key.pk, &key.sk)).collect();
        self.get_rows(&self.tables.platform, keys).await?.iter().map(attribute_value::item).collect()
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        self.page(query).await
    }
}
