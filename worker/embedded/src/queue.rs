//! The work queue in SQLite. Whoever has been receivable for longest comes first: what a dead worker held keeps its place, and what
//! has to wait for something stands in line again, so that it holds up nobody.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rusqlite::{OptionalExtension, Params, Transaction, params};
use sparks_domain::Timestamp;
use sparks_engine::{Cause, DeadLetter, DeadLetters, Delivery, Depth, MessageId, Queue, QueueError, Settlement};

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
        let filter = "WHERE deduplication = ?1 ORDER BY id";
        self.database.read(move |tx| Ok(letters(tx, filter, params![deduplication])?.pop())).await
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
        // Asking costs others nothing; only taking needs the file to itself.
        if !self.database.read(|tx| Ok::<_, QueueError>(has_visible(tx)?)).await? {
            return Ok(Vec::new());
        }
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
            Settlement::DeadLetter { cause, reason } => bury(tx, id, cause, &reason),
            Settlement::Retry(after) => give_back(tx, id, after, 0),
            Settlement::Wait(after) => give_back(tx, id, after, 1),
            Settlement::Release => give_back(tx, id, Duration::ZERO, 1),
        })
        .await
    }

    async fn depth(&self) -> Result<Depth, QueueError> {
        self.database.read(|tx| Ok(depth(tx)?)).await
    }
}

#[async_trait]
impl DeadLetters for SqliteQueue {
    async fn list(&self, after: Option<&MessageId>, most: usize) -> Result<Vec<DeadLetter>, QueueError> {
        let (after, most) = (after.map_or(0, rowid), i64::try_from(most).unwrap_or(i64::MAX));
        self.database.read(move |tx| Ok(letters(tx, "WHERE id > ?1 ORDER BY id LIMIT ?2", params![after, most])?)).await
    }

    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError> {
        let id = rowid(id);
        self.database.read(move |tx| Ok(letters(tx, "WHERE id = ?1", params![id])?.pop())).await
    }

    async fn replay(&self, id: &MessageId) -> Result<Option<MessageId>, QueueError> {
        let id = rowid(id);
        self.database.write(Durability::Crash, move |tx| Ok(replay(tx, id)?)).await
    }

    async fn discard(&self, id: &MessageId) -> Result<bool, QueueError> {
        let id = rowid(id);
        self.database.write(Durability::Crash, move |tx| Ok(discard(tx, id)?)).await
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
        let (owner, receipt) = (self.owner.name().to_owned(), delivery.receipt.clone());
        self.database
            .write(Durability::Crash, move |tx| {
                let mut held = tx
                    .prepare_cached("SELECT 1 FROM messages WHERE id = ?1 AND owner = ?2 AND ?2 || '/' || leases = ?3")
                    .map_err(DatabaseError::from)?;
                match held.exists(params![id, owner, receipt]).map_err(DatabaseError::from)? {
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
    tx.prepare_cached("INSERT INTO messages (deduplication, body, sent, visible) VALUES (?1, ?2, ?3, ?3)")?
        .execute(params![deduplication, body, now()])?;
    Ok(message_id(tx.last_insert_rowid()))
}

/// The unsettled message with this deduplication ID.
pub(crate) fn find(tx: &Transaction<'_>, deduplication: &str) -> Result<Option<MessageId>, DatabaseError> {
    let mut select = tx.prepare_cached("SELECT id FROM messages WHERE deduplication = ?")?;
    Ok(select.query_row([deduplication], |row| row.get(0)).optional()?.map(message_id))
}

fn has_visible(tx: &Transaction<'_>) -> Result<bool, DatabaseError> {
    Ok(tx.prepare_cached("SELECT 1 FROM messages WHERE visible <= ? LIMIT 1")?.exists([now()])?)
}

fn receive(tx: &Transaction<'_>, owner: &str, most: usize, patience: Patience) -> Result<Vec<Delivery>, DatabaseError> {
    let mut select = tx.prepare_cached(
        "SELECT id, body, receives, sent, leases FROM messages WHERE visible <= ? ORDER BY visible, id LIMIT ?",
    )?;
    let mut lease = tx.prepare_cached(
        "UPDATE messages SET owner = ?, visible = ?, receives = receives + 1, leases = leases + 1 WHERE id = ?",
    )?;
    let mut rows = select.query(params![now(), i64::try_from(most).unwrap_or(i64::MAX)])?;
    let mut found: Vec<(i64, String, u32, i64, i64)> = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    }
    let mut deliveries = Vec::with_capacity(found.len());
    for (id, body, receives, sent, leases) in found {
        if receives >= patience.max_deaths {
            bury(tx, id, Cause::WorkerDied, &format!("the worker died with it {receives} times"))?;
            continue;
        }
        lease.execute(params![owner, now() + millis(patience.visibility), id])?;
        let (id, sent) = (message_id(id), Timestamp::from_millis(sent));
        let receipt = format!("{owner}/{}", leases + 1);
        deliveries.push(Delivery { id, body, receives: receives + 1, sent, receipt });
    }
    Ok(deliveries)
}

/// Anybody may have the message after this long; so many of its receives were no attempts.
fn give_back(tx: &Transaction<'_>, id: i64, after: Duration, no_attempts: u32) -> Result<(), DatabaseError> {
    tx.prepare_cached("UPDATE messages SET owner = NULL, visible = ?, receives = receives - ? WHERE id = ?")?
        .execute(params![now() + millis(after), no_attempts, id])?;
    Ok(())
}

fn bury(tx: &Transaction<'_>, id: i64, cause: Cause, reason: &str) -> Result<(), DatabaseError> {
    tx.execute(
        "INSERT INTO dead_letters (id, deduplication, body, reason, died, receives, cause, sent)
         SELECT id, deduplication, body, ?, ?, receives, ?, sent FROM messages WHERE id = ?",
        params![reason, now(), cause.code(), id],
    )?;
    delete(tx, id)
}

/// Sends the letter's message again and removes the letter, in one step.
fn replay(tx: &Transaction<'_>, id: i64) -> Result<Option<MessageId>, DatabaseError> {
    let mut select = tx.prepare_cached("SELECT body, deduplication FROM dead_letters WHERE id = ?")?;
    let letter: Option<(String, String)> = select.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((body, deduplication)) = letter else { return Ok(None) };
    let sent = send(tx, &body, &deduplication)?;
    discard(tx, id)?;
    Ok(Some(sent))
}

fn discard(tx: &Transaction<'_>, id: i64) -> Result<bool, DatabaseError> {
    Ok(tx.prepare_cached("DELETE FROM dead_letters WHERE id = ?")?.execute([id])? > 0)
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
    // The first in line, and not the least of all: this is asked every second, and the line may be long.
    let sql = "SELECT max(sent, visible) FROM messages WHERE visible <= ? ORDER BY visible, id LIMIT 1";
    let oldest: Option<i64> = tx.query_row(sql, [now], |row| row.get(0)).optional()?;
    Ok(Depth {
        waiting: count(&format!("messages WHERE visible <= {now}"))?,
        leased: count(&format!("messages WHERE visible > {now} AND owner IS NOT NULL"))?,
        delayed: count(&format!("messages WHERE visible > {now} AND owner IS NULL"))?,
        dead: count("dead_letters")?,
        oldest: oldest.map(Timestamp::from_millis),
    })
}

fn letters(tx: &Transaction<'_>, filter: &str, values: impl Params) -> Result<Vec<DeadLetter>, DatabaseError> {
    let sql = format!("SELECT id, body, cause, reason, sent, died, receives FROM dead_letters {filter}");
    let mut select = tx.prepare(&sql)?;
    let letters = select.query_map(values, |row| {
        Ok(DeadLetter {
            id: message_id(row.get(0)?),
            body: row.get(1)?,
            cause: row.get(2)?,
            reason: row.get(3)?,
            sent: Timestamp::from_millis(row.get(4)?),
            died: Timestamp::from_millis(row.get(5)?),
            receives: row.get(6)?,
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
