//! A data folder, opened.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sparks_engine::StoreError;

use crate::{
    FileObjects, FilePublisher, FolderPlatform, Intake, Patience, SqliteQueue, SqliteStore,
    database::{Database, DatabaseError},
    owner::{Owner, Owners},
};

/// Everything in one data folder.
pub struct Embedded {
    /// Table, log and signatures.
    pub store: Arc<SqliteStore>,
    /// Originals and pictures.
    pub objects: Arc<FileObjects>,
    /// Work to do.
    pub queue: Arc<SqliteQueue>,
    /// The platform's part: taking uploads in.
    pub intake: Intake,
    /// The same step by step.
    pub platform: Arc<FolderPlatform>,
    /// What others are told.
    pub publisher: Arc<FilePublisher>,
}

/// A data folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or a file in it.
    #[error("{path}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The database.
    #[error("{path}: {reason} ({advice})")]
    Database {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
        /// What helps.
        advice: &'static str,
    },
    /// There is nothing yet.
    #[error("{0} is not a data folder of sparks: name one with --data, or make one with `sparks ingest`")]
    NotThere(PathBuf),
}

impl Embedded {
    /// Opens the data folder, which must exist.
    pub fn open(folder: &Path, patience: Patience) -> Result<Self, OpenError> {
        if !folder.join("sparks.db").is_file() {
            return Err(OpenError::NotThere(folder.to_owned()));
        }
        Self::open_or_create(folder, patience)
    }

    /// Opens the data folder, making it if it is not there.
    pub fn open_or_create(folder: &Path, patience: Patience) -> Result<Self, OpenError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        // The folder of objects is made once: where it is away for a while, an empty one would hide that.
        let is_new = !folder.join("sparks.db").exists();
        for part in ["tmp", "owners"].into_iter().chain(is_new.then_some("objects")) {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(io(&part))?;
        }
        // One process at a time sets up: SQLite's own locks do not cover the change to a write-ahead log.
        let lock = folder.join("setup.lock");
        let alone = File::create(&lock).map_err(io(&lock))?;
        alone.lock().map_err(io(&lock))?;
        let database = folder.join("sparks.db");
        let open = || {
            let broken = |error: DatabaseError| {
                let (path, reason) = (database.clone(), error.to_string());
                OpenError::Database { path, reason, advice: advice(error) }
            };
            Database::open(&database).map_err(broken)
        };
        let (database, log_reader) = (open()?, open()?);
        let owners = Owners::new(folder.join("owners"));
        let owner = Owner::register(&owners).map_err(io(&folder.join("owners")))?;
        FileObjects::sweep(&folder.join("tmp"), &owners).map_err(io(&folder.join("tmp")))?;
        drop(alone);
        let objects = Arc::new(FileObjects::new(folder.join("objects"), folder.join("tmp"), owner.name()));
        Ok(Self {
            store: Arc::new(SqliteStore::new(database.clone(), log_reader)),
            platform: Arc::new(FolderPlatform::new(database.clone(), Arc::clone(&objects))),
            objects,
            queue: Arc::new(SqliteQueue::new(database.clone(), owner, owners, patience)),
            intake: Intake::new(database),
            publisher: Arc::new(FilePublisher::new(folder.join("published.jsonl"))),
        })
    }
}

/// What helps where the database does not open. A backup is for files that are damaged, and for nothing else.
fn advice(error: DatabaseError) -> &'static str {
    match error {
        DatabaseError::Newer(_) => "use a newer sparks, or name another folder with --data",
        error => match StoreError::from(error) {
            StoreError::Unavailable(_) | StoreError::Busy(_) | StoreError::Denied(_) => {
                "make sure that the disk is there, writable and not full, and try again"
            }
            StoreError::Unreadable(_) => "restore it from a backup, or name another folder with --data",
        },
    }
}
