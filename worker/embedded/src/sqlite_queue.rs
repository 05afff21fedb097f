//! The work queue in SQLite. The message that has been visible longest is received first: messages of a crashed worker keep their
//! place, and a deferred message moves to the end, so that it does not delay others.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rusqlite::{OptionalExtension, Params, Transaction, params};
use sparks_domain::Timestamp;
use sparks_engine::{Cause, DeadLetter, DeadLetters, Delivery, MessageId, Queue, QueueDepth, QueueError, Settlement};

use crate::{
    database::{Database, DatabaseError, Durability},
    dead_letter_retention::DeadLetterRetention,
    process_registry::{ProcessLock, ProcessRegistry},
};

/// The work queue and its dead letters in the database of a data folder.
pub struct SqliteQueue {
    database: Database,
    process: ProcessLock,
    processes: ProcessRegistry,
    config: QueueConfig,
    retention: DeadLetterRetention,
}

/// Configuration of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// Duration of a lease that is not extended.
    pub visibility_timeout: Duration,
    /// Number of receives without settlement after which a message is dead-lettered.
    pub max_crashes: u32,
    /// Time after which dead letters are deleted; `None` keeps them.
    pub dead_letter_retention: Option<Duration>,
}

impl SqliteQueue {
    pub(crate) fn new(
        database: Database,
        process: ProcessLock,
        processes: ProcessRegistry,
        config: QueueConfig,
    ) -> Self {
        let retention = DeadLetterRetention::new(config.dead_letter_retention);
        Self { database, process, processes, config, retention }
    }

    /// Returns the messages from `first` to `last` that are not settled.
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

    /// Returns the dead letter with this deduplication ID.
    pub async fn dead_letter(&self, deduplication: &str) -> Result<Option<DeadLetter>, QueueError> {
        let deduplication = deduplication.to_owned();
        let filter = "WHERE deduplication = ?1 ORDER BY id";
        self.database.read(move |tx| Ok(select_dead_letters(tx, filter, params![deduplication])?.pop())).await
    }

    /// Releases the leases of processes that have ended, without waiting for the visibility timeout.
    async fn release_ended(&self) -> Result<(), QueueError> {
        let ended = self.processes.ended();
        if ended.is_empty() {
            return Ok(());
        }
        let owners = ended.clone();
        self.database.write(Durability::Crash, move |tx| Ok::<_, QueueError>(release_leases(tx, &owners)?)).await?;
        ended.iter().for_each(|process| self.processes.remove(process));
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
        self.release_ended().await?;
        self.retention.apply(&self.database, now()).await?;
        // A read does not block other processes; only a lease needs a write transaction.
        if !self.database.read(|tx| Ok::<_, QueueError>(has_visible(tx)?)).await? {
            return Ok(Vec::new());
        }
        let (owner, config) = (self.process.name().to_owned(), self.config);
        self.database.write(Durability::Crash, move |tx| Ok(receive(tx, &owner, most, config)?)).await
    }

    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
        let until = now() + millis(self.config.visibility_timeout);
        self.with_lease(delivery, move |tx, id| {
            tx.prepare_cached("UPDATE messages SET visible = ? WHERE id = ?")?.execute(params![until, id])?;
            Ok(())
        })
        .await
    }

    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError> {
        self.with_lease(&delivery, move |tx, id| match settlement {
            Settlement::Acknowledge => delete(tx, id),
            Settlement::DeadLetter { cause, reason } => move_to_dead_letters(tx, id, cause, &reason),
            Settlement::Retry(after) => release(tx, id, after, 0),
            Settlement::Defer(after) => release(tx, id, after, 1),
            Settlement::Release => release(tx, id, Duration::ZERO, 1),
        })
        .await
    }

    async fn depth(&self) -> Result<QueueDepth, QueueError> {
        self.database.read(|tx| Ok(depth(tx)?)).await
    }
}

#[async_trait]
impl DeadLetters for SqliteQueue {
    async fn list(&self, after: Option<&MessageId>, most: usize) -> Result<Vec<DeadLetter>, QueueError> {
        let (after, most) = (after.map_or(0, rowid), i64::try_from(most).unwrap_or(i64::MAX));
        self.database
            .read(move |tx| Ok(select_dead_letters(tx, "WHERE id > ?1 ORDER BY id LIMIT ?2", params![after, most])?))
            .await
    }

    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError> {
        let id = rowid(id);
        self.database.read(move |tx| Ok(select_dead_letters(tx, "WHERE id = ?1", params![id])?.pop())).await
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
    /// Runs the work on the message if the lease has not been lost.
    async fn with_lease(
        &self,
        delivery: &Delivery,
        work: impl FnOnce(&Transaction<'_>, i64) -> Result<(), DatabaseError> + Send + 'static,
    ) -> Result<(), QueueError> {
        let (id, message) = (rowid(&delivery.id), delivery.id.clone());
        let (owner, receipt) = (self.process.name().to_owned(), delivery.receipt.clone());
        self.database
            .write(Durability::Crash, move |tx| {
                let mut select = tx
                    .prepare_cached("SELECT 1 FROM messages WHERE id = ?1 AND owner = ?2 AND ?2 || '/' || leases = ?3")
                    .map_err(DatabaseError::from)?;
                match select.exists(params![id, owner, receipt]).map_err(DatabaseError::from)? {
                    true => Ok(work(tx, id)?),
                    false => Err(QueueError::LeaseLost(message)),
                }
            })
            .await
    }
}

/// Releases the leases of processes that have ended, and removes their lock files.
pub(crate) fn release_ended(database: &Database, processes: &ProcessRegistry) -> Result<(), DatabaseError> {
    let ended = processes.ended();
    if !ended.is_empty() {
        database.write_blocking(|tx| release_leases(tx, &ended))?;
        ended.iter().for_each(|process| processes.remove(process));
    }
    Ok(())
}

fn release_leases(tx: &Transaction<'_>, owners: &[String]) -> Result<(), DatabaseError> {
    let mut release = tx.prepare_cached("UPDATE messages SET owner = NULL, visible = 0 WHERE owner = ?")?;
    owners.iter().try_for_each(|owner| release.execute([owner]).map(drop))?;
    Ok(())
}

/// Sends a message unless it is in the queue.
pub(crate) fn send(tx: &Transaction<'_>, body: &str, deduplication: &str) -> Result<MessageId, DatabaseError> {
    if let Some(id) = find(tx, deduplication)? {
        return Ok(id);
    }
    tx.prepare_cached("INSERT INTO messages (deduplication, body, sent, visible) VALUES (?1, ?2, ?3, ?3)")?
        .execute(params![deduplication, body, now()])?;
    Ok(message_id(tx.last_insert_rowid()))
}

/// Returns the unsettled message with this deduplication ID.
pub(crate) fn find(tx: &Transaction<'_>, deduplication: &str) -> Result<Option<MessageId>, DatabaseError> {
    let mut select = tx.prepare_cached("SELECT id FROM messages WHERE deduplication = ?")?;
    Ok(select.query_row([deduplication], |row| row.get(0)).optional()?.map(message_id))
}

fn has_visible(tx: &Transaction<'_>) -> Result<bool, DatabaseError> {
    Ok(tx.prepare_cached("SELECT 1 FROM messages WHERE visible <= ? LIMIT 1")?.exists([now()])?)
}

fn receive(
    tx: &Transaction<'_>,
    owner: &str,
    most: usize,
    config: QueueConfig,
) -> Result<Vec<Delivery>, DatabaseError> {
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
        if receives >= config.max_crashes {
            move_to_dead_letters(
                tx,
                id,
                Cause::WorkerDied,
                &format!("the worker crashed {receives} times while processing it"),
            )?;
            continue;
        }
        lease.execute(params![owner, now() + millis(config.visibility_timeout), id])?;
        let (id, sent) = (message_id(id), Timestamp::from_millis(sent));
        let receipt = format!("{owner}/{}", leases + 1);
        deliveries.push(Delivery { id, body, receives: receives + 1, sent, receipt });
    }
    Ok(deliveries)
}

/// Ends the lease and makes the message visible after a delay. `uncounted` receives do not count as attempts.
fn release(tx: &Transaction<'_>, id: i64, after: Duration, uncounted: u32) -> Result<(), DatabaseError> {
    tx.prepare_cached("UPDATE messages SET owner = NULL, visible = ?, receives = receives - ? WHERE id = ?")?
        .execute(params![now() + millis(after), uncounted, id])?;
    Ok(())
}

fn move_to_dead_letters(tx: &Transaction<'_>, id: i64, cause: Cause, reason: &str) -> Result<(), DatabaseError> {
    tx.execute(
        "INSERT INTO dead_letters (id, deduplication, body, reason, died, receives, cause, sent)
         SELECT id, deduplication, body, ?, ?, receives, ?, sent FROM messages WHERE id = ?",
        params![reason, now(), cause.code(), id],
    )?;
    delete(tx, id)
}

/// Sends the message of a dead letter again and removes the dead letter.
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

fn depth(tx: &Transaction<'_>) -> Result<QueueDepth, DatabaseError> {
    let count = |filter: &str| -> Result<u64, DatabaseError> {
        let sql = format!("SELECT count(*) FROM {filter}");
        Ok(tx.query_row(&sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
    };
    let now = now();
    // The first message in the index instead of the minimum of all: the depth is read every second and the queue may be long.
    let sql = "SELECT max(sent, visible) FROM messages WHERE visible <= ? ORDER BY visible, id LIMIT 1";
    let oldest: Option<i64> = tx.query_row(sql, [now], |row| row.get(0)).optional()?;
    Ok(QueueDepth {
        waiting: count(&format!("messages WHERE visible <= {now}"))?,
        leased: count(&format!("messages WHERE visible > {now} AND owner IS NOT NULL"))?,
        delayed: count(&format!("messages WHERE visible > {now} AND owner IS NULL"))?,
        dead: count("dead_letters")?,
        oldest: oldest.map(Timestamp::from_millis),
    })
}

fn select_dead_letters(
    tx: &Transaction<'_>,
    filter: &str,
    values: impl Params,
) -> Result<Vec<DeadLetter>, DatabaseError> {
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

/// Converts a row ID to a message ID, padded so that IDs sort in the order of sending.
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
