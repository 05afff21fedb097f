//! A SQLite connection used from asynchronous code.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use sparks_engine::{DependencyError, QueueError, StoreError};
use tokio::task::{JoinError, spawn_blocking};

/// A connection shared by its clones. All writers of a process share one, because every write by another connection
/// invalidates the page cache.
#[derive(Clone)]
pub(crate) struct Database(Arc<Mutex<SharedConnection>>);

struct SharedConnection {
    connection: Connection,
    durability: Durability,
}

/// The failures that a committed transaction survives. The file stays consistent in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Power loss (`synchronous = full`): for decisions, which users have seen.
    PowerLoss,
    /// A crash of the process (`synchronous = normal`): for leases and messages, which redelivery restores.
    Crash,
}

/// Error of the database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Unreadable(String),
    #[error("{0}")]
    UnreadableEvent(String),
    #[error("{0}: this version of sparks supports schema {supported}", supported = SCHEMA)]
    NewerSchema(String),
}

/// The current schema version, stored as `user_version`.
pub(crate) const SCHEMA: i64 = 3;

/// Migrations, starting with the one from schema 1 to 2.
const MIGRATIONS: [&str; 2] = [include_str!("schema_2.sql"), include_str!("schema_3.sql")];

impl Database {
    /// Opens the file, creating or migrating its tables.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "secure_delete", "on")?;
        connection.pragma_update(None, "cache_size", -32 * 1024)?;
        // Pages that many photos change are written back once for hundreds of photos.
        connection.pragma_update(None, "wal_autocheckpoint", 8192)?;
        connection.pragma_update(None, "synchronous", Durability::Crash.synchronous())?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match found {
            0 => transaction.execute_batch(include_str!("schema.sql"))?,
            1..SCHEMA => {
                for step in &MIGRATIONS[usize::try_from(found - 1).unwrap_or_default()..] {
                    transaction.execute_batch(step)?;
                }
            }
            SCHEMA => {}
            newer => {
                return Err(DatabaseError::NewerSchema(format!(
                    "the file has schema {newer}, created by another version"
                )));
            }
        }
        if found != SCHEMA {
            transaction.pragma_update(None, "user_version", SCHEMA)?;
        }
        transaction.commit()?;
        Ok(Self(Arc::new(Mutex::new(SharedConnection { connection, durability: Durability::Crash }))))
    }

    /// Runs the work in a write transaction.
    pub async fn write<T, E>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        match durability {
            // Waits for the disk, so it must not block the executor.
            Durability::PowerLoss => self.run_blocking(Access::Write(durability), work).await,
            Durability::Crash => self.run_inline(Access::Write(durability), work).await,
        }
    }

    /// Like [`Database::write`] with [`Durability::Crash`], for callers outside of asynchronous code.
    pub fn write_blocking<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.run(Access::Write(Durability::Crash), BUSY_TIMEOUT, &mut Some(work))
    }

    /// Like [`Database::write`], for work that takes long and can be repeated after a power loss.
    pub async fn write_long<T, E>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.run_blocking(Access::Write(Durability::Crash), work).await
    }

    /// Runs the work in a read transaction (a consistent snapshot).
    pub async fn read<T, E>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.run_inline(Access::Read, work).await
    }

    /// Like [`Database::read`], for work that takes long.
    pub async fn read_long<T, E>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.run_blocking(Access::Read, work).await
    }

    /// Like [`Database::read_long`], followed by work on the result that does not hold the connection.
    pub async fn read_then<R, T, E>(
        &self,
        read: impl FnOnce(&Transaction<'_>) -> Result<R, DatabaseError> + Send + 'static,
        then: impl FnOnce(R) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        let work = spawn_blocking(move || {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let read = shared.run(Access::Read, BUSY_TIMEOUT, &mut Some(read))?;
            drop(shared);
            then(read)
        });
        Ok(work.await.unwrap_or_else(|error| Err(join_error(&error)))?)
    }

    /// Runs work of microseconds on this thread, because two thread switches would cost more than the work. Falls back to a
    /// blocking thread if the connection or the file is in use: waiting here would delay lease extensions, signals and health
    /// checks.
    async fn run_inline<T, E>(
        &self,
        access: Access,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let mut work = Some(work);
        if let Ok(mut shared) = self.0.try_lock() {
            let result = shared.run(access, Duration::ZERO, &mut work);
            if work.is_none() {
                return result;
            }
        }
        self.run_blocking(access, move |tx| work.map_or_else(|| Err(missing_work().into()), |work| work(tx))).await
    }

    async fn run_blocking<T, E>(
        &self,
        access: Access,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        let work = spawn_blocking(move || {
            shared.lock().unwrap_or_else(PoisonError::into_inner).run(access, BUSY_TIMEOUT, &mut Some(work))
        });
        work.await.unwrap_or_else(|error| Err(join_error(&error).into()))
    }
}

/// The kind of a transaction.
#[derive(Debug, Clone, Copy)]
enum Access {
    Read,
    Write(Durability),
}

/// How long a transaction waits for a writer in another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// The error of running the same work twice, which is a bug.
fn missing_work() -> DatabaseError {
    DatabaseError::Unreadable("failed to run a transaction: its work was run before".into())
}

fn join_error(error: &JoinError) -> DatabaseError {
    DatabaseError::Unreadable(format!("failed to run a transaction: {error}"))
}

impl SharedConnection {
    /// Runs the work in a transaction. Leaves `work` in place if the transaction did not start within `busy_timeout`.
    fn run<T, E: From<DatabaseError>>(
        &mut self,
        access: Access,
        busy_timeout: Duration,
        work: &mut Option<impl FnOnce(&Transaction<'_>) -> Result<T, E>>,
    ) -> Result<T, E> {
        let behavior = match access {
            Access::Read => TransactionBehavior::Deferred,
            Access::Write(durability) => {
                self.set_durability(durability)?;
                self.connection.busy_timeout(busy_timeout).map_err(DatabaseError::from)?;
                TransactionBehavior::Immediate
            }
        };
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(DatabaseError::from)?;
        transaction.busy_timeout(BUSY_TIMEOUT).map_err(DatabaseError::from)?;
        let work = work.take().ok_or_else(missing_work)?;
        let result = work(&transaction)?;
        transaction.commit().map_err(DatabaseError::from)?;
        Ok(result)
    }

    fn set_durability(&mut self, wanted: Durability) -> Result<(), DatabaseError> {
        if self.durability != wanted {
            self.connection.pragma_update(None, "synchronous", wanted.synchronous())?;
            self.durability = wanted;
        }
        Ok(())
    }
}

impl Durability {
    fn synchronous(self) -> &'static str {
        match self {
            Self::PowerLoss => "full",
            Self::Crash => "normal",
        }
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        match &error {
            DatabaseError::Sqlite(rusqlite::Error::SqliteFailure(failure, _)) => match failure.code {
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Unreadable(error.to_string()),
                _ => Self::Dependency(DependencyError::Unavailable(error.to_string())),
            },
            DatabaseError::UnreadableEvent(reason) => Self::UnreadableLog(reason.clone()),
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

impl From<DatabaseError> for QueueError {
    fn from(error: DatabaseError) -> Self {
        Self::Dependency(DependencyError::Unavailable(error.to_string()))
    }
}
