//! The store on DynamoDB: the platform's table, the log, and the signatures. A commit is one transaction.

mod expression;
mod faces;
pub(crate) mod log;
mod maintenance;
mod plan;
mod read;
mod rows;
mod transact;
pub(crate) mod value;
mod walk;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use sparks_domain::{FaceId, ImageId, Item, Key, Lane, PersonId, PhotoState, Position, Recorded, Seq};
use sparks_engine::{
    Commit, CommitError, DecidedFace, IdentityTail, Page, Query, Reach, Store, StoreError, StoredFace, Templates,
};

pub(crate) use self::value::fields;
use self::{
    log::Lanes,
    plan::{Knowledge, Plan, Stake},
    transact::{Undone, transact},
    value::{Fields, key_fields, n, number},
};
use crate::{
    connect::Connection,
    trouble::{patiently, pauses},
};

/// What the tables are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// The platform's own.
    pub platform: String,
    /// The log.
    pub log: String,
    /// What faces look like.
    pub faces: String,
}

/// Table, log and signatures in the cloud.
pub struct DynamoStore {
    client: Client,
    tables: Tables,
    lanes: Lanes,
    /// How far the lanes had come when somebody last looked: a guess that every commit checks.
    heads: Mutex<Position>,
    /// Photos that were left half written: whoever commits about them next does the rest.
    unfinished: Mutex<HashSet<ImageId>>,
}

impl DynamoStore {
    /// Opens the tables, which must be there. A log that is new gets so many lanes for photos; another one has its own.
    pub async fn open(connection: &Connection, tables: Tables, lanes: u16) -> Result<Self, StoreError> {
        let client = connection.dynamodb();
        let lanes = Self::settle_lanes(&client, &tables, lanes).await?;
        Ok(Self { client, tables, lanes, heads: Mutex::default(), unfinished: Mutex::default() })
    }

    async fn settle_lanes(client: &Client, tables: &Tables, wanted: u16) -> Result<Lanes, StoreError> {
        let key = || key_fields("LOG", "LANES");
        let mut made = key();
        made.insert("lanes".to_owned(), n(wanted.max(1)));
        let put = || {
            let condition = "attribute_not_exists(PK)";
            client
                .put_item()
                .table_name(&tables.log)
                .set_item(Some(made.clone()))
                .condition_expression(condition)
                .send()
        };
        match patiently(put).await {
            Ok(_) => return Ok(Lanes(wanted.max(1))),
            Err(trouble) if trouble.is(&["ConditionalCheckFailedException"]) => {}
            Err(trouble) if trouble.is(&["ResourceNotFoundException"]) => {
                let what = format!("there is no table {}: make it with `sparks setup`", tables.log);
                return Err(StoreError::Unreadable(what));
            }
            Err(trouble) => return Err(trouble.into()),
        }
        let get = || client.get_item().table_name(&tables.log).set_key(Some(key())).consistent_read(true).send();
        let found = patiently(get).await?.item.unwrap_or_default();
        let lanes = u16::try_from(number(&found, "lanes")?).ok().filter(|lanes| *lanes > 0);
        lanes.map(Lanes).ok_or_else(|| StoreError::Unreadable("the log does not say how many lanes it has".into()))
    }

    fn heads(&self) -> Position {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn has_come(&self, lane: Lane, seq: Seq) {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).pass(lane, seq);
    }

    fn is_unfinished(&self, image: &ImageId) -> bool {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).contains(image)
    }

    fn set_unfinished(&self, image: &ImageId, unfinished: bool) {
        let mut known = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        if unfinished {
            known.insert(image.clone());
        } else {
            known.remove(image);
        }
    }

    /// What has to be known before the first attempt: nothing, for a photo of known persons.
    async fn knowledge(&self, commit: &Commit) -> Result<Knowledge, StoreError> {
        let photo = commit.photo.as_ref().map(|guard| &guard.image);
        let pending = photo.is_some_and(|image| self.is_unfinished(image));
        let mut touched = faces::touched(commit);
        touched.extend(photo.filter(|_| pending).cloned());
        let faces = self.kept_faces(touched.into_iter().collect()).await?;
        Ok(Knowledge { heads: self.heads(), rows: Default::default(), faces, pending })
    }

    async fn kept_faces(&self, images: Vec<ImageId>) -> Result<BTreeMap<ImageId, Fields>, StoreError> {
        let keys = images.iter().map(faces::photo_key).collect();
        let mut kept = BTreeMap::new();
        for item in self.batch(&self.tables.faces, keys).await? {
            let image = value::text(&item, "PK")?.parse();
            kept.insert(image.map_err(|e| StoreError::Unreadable(format!("faces: {e}")))?, item);
        }
        Ok(kept)
    }

    /// Numbers that somebody else has given out must be known before anything is written that cannot be taken back.
    async fn are_free(&self, numbers: &[Key]) -> Result<(), CommitError> {
        let taken = self.batch_get(numbers).await?.into_iter().next();
        match taken.map(|row| row.key.sk.parse::<PersonId>()) {
            Some(Ok(person)) => Err(CommitError::NumberTaken(person)),
            Some(Err(e)) => Err(StoreError::Unreadable(e.to_string()).into()),
            None => Ok(()),
        }
    }

    /// Writes what did not fit beside the event. Whoever is interrupted leaves a mark, and the next one goes on.
    async fn finish(&self, plan: &Plan, commit: &Commit) -> Result<(), CommitError> {
        for mut batch in plan.batches(&self.tables.log)? {
            while !batch.is_empty() {
                match transact(&self.client, &batch).await {
                    Ok(()) => break,
                    Err(Undone::Failed(error)) => return Err(error.into()),
                    Err(Undone::Refused(reasons)) => {
                        let is_refused =
                            |n: usize| reasons.get(n).and_then(|r| r.code()) == Some("ConditionalCheckFailed");
                        let moved =
                            batch.iter().enumerate().any(|(n, a)| matches!(a.stake, Stake::Photo) && is_refused(n));
                        // Somebody has committed the photo since, and what they say is written by them.
                        if moved && !commit.events.is_empty() {
                            return Ok(());
                        }
                        if moved {
                            return Err(CommitError::PhotoMoved);
                        }
                        // What is there already, or is not there to be cleared, is done.
                        let mut n = 0..;
                        batch.retain(|_| !n.next().is_some_and(is_refused));
                    }
                }
            }
        }
        Ok(())
    }

    /// Tries until it is done or cannot be, learning from each refusal.
    async fn write(&self, commit: &Commit) -> Result<Vec<Recorded>, CommitError> {
        let mut known = self.knowledge(commit).await?;
        let mut pauses = pauses();
        for attempt in 0.. {
            let plan = Plan::of(commit, &known, &self.tables, self.lanes)?;
            if plan.core.is_empty() {
                return Ok(Vec::new());
            }
            self.are_free(&plan.numbers()).await?;
            match transact(&self.client, &plan.core).await {
                Ok(()) => return self.written(plan, commit).await,
                Err(Undone::Failed(error)) => return Err(error.into()),
                Err(Undone::Refused(reasons)) => {
                    known.learn(commit, &plan.core, &reasons)?;
                    let missing = faces::touched(commit).into_iter().filter(|image| !known.faces.contains_key(image));
                    known.faces.extend(self.kept_faces(missing.collect()).await?);
                }
            }
            // The first time the answer said what to do; later others are as fast as we are.
            if attempt > 0 {
                let contended = || StoreError::Busy("others write to the same lane again and again".into());
                tokio::time::sleep(pauses.next().ok_or_else(contended)?).await;
            }
        }
        Ok(Vec::new())
    }

    async fn written(&self, plan: Plan, commit: &Commit) -> Result<Vec<Recorded>, CommitError> {
        plan.recorded.iter().for_each(|recorded| self.has_come(recorded.lane, recorded.seq));
        let image = commit.photo.as_ref().map(|guard| &guard.image);
        if let Some(image) = image {
            self.set_unfinished(image, !plan.rest.is_empty());
        }
        self.finish(&plan, commit).await?;
        if let Some(image) = image {
            self.set_unfinished(image, false);
        }
        Ok(plan.recorded)
    }

    /// Changes rows and nothing else.
    async fn change_rows(&self, mutations: Vec<sparks_domain::Mutation>) -> Result<(), CommitError> {
        let when = sparks_domain::Timestamp::from_millis(0);
        self.write(&Commit { mutations, ..Commit::without_events(when, None) }).await.map(drop)
    }
}

#[async_trait]
impl Store for DynamoStore {
    async fn commit(&self, commit: &Commit) -> Result<Vec<Recorded>, CommitError> {
        self.write(commit).await
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        let Some(fields) = self.one(&self.tables.log, log::state_key(image)).await? else { return Ok(None) };
        let (state, pending) = log::state(&fields)?;
        if pending {
            self.set_unfinished(image, true);
        }
        Ok(Some(state))
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        self.identity_tail(after).await
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<Recorded>, StoreError> {
        self.events(after, most).await
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<Recorded>, StoreError> {
        self.event_at(self.lanes.of(image), seq).await
    }

    async fn templates(&self, after: &Position, reach: Reach, most: usize) -> Result<Templates, StoreError> {
        match reach {
            Reach::Everything => self.templates_of(self.all_lessons(after, most).await?, after).await,
            // Asked right after who is who: where that has not moved, there is nothing to ask.
            Reach::Persons if after.in_lane(Lane::IDENTITY) >= self.heads().in_lane(Lane::IDENTITY) => {
                Ok(Templates { faces: Vec::new(), read: after.clone() })
            }
            Reach::Persons => {
                let lessons = self.lessons(Lane::IDENTITY, after.in_lane(Lane::IDENTITY), most).await?;
                self.templates_of(lessons, after).await
            }
        }
    }

    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        self.kept(faces).await
    }

    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        self.faces_led_to(persons).await
    }

    /// Writes to the log's table, and reads the platform's.
    async fn check(&self) -> Result<(), StoreError> {
        let row = key_fields("CHECK", "CHECK");
        let put = || self.client.put_item().table_name(&self.tables.log).set_item(Some(row.clone())).send();
        patiently(put).await?;
        self.get(&Key::counter()).await?;
        Ok(())
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        let fields = self.one(&self.tables.platform, key_fields(&key.pk, &key.sk)).await?;
        fields.as_ref().map(value::item).transpose()
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let keys = keys.iter().map(|key| key_fields(&key.pk, &key.sk)).collect();
        self.batch(&self.tables.platform, keys).await?.iter().map(value::item).collect()
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        self.page(query).await
    }
}
