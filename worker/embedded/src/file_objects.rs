//! Objects as files, written to a temporary file and then renamed.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use sparks_domain::Timestamp;
use sparks_engine::{
    Content, DependencyError, Object, ObjectEntry, ObjectInfo, Objects, ObjectsError, PutMode, object_key, sha256,
};

use crate::{durable_files, process_registry::ProcessRegistry};

/// A bucket in a folder.
#[derive(Clone)]
pub struct FileObjects(Arc<ObjectFolder>);

struct ObjectFolder {
    objects: PathBuf,
    /// Folder of temporary files, on the same file system.
    temporary: PathBuf,
    /// Name of this process, the prefix of its temporary files.
    process: String,
    file_count: AtomicU64,
}

impl FileObjects {
    pub(crate) fn new(objects: PathBuf, temporary: PathBuf, process: &str) -> Self {
        Self(Arc::new(ObjectFolder { objects, temporary, process: process.to_owned(), file_count: AtomicU64::new(0) }))
    }

    /// Returns the version of an object with these bytes: the first half of their SHA-256.
    pub fn version(bytes: &[u8]) -> String {
        sha256(bytes)[..VERSION_DIGITS].to_owned()
    }

    /// Removes the temporary files of processes that have ended.
    pub(crate) fn remove_stale(temporary: &Path, processes: &ProcessRegistry) -> io::Result<()> {
        for file in fs::read_dir(temporary)? {
            let file = file?;
            let name = file.file_name();
            if name
                .to_str()
                .and_then(|name| name.split_once('.'))
                .is_some_and(|(process, _)| processes.has_ended(process))
            {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }

    async fn run<T: Send + 'static>(
        &self,
        key: &str,
        work: impl FnOnce(&ObjectFolder, &Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, ObjectsError> {
        let path = self.0.path(key)?;
        let folder = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            // If the objects folder itself is missing, the objects are unavailable, not absent.
            folder.check_exists()?;
            work(&folder, &path).or_else(|error| folder.check_exists().and(Err(FileError::Io(error))))
        });
        done.await.unwrap_or_else(|error| Err(io::Error::other(error).into())).map_err(|error| match error {
            // Keys of folders, and keys below an object, are absent.
            FileError::Io(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory
                ) =>
            {
                ObjectsError::NotFound(key.to_owned())
            }
            error => {
                ObjectsError::Dependency { key: key.to_owned(), error: DependencyError::Unavailable(error.to_string()) }
            }
        })
    }
}

/// Error of accessing a file.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("the folder {0} does not exist")]
    MissingFolder(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ObjectFolder {
    /// Fails if the objects folder does not exist. It is never recreated: an empty folder would hide the loss of all objects.
    fn check_exists(&self) -> Result<(), FileError> {
        self.objects.is_dir().then_some(()).ok_or_else(|| FileError::MissingFolder(self.objects.display().to_string()))
    }

    /// Lists objects in the order of their keys. A file that is removed during the listing is skipped.
    fn list(&self, prefix: &str, after: &str, most: usize) -> io::Result<Vec<ObjectEntry>> {
        // Sorted by complete key, because the order of folder names differs from that of keys: `/` sorts after `-` and `.`.
        let (folder, _) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let mut keys: Vec<String> = Vec::new();
        for entry in walkdir::WalkDir::new(self.objects.join(folder)) {
            let entry = match entry.map_err(io::Error::from) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => continue,
                entry => entry?,
            };
            let key = entry.path().strip_prefix(&self.objects).ok().and_then(Path::to_str).map(str::to_owned);
            keys.extend(key.filter(|key| entry.file_type().is_file() && key.starts_with(prefix) && **key > *after));
        }
        keys.sort_unstable();
        let entries = keys.into_iter().filter_map(|key| {
            let metadata = fs::metadata(self.objects.join(&key)).ok()?;
            Some(ObjectEntry { key, bytes: metadata.len(), modified: modified(&metadata).ok()? })
        });
        Ok(entries.take(most).collect())
    }

    /// Returns the path of an object. Keys that would leave the folder are rejected, and different keys have different paths.
    fn path(&self, key: &str) -> Result<PathBuf, ObjectsError> {
        let fits = object_key(key)?.split('/').all(|part| part.len() <= MAX_NAME_BYTES);
        fits.then(|| self.objects.join(key)).ok_or_else(|| ObjectsError::BadKey(key.to_owned()))
    }

    /// Creates the parent folders of this path below the objects folder, but not the objects folder itself.
    fn create_parents(&self, path: &Path) -> io::Result<()> {
        let parents: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| *folder != self.objects).collect();
        for folder in parents.into_iter().rev() {
            durable_files::create_folder(folder)?;
        }
        Ok(())
    }

    /// Writes and syncs a temporary file, then renames it, so that readers see the complete object or none. It is durable before it is
    /// reported as stored, because a commit refers to it.
    fn write(&self, path: &Path, body: &[u8], mode: &PutMode) -> io::Result<bool> {
        let temporary =
            self.temporary.join(format!("{}.{}", self.process, self.file_count.fetch_add(1, Ordering::Relaxed)));
        // Not passed on as `NotFound`, which would mean that the object is absent.
        let mut file = File::create(&temporary).map_err(io::Error::other)?;
        let stored =
            file.write_all(body).and_then(|()| file.sync_data()).and_then(|()| self.place(&temporary, path, mode));
        // Only a rename removes the temporary file.
        if !matches!(stored, Ok(true)) || *mode == PutMode::IfAbsent {
            let _ = fs::remove_file(&temporary); // renamed already if only the sync of the folder failed
        }
        stored
    }

    /// Moves a temporary file to its path. Returns false if an object exists that must not be replaced.
    fn place(&self, temporary: &Path, path: &Path, mode: &PutMode) -> io::Result<bool> {
        self.create_parents(path)?;
        match mode {
            PutMode::Replace => durable_files::rename(temporary, path).map(|()| true),
            // Unlike a rename, a hard link never replaces a file.
            PutMode::IfAbsent => match durable_files::hard_link(temporary, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                result => result.map(|()| true),
            },
            PutMode::IfVersion(version) => {
                let _exclusive = self.lock()?;
                match fs::read(path) {
                    Ok(stored) if FileObjects::version(&stored) == *version => {
                        durable_files::rename(temporary, path).map(|()| true)
                    }
                    Ok(_) => Ok(false),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Locks out other conditional replacements and deletions, in every process, until the file is dropped.
    fn lock(&self) -> io::Result<File> {
        let lock = File::create(self.temporary.join(LOCK)).map_err(io::Error::other)?;
        lock.lock().map_err(io::Error::other)?;
        Ok(lock)
    }
}

#[async_trait]
impl Objects for FileObjects {
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError> {
        let read = move |_: &ObjectFolder, path: &Path| {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let size = metadata.len();
            if size > most_bytes {
                return Ok(Err(size));
            }
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
            file.take(most_bytes).read_to_end(&mut bytes)?;
            let version = Self::version(&bytes);
            Ok(Ok(Object { bytes, version }))
        };
        let too_large = |bytes| ObjectsError::TooLarge { key: key.to_owned(), bytes, most: most_bytes };
        self.run(key, read).await?.map_err(too_large)
    }

    async fn put(&self, key: &str, body: Vec<u8>, _: Content, mode: PutMode) -> Result<bool, ObjectsError> {
        self.run(key, move |folder, path| {
            if mode == PutMode::IfAbsent && path.try_exists()? {
                return Ok(false);
            }
            folder.write(path, &body, &mode)
        })
        .await
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        let remove = |folder: &ObjectFolder, path: &Path| {
            let _exclusive = folder.lock()?;
            fs::remove_file(path)
        };
        match self.run(key, remove).await {
            Ok(()) | Err(ObjectsError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn delete_version(&self, key: &str, version: &str) -> Result<(), ObjectsError> {
        let version = version.to_owned();
        let remove = move |folder: &ObjectFolder, path: &Path| {
            let _exclusive = folder.lock()?;
            if Self::version(&fs::read(path)?) == version {
                fs::remove_file(path)?;
            }
            Ok(())
        };
        match self.run(key, remove).await {
            Ok(()) | Err(ObjectsError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectInfo>, ObjectsError> {
        let describe = |_: &ObjectFolder, path: &Path| {
            let mut file = File::open(path)?;
            let (mut digest, mut bytes, mut part) = (Sha256::new(), 0, vec![0; 1 << 16]);
            loop {
                match file.read(&mut part)? {
                    0 => break,
                    read => {
                        digest.update(&part[..read]);
                        bytes += read as u64;
                    }
                }
            }
            let sha256: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            let (version, modified) = (sha256[..VERSION_DIGITS].to_owned(), modified(&file.metadata()?)?);
            Ok(ObjectInfo { bytes, version, sha256: Some(sha256), modified })
        };
        match self.run(key, describe).await {
            Ok(info) => Ok(Some(info)),
            Err(ObjectsError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<ObjectEntry>, ObjectsError> {
        let (within, after) = (prefix.to_owned(), after.unwrap_or_default().to_owned());
        let key = if prefix.is_empty() { "-" } else { prefix.trim_end_matches('/') };
        self.run(key, move |folder, _| {
            let entries = folder.list(&within, &after, most)?;
            // An objects folder that was removed during the listing must not look like an empty bucket.
            folder.check_exists().map_err(io::Error::other)?;
            Ok(entries)
        })
        .await
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        self.run("check", |folder, _| {
            let temporary = folder.temporary.join(format!("{}.check", folder.process));
            let result = File::create(&temporary).and_then(|mut file| file.write_all(&[0; CHECK_BYTES]));
            let _ = fs::remove_file(&temporary);
            result.map_err(io::Error::other)
        })
        .await
    }
}

/// Returns the time at which a file was stored.
fn modified(metadata: &fs::Metadata) -> io::Result<Timestamp> {
    let since = metadata.modified()?.duration_since(std::time::UNIX_EPOCH).map_err(io::Error::other)?;
    Ok(Timestamp::from_millis(i64::try_from(since.as_millis()).map_err(io::Error::other)?))
}

/// The length of a version, in hexadecimal digits.
const VERSION_DIGITS: usize = 32;

/// Name of the lock file among the temporary files. Without a dot, so that it is not taken for the file of a process.
const LOCK: &str = "conditional-writes";

/// Maximum length of a file name on common file systems.
const MAX_NAME_BYTES: usize = 255;

/// Free space that a check requires.
const CHECK_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    #[test]
    fn missing_objects_folder_is_not_recreated_by_a_write() {
        let scratch = tempfile::tempdir().unwrap();
        let (objects, temporary) = (scratch.path().join("objects"), scratch.path().join("tmp"));
        fs::create_dir(&temporary).unwrap();
        let files = FileObjects::new(objects.clone(), temporary.clone(), "w");
        for mode in [PutMode::Replace, PutMode::IfAbsent] {
            let error = files.0.write(&objects.join("large/a/b.webp"), b"webp", &mode).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
        assert!(!objects.exists());
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "temporary files");
    }
}
