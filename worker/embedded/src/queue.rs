//! The work queue in SQLite. Oldest first, whatever happens: a message that comes back keeps its place.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rusqlite::{OptionalExtension, Transaction, params};
use sparks_domain::Timestamp;
use sparks_engine::{DeadLetter, DeadLetters, Delivery, Depth, MessageId, Queue, QueueError, Settlement};

use crate::{
    database::{Database, DatabaseError, Durability},
    owner::{Owner, Owners},
};

/// Messages in the data folder's file.
pub struct SqliteQueue {
    database: Database,
    owner: Owner,
    owners: Owners,
    patience: Patience,
}

/// How long the queue waits for somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// A lease that is not extended ends after this.
    pub visibility: Duration,
    /// A message received this often, and never settled, died with its worker once too often.
    pub max_deaths: u32,
}

impl SqliteQueue {
    pub(crate) fn new(database: Database, owner: Owner, owners: Owners, patience: Patience) -> Self {
        Self { database, owner, owners, patience }
    }

    /// Those of the messages from `first` to `last` that nobody has settled yet.
    pub async fn unsettled(&self, first: &MessageId, last: &MessageId) -> Result<Vec<MessageId>, QueueError> {
        let (first, last) = (rowid(first), rowid(last));
        self.database
            .read(move |tx| {
                let mut select = tx
                    .prepare_cached("SELECT id FROM messages WHERE id BETWEEN ? AND ?")
                    .map_err(DatabaseError::from)?;
                let ids = select.query_map([first, last], |row| row.get::<_, i64>(0)).map_err(DatabaseError::from)?;
                Ok(ids.map(|id| Ok(message_id(id?))).collect::<Result<_, DatabaseError>>()?)
            })
            .await
    }

    /// Why the message with this deduplication ID died, if it did.
    pub async fn dead_letter(&self, deduplication: &str) -> Result<Option<DeadLetter>, QueueError> {
        let deduplication = deduplication.to_owned();
        self.database.read(move |tx| Ok(letters(tx, "WHERE deduplication = ?", &[&deduplication])?.pop())).await
    }

    /// The messages of processes that have ended are free at once.
    async fn release_dead(&self) -> Result<(), QueueError> {
        let dead = self.owners.dead();
        if dead.is_empty() {
            return Ok(());
        }
        let released = dead.clone();
        self.database
            .write(Durability::Crash, move |tx| {
                for owner in &released {
                    tx.execute("UPDATE messages SET owner = NULL, visible = 0 WHERE owner = ?", [owner])
                        .map_err(DatabaseError::from)?;
                }
                Ok::<(), QueueError>(())
            })
            .await?;
        dead.iter().for_each(|owner| self.owners.forget(owner));
        Ok(())
    }
}

#[async_trait]
impl Queue for SqliteQueue {
    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError> {
        let (body, deduplication) = (body.to_owned(), deduplication.to_owned());
        self.database.write(Durability::Crash, move |tx| Ok(send(tx, &body, &deduplication)?)).await
    }

    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError> {
        self.release_dead().await?;
        let (owner, patience) = (self.owner.name().to_owned(), self.patience);
        self.database.write(Durability::Crash, move |tx| Ok(receive(tx, &owner, most, patience)?)).await
    }

    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
        let until = now() + millis(self.patience.visibility);
        self.held(delivery, move |tx, id| {
            tx.prepare_cached("UPDATE messages SET visible = ? WHERE id = ?")?.execute(params![until, id])?;
            Ok(())
        })
        .await
    }

    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError> {
        self.held(&delivery, move |tx, id| match settlement {
            Settlement::Done => delete(tx, id),
            Settlement::DeadLetter { reason } => bury(tx, id, &reason),
            Settlement::Retry(after) => {
                let visible = now() + millis(after);
                tx.prepare_cached("UPDATE messages SET owner = NULL, visible = ? WHERE id = ?")?
                    .execute(params![visible, id])?;
                Ok(())
            }
        })
        .await
    }

    async fn depth(&self) -> Result<Depth, QueueError> {
        self.database.read(|tx| Ok(depth(tx)?)).await
    }
}

#[async_trait]
impl DeadLetters for SqliteQueue {
    async fn list(&self) -> Result<Vec<DeadLetter>, QueueError> {
        self.database.read(|tx| Ok(letters(tx, "", &[])?)).await
    }
}

impl SqliteQueue {
    /// Works on the message, if the lease still holds.
    async fn held(
        &self,
        delivery: &Delivery,
        work: impl FnOnce(&Transaction<'_>, i64) -> Result<(), DatabaseError> + Send + 'static,
    ) -> Result<(), QueueError> {
        let (id, lost) = (rowid(&delivery.id), delivery.id.clone());
        let (owner, receives) = (self.owner.name().to_owned(), delivery.receives);
        self.database
            .write(Durability::Crash, move |tx| {
                let mut held = tx
                    .prepare_cached("SELECT 1 FROM messages WHERE id = ? AND owner = ? AND receives = ?")
                    .map_err(DatabaseError::from)?;
                match held.exists(params![id, owner, receives]).map_err(DatabaseError::from)? {
                    true => Ok(work(tx, id)?),
                    false => Err(QueueError::LeaseLost(lost)),
                }
            })
            .await
    }
}

/// Puts the message on the queue, unless it is there.
pub(crate) fn send(tx: &Transaction<'_>, body: &str, deduplication: &str) -> Result<MessageId, DatabaseError> {
    if let Some(id) = find(tx, deduplication)? {
        return Ok(id);
    }
    tx.prepare_cached("INSERT INTO messages (deduplication, body, sent, visible) VALUES (?, ?, ?, 0)")?
        .execute(params![deduplication, body, now()])?;
    Ok(message_id(tx.last_insert_rowid()))
}

/// The unsettled message with this deduplication ID.
pub(crate) fn find(tx: &Transaction<'_>, deduplication: &str) -> Result<Option<MessageId>, DatabaseError> {
    let mut select = tx.prepare_cached("SELECT id FROM messages WHERE deduplication = ?")?;
    Ok(select.query_row([deduplication], |row| row.get(0)).optional()?.map(message_id))
}

fn receive(tx: &Transaction<'_>, owner: &str, most: usize, patience: Patience) -> Result<Vec<Delivery>, DatabaseError> {
    let mut select =
        tx.prepare_cached("SELECT id, body, receives FROM messages WHERE visible <= ? ORDER BY id LIMIT ?")?;
    let mut lease =
        tx.prepare_cached("UPDATE messages SET owner = ?, visible = ?, receives = receives + 1 WHERE id = ?")?;
    let mut rows = select.query(params![now(), i64::try_from(most).unwrap_or(i64::MAX)])?;
    let mut found: Vec<(i64, String, u32)> = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((row.get(0)?, row.get(1)?, row.get(2)?));
    }
    let mut deliveries = Vec::with_capacity(found.len());
    for (id, body, receives) in found {
        if receives >= patience.max_deaths {
            bury(tx, id, &format!("the worker died with it {receives} times"))?;
            continue;
        }
        lease.execute(params![owner, now() + millis(patience.visibility), id])?;
        deliveries.push(Delivery { id: message_id(id), body, receives: receives + 1, receipt: owner.to_owned() });
    }
    Ok(deliveries)
}

fn bury(tx: &Transaction<'_>, id: i64, reason: &str) -> Result<(), DatabaseError> {
    tx.execute(
        "INSERT INTO dead_letters (id, deduplication, body, reason, died, receives)
         SELECT id, deduplication, body, ?, ?, receives FROM messages WHERE id = ?",
        params![reason, now(), id],
    )?;
    delete(tx, id)
}

fn delete(tx: &Transaction<'_>, id: i64) -> Result<(), DatabaseError> {
    tx.prepare_cached("DELETE FROM messages WHERE id = ?")?.execute([id])?;
    Ok(())
}

fn depth(tx: &Transaction<'_>) -> Result<Depth, DatabaseError> {
    let count = |filter: &str| -> Result<u64, DatabaseError> {
        let sql = format!("SELECT count(*) FROM {filter}");
        Ok(tx.query_row(&sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
    };
    let now = now();
    Ok(Depth {
        waiting: count(&format!("messages WHERE visible <= {now}"))?,
        leased: count(&format!("messages WHERE visible > {now} AND owner IS NOT NULL"))?,
        delayed: count(&format!("messages WHERE visible > {now} AND owner IS NULL"))?,
        dead: count("dead_letters")?,
    })
}

fn letters(tx: &Transaction<'_>, filter: &str, values: &[&str]) -> Result<Vec<DeadLetter>, DatabaseError> {
    let sql = format!("SELECT id, body, reason, died, receives FROM dead_letters {filter} ORDER BY died, id");
    let mut select = tx.prepare(&sql)?;
    let letters = select.query_map(rusqlite::params_from_iter(values), |row| {
        Ok(DeadLetter {
            id: message_id(row.get(0)?),
            body: row.get(1)?,
            reason: row.get(2)?,
            died: Timestamp::from_millis(row.get(3)?),
            receives: row.get(4)?,
        })
    })?;
    Ok(letters.collect::<Result<_, _>>()?)
}

/// Sequence numbers as names that sort in the order of sending.
fn message_id(id: i64) -> MessageId {
    MessageId(format!("{id:012}"))
}

fn rowid(id: &MessageId) -> i64 {
    id.0.parse().unwrap_or_default()
}

fn now() -> i64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
