//! Objects as files: written aside, then renamed into place.

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
use sparks_engine::{Content, Listed, Object, Objects, ObjectsError, PutMode, object_key};

use crate::owner::Owners;

/// A bucket that is a folder.
#[derive(Clone)]
pub struct FileObjects(Arc<Folders>);

struct Folders {
    objects: PathBuf,
    aside: PathBuf,
    owner: String,
    written: AtomicU64,
}

impl FileObjects {
    pub(crate) fn new(objects: PathBuf, aside: PathBuf, owner: &str) -> Self {
        Self(Arc::new(Folders { objects, aside, owner: owner.to_owned(), written: AtomicU64::new(0) }))
    }

    /// The version of an object with these bytes.
    pub fn version(bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Removes what processes that have ended left half-written.
    pub(crate) fn sweep(aside: &Path, owners: &Owners) -> io::Result<()> {
        for file in fs::read_dir(aside)? {
            let file = file?;
            let name = file.file_name();
            if name.to_str().and_then(|name| name.split_once('.')).is_some_and(|(owner, _)| owners.is_dead(owner)) {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }

    async fn run<T: Send + 'static>(
        &self,
        key: &str,
        work: impl FnOnce(&Folders, &Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, ObjectsError> {
        let path = self.0.path(key)?;
        let folders = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            // Where the folder itself is gone, no object is missing: none can be had.
            folders.present()?;
            work(&folders, &path).or_else(|error| folders.present().and(Err(Trouble::Io(error))))
        });
        done.await.unwrap_or_else(|stopped| Err(io::Error::other(stopped).into())).map_err(|trouble| match trouble {
            // A folder on the way to an object is no object, and below an object there is none.
            Trouble::Io(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory
                ) =>
            {
                ObjectsError::NotFound(key.to_owned())
            }
            trouble => ObjectsError::Unavailable { key: key.to_owned(), reason: trouble.to_string() },
        })
    }
}

/// Why a file could not be had.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("the folder {0} is not there")]
    NoFolder(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Folders {
    /// The folder of objects must be there: making it anew would hide that all of them are gone.
    fn present(&self) -> Result<(), Trouble> {
        let here = self.objects.is_dir();
        here.then_some(()).ok_or_else(|| Trouble::NoFolder(self.objects.display().to_string()))
    }

    /// Objects under a folder, by key. A file that goes meanwhile is not listed.
    fn list(&self, prefix: &str, after: &str, most: usize) -> io::Result<Vec<Listed>> {
        // By key: the folder a prefix ends in sorts like its name and a slash, so names are compared whole.
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
        let listed = keys.into_iter().filter_map(|key| {
            let about = fs::metadata(self.objects.join(&key)).ok()?;
            let modified = about.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            let modified = Timestamp::from_millis(i64::try_from(modified.as_millis()).ok()?);
            Some(Listed { key, bytes: about.len(), modified })
        });
        Ok(listed.take(most).collect())
    }

    /// The file of an object. Keys that would leave the folder name nothing, and no two keys name the same file.
    fn path(&self, key: &str) -> Result<PathBuf, ObjectsError> {
        let fits = object_key(key)?.split('/').all(|part| part.len() <= LONGEST_NAME);
        fits.then(|| self.objects.join(key)).ok_or_else(|| ObjectsError::BadKey(key.to_owned()))
    }

    /// Makes the folders between that of objects and this path, and never that of objects: it may go at any time.
    fn make_way(&self, path: &Path) -> io::Result<()> {
        let between: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| *folder != self.objects).collect();
        for folder in between.into_iter().rev() {
            match fs::create_dir(folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
        }
        Ok(())
    }

    /// Writes aside, makes it last, then puts it in place: whoever reads sees all of it or nothing. The name lasts, too, once
    /// the commit that speaks of it does: journals keep the order.
    fn write(&self, path: &Path, body: &[u8], mode: PutMode) -> io::Result<bool> {
        let aside = self.aside.join(format!("{}.{}", self.owner, self.written.fetch_add(1, Ordering::Relaxed)));
        // Where there is no room aside, no object is missing.
        let mut file = File::create(&aside).map_err(io::Error::other)?;
        let placed = file.write_all(body).and_then(|()| file.sync_data()).and_then(|()| self.place(&aside, path, mode));
        // What is not renamed into place takes room from the next.
        if !matches!((&placed, mode), (Ok(_), PutMode::Replace)) {
            fs::remove_file(&aside)?;
        }
        placed
    }

    /// Puts what was written aside in place; false if something is there that must not be replaced.
    fn place(&self, aside: &Path, path: &Path, mode: PutMode) -> io::Result<bool> {
        self.make_way(path)?;
        let placed = match mode {
            PutMode::Replace => fs::rename(aside, path),
            // Unlike a rename, a link never replaces.
            PutMode::IfAbsent => fs::hard_link(aside, path),
        };
        match placed {
            Err(error) if mode == PutMode::IfAbsent && error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            placed => placed.map(|()| true),
        }
    }
}

#[async_trait]
impl Objects for FileObjects {
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError> {
        let read = move |_: &Folders, path: &Path| {
            let file = File::open(path)?;
            let about = file.metadata()?;
            if about.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let size = about.len();
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
        self.run(key, move |folders, path| {
            if mode == PutMode::IfAbsent && path.try_exists()? {
                return Ok(false);
            }
            folders.write(path, &body, mode)
        })
        .await
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        match self.run(key, |_, path| fs::remove_file(path)).await {
            Ok(()) | Err(ObjectsError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, ObjectsError> {
        match self.run(key, |_, path| fs::metadata(path)).await {
            Ok(about) => Ok(about.is_file().then_some(about.len())),
            Err(ObjectsError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Listed>, ObjectsError> {
        let (within, after) = (prefix.to_owned(), after.unwrap_or_default().to_owned());
        let key = if prefix.is_empty() { "-" } else { prefix.trim_end_matches('/') };
        self.run(key, move |folders, _| {
            let listed = folders.list(&within, &after, most)?;
            // What went away meanwhile would look like an empty bucket.
            folders.present().map_err(io::Error::other)?;
            Ok(listed)
        })
        .await
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        self.run("check", |folders, _| {
            let aside = folders.aside.join(format!("{}.check", folders.owner));
            let written = File::create(&aside).and_then(|mut file| file.write_all(&[0; CHECKED_BYTES]));
            let _ = fs::remove_file(&aside);
            written.map_err(io::Error::other)
        })
        .await
    }
}

/// Bytes in the name of a file, as file systems limit them.
const LONGEST_NAME: usize = 255;

/// As much as must fit for objects to be storable.
const CHECKED_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected may stop")]

    use super::*;

    #[test]
    fn a_folder_of_objects_that_goes_while_one_is_written_is_not_made_anew() {
        let scratch = tempfile::tempdir().unwrap();
        let (objects, aside) = (scratch.path().join("objects"), scratch.path().join("aside"));
        fs::create_dir(&aside).unwrap();
        let files = FileObjects::new(objects.clone(), aside.clone(), "w");
        for mode in [PutMode::Replace, PutMode::IfAbsent] {
            let error = files.0.write(&objects.join("large/a/b.webp"), b"webp", mode).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
        assert!(!objects.exists());
        assert_eq!(fs::read_dir(&aside).unwrap().count(), 0, "nothing is left behind");
    }
}
