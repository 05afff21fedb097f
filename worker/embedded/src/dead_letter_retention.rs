//! Deletion of old dead letters.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::Transaction;
use sparks_engine::QueueError;

use crate::database::{Database, DatabaseError, Durability};

/// Interval between two checks.
const INTERVAL: Duration = Duration::from_secs(3600);

/// How long dead letters are kept.
pub(crate) struct DeadLetterRetention {
    retention: Option<Duration>,
    last_check: Mutex<Option<Instant>>,
}

impl DeadLetterRetention {
    /// Creates the retention; `None` keeps all dead letters.
    pub fn new(retention: Option<Duration>) -> Self {
        Self { retention, last_check: Mutex::new(None) }
    }

    /// Deletes the dead letters whose retention has ended at `now` (milliseconds since 1970), and logs their causes. Called before
    /// every receive, it does something once an hour.
    pub async fn apply(&self, database: &Database, now: i64) -> Result<(), QueueError> {
        let Some(retention) = self.retention.filter(|_| self.is_due()) else { return Ok(()) };
        let before = now.saturating_sub(i64::try_from(retention.as_millis()).unwrap_or(i64::MAX));
        let is_any = move |tx: &Transaction<'_>| Ok::<_, QueueError>(has_expired(tx, before)?);
        if !database.read(is_any).await? {
            return Ok(());
        }
        let expired = database.write(Durability::Crash, move |tx| Ok::<_, QueueError>(delete(tx, before)?)).await?;
        let count: u64 = expired.values().sum();
        if count > 0 {
            let causes: Vec<String> = expired.iter().map(|(cause, count)| format!("{cause}: {count}")).collect();
            let retention_days = retention.as_secs() / 86_400;
            tracing::warn!(count, causes = causes.join(", "), retention_days, "deleted expired dead letters");
        }
        Ok(())
    }

    fn is_due(&self) -> bool {
        let mut last_check = self.last_check.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last_check.is_none_or(|last| last.elapsed() >= INTERVAL);
        if is_due {
            *last_check = Some(Instant::now());
        }
        is_due
    }
}

fn has_expired(tx: &Transaction<'_>, before: i64) -> Result<bool, DatabaseError> {
    Ok(tx.prepare("SELECT 1 FROM dead_letters WHERE died < ? LIMIT 1")?.exists([before])?)
}

/// Deletes the dead letters before this time. Returns their number by cause.
fn delete(tx: &Transaction<'_>, before: i64) -> Result<BTreeMap<String, u64>, DatabaseError> {
    let mut delete = tx.prepare("DELETE FROM dead_letters WHERE died < ? RETURNING cause")?;
    let mut expired = BTreeMap::new();
    for cause in delete.query_map([before], |row| row.get(0))? {
        *expired.entry(cause?).or_default() += 1;
    }
    Ok(expired)
}
