//! The data folder of the embedded backend.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sparks_engine::StoreError;

use crate::{
    FileObjects, FilePublisher, FolderPlatformClient, FolderWorkers, PublishedRetention, QueueConfig, SqliteQueue,
    SqliteStore, UploadSubmitter,
    database::{Database, DatabaseError},
    durable_files,
    folder_level::FolderLevel,
    process_registry::{ProcessLock, ProcessRegistry},
    sqlite_queue,
};

/// The adapters over one data folder.
pub struct Embedded {
    /// Table, event log and signatures.
    pub store: Arc<SqliteStore>,
    /// Originals, variants and crops.
    pub objects: Arc<FileObjects>,
    /// Work queue and dead letters.
    pub queue: Arc<SqliteQueue>,
    /// Uploads of `sparks ingest` and the inbox: row and message in one transaction.
    pub submitter: UploadSubmitter,
    /// Uploads of load tests: object, row and message as separate steps.
    pub platform: Arc<FolderPlatformClient>,
    /// Event notifications, appended to a file.
    pub publisher: Arc<FilePublisher>,
    /// The other processes that use the folder.
    pub workers: Arc<FolderWorkers>,
}

/// Configuration of a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderConfig {
    /// The queue.
    pub queue: QueueConfig,
    /// How long event notifications are kept.
    pub published: PublishedRetention,
}

/// Error of opening a data folder.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or a file in it cannot be created or locked.
    #[error("{path}")]
    Io {
        /// The path of the folder or file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The database cannot be opened.
    #[error("{path}: {reason}; {remedy}")]
    Database {
        /// The path of the database.
        path: PathBuf,
        /// The error of the database.
        reason: String,
        /// How to resolve it.
        remedy: &'static str,
    },
    /// The folder does not exist or contains no database.
    #[error("{0} is not a data folder of sparks; name one with --data, or create one with `sparks ingest`")]
    Missing(PathBuf),
}

impl Embedded {
    /// Opens the data folder, which must exist.
    pub fn open(folder: &Path, config: FolderConfig) -> Result<Self, OpenError> {
        if !folder.join("sparks.db").is_file() {
            return Err(OpenError::Missing(folder.to_owned()));
        }
        Self::open_or_create(folder, config)
    }

    /// Opens the data folder, creating it if it does not exist.
    pub fn open_or_create(folder: &Path, config: FolderConfig) -> Result<Self, OpenError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        // The objects folder is created only with the database: if it is missing later, such as an unmounted volume, an empty one
        // would hide that.
        let is_new = !folder.join("sparks.db").exists();
        for part in ["tmp", "owners"].into_iter().chain(is_new.then_some("objects")) {
            let part = folder.join(part);
            durable_files::create_folders(&part).map_err(io(&part))?;
        }
        // One process at a time sets up the folder: SQLite's locks do not cover the switch to write-ahead logging.
        let lock = folder.join("setup.lock");
        let setup_lock = File::create(&lock).map_err(io(&lock))?;
        setup_lock.lock().map_err(io(&lock))?;
        let database = folder.join("sparks.db");
        let database_error = |error: DatabaseError| {
            let (path, reason) = (database.clone(), error.to_string());
            OpenError::Database { path, reason, remedy: remedy(error) }
        };
        let open = || Database::open(&database).map_err(database_error);
        let (connection, log_reader) = (open()?, open()?);
        let processes = ProcessRegistry::new(folder.join("owners"));
        // Here too, because most commands receive no messages: their lock files would remain until a worker starts.
        sqlite_queue::release_ended(&connection, &processes).map_err(database_error)?;
        let process = ProcessLock::register(&processes).map_err(io(&folder.join("owners")))?;
        FileObjects::remove_stale(&folder.join("tmp"), &processes).map_err(io(&folder.join("tmp")))?;
        drop(setup_lock);
        let objects = Arc::new(FileObjects::new(folder.join("objects"), folder.join("tmp"), process.name()));
        let level = FolderLevel::new(lock, processes.clone());
        Ok(Self {
            store: Arc::new(SqliteStore::new(connection.clone(), log_reader, level)),
            workers: Arc::new(FolderWorkers::new(processes.clone(), process.name())),
            platform: Arc::new(FolderPlatformClient::new(connection.clone(), Arc::clone(&objects))),
            objects,
            queue: Arc::new(SqliteQueue::new(connection.clone(), process, processes, config.queue)),
            submitter: UploadSubmitter::new(connection),
            publisher: Arc::new(FilePublisher::new(folder.join("published.jsonl"), config.published)),
        })
    }
}

/// Returns how to resolve an error of opening the database. Restoring a backup is recommended only for a damaged file.
fn remedy(error: DatabaseError) -> &'static str {
    match error {
        DatabaseError::NewerSchema(_) => "use a newer sparks, or name another folder with --data",
        error => match StoreError::from(error) {
            StoreError::Dependency(_) => "make sure that the disk is mounted, writable and not full, then retry",
            StoreError::UnreadableLog(_) => "use a newer sparks, or name another folder with --data",
            StoreError::Unreadable(_) | StoreError::Refused(_) | StoreError::LevelTooLow { .. } => {
                "restore it from a backup, or name another folder with --data"
            }
        },
    }
}
