//! A connection to the file, used from asynchronous code.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use sparks_engine::{QueueError, StoreError};

/// One connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Database(Arc<Mutex<Connection>>);

/// What a committed transaction survives. The file's consistency survives everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Power loss: decisions, which people have seen.
    PowerLoss,
    /// The end of the process: leases and messages, which a lost decision makes come again.
    Crash,
}

/// A failure of the database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Unreadable(String),
    #[error("{0}: this version of sparks reads schema {known}", known = SCHEMA)]
    Newer(String),
}

const SCHEMA: i64 = 1;

impl Database {
    /// Opens the file, making its tables if it is new.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, DatabaseError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(60))?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "secure_delete", "on")?;
        connection.pragma_update(None, "cache_size", -8 * 1024)?;
        let synchronous = match durability {
            Durability::PowerLoss => "full",
            Durability::Crash => "normal",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match transaction.pragma_query_value(None, "user_version", |row| row.get(0))? {
            0 => {
                transaction.execute_batch(include_str!("schema.sql"))?;
                transaction.pragma_update(None, "user_version", SCHEMA)?;
            }
            SCHEMA => {}
            newer => return Err(DatabaseError::Newer(format!("the file has schema {newer}, made by another version"))),
        }
        transaction.commit()?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Runs the work in a transaction that writes: alone in the file, all or nothing.
    pub async fn write<T, E>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.run(TransactionBehavior::Immediate, work).await
    }

    /// Runs the work in a transaction that reads one moment of the file.
    pub async fn read<T, E>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.run(TransactionBehavior::Deferred, work).await
    }

    async fn run<T, E>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let connection = Arc::clone(&self.0);
        let work = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let transaction = connection.transaction_with_behavior(behavior).map_err(DatabaseError::from)?;
            let done = work(&transaction)?;
            transaction.commit().map_err(DatabaseError::from)?;
            Ok(done)
        });
        let stopped = |e: tokio::task::JoinError| DatabaseError::Unreadable(format!("the transaction stopped: {e}"));
        work.await.unwrap_or_else(|error| Err(stopped(error).into()))
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        match &error {
            DatabaseError::Sqlite(rusqlite::Error::SqliteFailure(failure, _)) => match failure.code {
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Unreadable(error.to_string()),
                _ => Self::Unavailable(error.to_string()),
            },
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

impl From<DatabaseError> for QueueError {
    fn from(error: DatabaseError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
