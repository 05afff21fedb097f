//! A connection to the file, used from asynchronous code.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use sparks_engine::{QueueError, StoreError};
use tokio::task::{JoinError, spawn_blocking};

/// One connection, shared by clones. Everything that writes shares one: a second would throw the first one's page cache away
/// with every write.
#[derive(Clone)]
pub(crate) struct Database(Arc<Mutex<Shared>>);

struct Shared {
    connection: Connection,
    durability: Durability,
}

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

pub(crate) const SCHEMA: i64 = 3;

/// The steps from schema 1 on.
const MIGRATIONS: [&str; 2] = [include_str!("schema_2.sql"), include_str!("schema_3.sql")];

impl Database {
    /// Opens the file, making its tables if it is new.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "secure_delete", "on")?;
        connection.pragma_update(None, "cache_size", -32 * 1024)?;
        // Pages that many photos touch are carried over once for hundreds of photos.
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
            newer => return Err(DatabaseError::Newer(format!("the file has schema {newer}, made by another version"))),
        }
        if found != SCHEMA {
            transaction.pragma_update(None, "user_version", SCHEMA)?;
        }
        transaction.commit()?;
        Ok(Self(Arc::new(Mutex::new(Shared { connection, durability: Durability::Crash }))))
    }

    /// Runs the work in a transaction that writes: alone in the file, all or nothing.
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
            // Waits for the disk.
            Durability::PowerLoss => self.blocking(Kind::Write(durability), work).await,
            Durability::Crash => self.brief(Kind::Write(durability), work).await,
        }
    }

    /// Like [`Database::write`], for work that takes long and can be done again.
    pub async fn write_long<T, E>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.blocking(Kind::Write(Durability::Crash), work).await
    }

    /// Runs the work in a transaction that reads one moment of the file.
    pub async fn read<T, E>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.brief(Kind::Read, work).await
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
        self.blocking(Kind::Read, work).await
    }

    /// Like [`Database::read_long`], and then works on what was read, when others may use the connection again.
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
            let read = shared.run(Kind::Read, PATIENCE, &mut Some(read))?;
            drop(shared);
            then(read)
        });
        Ok(work.await.unwrap_or_else(|error| Err(stopped(&error)))?)
    }

    /// Work of microseconds stays on this thread, unless somebody is at it, in this process or another: two changes of thread
    /// cost more than the work itself, and a thread that waits holds up leases, signals and whoever asks how we are.
    async fn brief<T, E>(
        &self,
        kind: Kind,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let mut work = Some(work);
        if let Ok(mut shared) = self.0.try_lock() {
            let done = shared.run(kind, Duration::ZERO, &mut work);
            if work.is_none() {
                return done;
            }
        }
        self.blocking(kind, move |tx| work.map_or_else(|| Err(unasked().into()), |work| work(tx))).await
    }

    async fn blocking<T, E>(
        &self,
        kind: Kind,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        let work = spawn_blocking(move || {
            shared.lock().unwrap_or_else(PoisonError::into_inner).run(kind, PATIENCE, &mut Some(work))
        });
        work.await.unwrap_or_else(|error| Err(stopped(&error).into()))
    }
}

/// What a transaction does.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Read,
    Write(Durability),
}

/// How long to wait for a process that writes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Work is done once.
fn unasked() -> DatabaseError {
    DatabaseError::Unreadable("the transaction has nothing to do".into())
}

fn stopped(error: &JoinError) -> DatabaseError {
    DatabaseError::Unreadable(format!("the transaction stopped: {error}"))
}

impl Shared {
    /// Takes the work once the transaction has begun, and not if others write for longer than one is ready to wait.
    fn run<T, E: From<DatabaseError>>(
        &mut self,
        kind: Kind,
        patience: Duration,
        work: &mut Option<impl FnOnce(&Transaction<'_>) -> Result<T, E>>,
    ) -> Result<T, E> {
        let behavior = match kind {
            Kind::Read => TransactionBehavior::Deferred,
            Kind::Write(durability) => {
                self.set_durability(durability)?;
                self.connection.busy_timeout(patience).map_err(DatabaseError::from)?;
                TransactionBehavior::Immediate
            }
        };
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(DatabaseError::from)?;
        transaction.busy_timeout(PATIENCE).map_err(DatabaseError::from)?;
        let work = work.take().ok_or_else(unasked)?;
        let done = work(&transaction)?;
        transaction.commit().map_err(DatabaseError::from)?;
        Ok(done)
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
