//! Event notifications in a file.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use serde_json::json;
use sparks_engine::{DependencyError, Notification, PublishError, Publisher};

/// Appends every notification to a file as a line of JSON. A file that is too large or too old is renamed to the previous file, which
/// replaces the one before.
pub struct FilePublisher(Arc<NotificationFile>);

/// How long notifications are kept. `None` means without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedRetention {
    /// Size from which the file becomes the previous one, so that both have up to twice as much.
    pub max_file_bytes: Option<u64>,
    /// Age of the file from which it becomes the previous one, and age of the last notification in the previous file from which
    /// that is removed.
    pub max_age: Option<Duration>,
}

struct NotificationFile {
    path: PathBuf,
    previous: PathBuf,
    retention: PublishedRetention,
}

impl FilePublisher {
    /// Creates a publisher that appends to this file.
    pub fn new(path: PathBuf, retention: PublishedRetention) -> Self {
        let mut previous = path.clone().into_os_string();
        previous.push(".1");
        Self(Arc::new(NotificationFile { path, previous: previous.into(), retention }))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the path of the previous file.
    pub fn previous_path(&self) -> &Path {
        &self.0.previous
    }

    async fn run(
        &self,
        work: impl FnOnce(&NotificationFile) -> io::Result<()> + Send + 'static,
    ) -> Result<(), PublishError> {
        let file = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&file)).await.unwrap_or_else(|e| Err(io::Error::other(e)));
        done.map_err(|error| {
            PublishError::Dependency(DependencyError::Unavailable(format!("{}: {error}", self.0.path.display())))
        })
    }
}

#[async_trait]
impl Publisher for FilePublisher {
    async fn publish(&self, notifications: &[Notification]) -> Result<(), PublishError> {
        let mut lines = String::new();
        for Notification { topic, event_type, deduplication, group, body } in notifications {
            let line = json!({
                "topic": topic.name(), "eventType": event_type, "id": deduplication, "group": group, "message": body,
            });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        self.run(move |file| file.append(lines, SystemTime::now())).await
    }

    /// Also removes old notifications, which a worker without messages would keep otherwise.
    async fn check(&self) -> Result<(), PublishError> {
        self.run(|file| file.open(SystemTime::now()).map(drop)).await
    }
}

impl NotificationFile {
    fn append(&self, mut lines: String, now: SystemTime) -> io::Result<()> {
        let mut file = self.open(now)?;
        // A full disk may have left an incomplete line.
        if ends_with_partial_line(&mut file)? {
            lines.insert(0, '\n');
        }
        file.write_all(lines.as_bytes())
    }

    /// Applies the retention at this time and opens the file to append, locked until it is closed.
    fn open(&self, now: SystemTime) -> io::Result<File> {
        let max_age = self.retention.max_age;
        let is_older = |time: io::Result<SystemTime>| {
            let age = time.ok().and_then(|time| now.duration_since(time).ok());
            age.zip(max_age).is_some_and(|(age, max_age)| age >= max_age)
        };
        // Locked before the previous file is looked at, which is replaced only under the lock.
        let file = self.open_locked()?;
        if is_older(fs::metadata(&self.previous).and_then(|previous| previous.modified())) {
            fs::remove_file(&self.previous)?;
        }
        let metadata = file.metadata()?;
        let is_too_large = self.retention.max_file_bytes.is_some_and(|most| metadata.len() >= most);
        // Without creation times in the file system only the size counts.
        if metadata.len() > 0 && (is_too_large || is_older(metadata.created())) {
            fs::rename(&self.path, &self.previous)?;
            return self.open_locked();
        }
        Ok(file)
    }

    /// Opens the file, creating it if it does not exist, and locks it: no other process then renames it, or appends a part of a line.
    fn open_locked(&self) -> io::Result<File> {
        loop {
            let file = OpenOptions::new().create(true).read(true).append(true).open(&self.path)?;
            file.lock()?;
            // Renamed by another process before it was locked: a reader may have read it to its end.
            match fs::metadata(&self.path) {
                Ok(current) if identity(&current) == identity(&file.metadata()?) => return Ok(file),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn ends_with_partial_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn publisher(folder: &Path, max_file_bytes: Option<u64>, max_age: Option<Duration>) -> FilePublisher {
        FilePublisher::new(folder.join("published.jsonl"), PublishedRetention { max_file_bytes, max_age })
    }

    impl FilePublisher {
        /// Appends a line at a time that is this much later.
        fn append(&self, line: &str, later: Duration) {
            self.0.append(format!("{line}\n"), SystemTime::now() + later).unwrap();
        }

        /// Returns the contents of the previous file, if there is one, and of the file.
        fn contents(&self) -> (Option<String>, String) {
            (fs::read_to_string(self.previous_path()).ok(), fs::read_to_string(self.path()).unwrap())
        }
    }

    #[test]
    fn notifications_are_kept_without_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let publisher = publisher(folder.path(), None, None);
        publisher.append("a", Duration::ZERO);
        publisher.append("b", HOUR * 100_000);
        assert_eq!(publisher.contents(), (None, "a\nb\n".into()));
    }

    #[test]
    fn a_file_above_its_size_becomes_the_previous_one() {
        let folder = tempfile::tempdir().unwrap();
        let publisher = publisher(folder.path(), Some(4), None);
        for (line, contents) in [
            ("a", (None, "a\n")),
            ("b", (None, "a\nb\n")),
            ("c", (Some("a\nb\n"), "c\n")),
            ("long", (Some("a\nb\n"), "c\nlong\n")),
            ("d", (Some("c\nlong\n"), "d\n")),
        ] {
            publisher.append(line, Duration::ZERO);
            assert_eq!(publisher.contents(), (contents.0.map(str::to_owned), contents.1.to_owned()), "{line}");
        }
    }

    #[test]
    fn a_notification_is_removed_between_once_and_twice_its_age() {
        let folder = tempfile::tempdir().unwrap();
        let publisher = publisher(folder.path(), None, Some(HOUR));
        publisher.append("a", Duration::ZERO);
        publisher.append("b", HOUR / 2);
        assert_eq!(publisher.contents(), (None, "a\nb\n".into()));
        publisher.append("c", HOUR);
        // Written now as far as the file system knows, so that it is removed after another hour from now.
        let written = HOUR / 2;
        let previous = OpenOptions::new().append(true).open(publisher.previous_path()).unwrap();
        previous.set_modified(SystemTime::now() + written).unwrap();
        assert_eq!(publisher.contents(), (Some("a\nb\n".into()), "c\n".into()));
        drop(publisher.0.open(SystemTime::now() + written + HOUR / 2).unwrap());
        assert!(publisher.previous_path().exists(), "`b` is half an hour old");
    }

    #[test]
    fn a_check_without_notifications_removes_old_ones() {
        let folder = tempfile::tempdir().unwrap();
        let publisher = publisher(folder.path(), None, Some(HOUR));
        publisher.append("a", Duration::ZERO);
        drop(publisher.0.open(SystemTime::now() + HOUR).unwrap());
        assert_eq!(publisher.contents(), (Some("a\n".into()), String::new()));
        drop(publisher.0.open(SystemTime::now() + HOUR).unwrap());
        assert_eq!(publisher.contents(), (None, String::new()));
    }
}
