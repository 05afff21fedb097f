//! Event notifications in a file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use serde_json::json;
use sparks_engine::{DependencyError, Notification, PublishError, Publisher};

/// Appends every notification to a file as a line of JSON.
pub struct FilePublisher {
    path: PathBuf,
}

impl FilePublisher {
    /// Creates a publisher that appends to this file.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
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
        let path = self.path.clone();
        // A single write in append mode, so that lines of several processes are not interleaved.
        let append = move || {
            let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
            // A full disk may have left an incomplete line.
            if ends_with_partial_line(&mut file)? {
                lines.insert(0, '\n');
            }
            file.write_all(lines.as_bytes())
        };
        let appended = tokio::task::spawn_blocking(append).await.unwrap_or_else(|e| Err(io::Error::other(e)));
        appended.map_err(|error| {
            PublishError::Dependency(DependencyError::Unavailable(format!("{}: {error}", self.path.display())))
        })
    }

    async fn check(&self) -> Result<(), PublishError> {
        let path = self.path.clone();
        let open = move || OpenOptions::new().create(true).append(true).open(&path).map(drop);
        let opened = tokio::task::spawn_blocking(open).await.unwrap_or_else(|e| Err(io::Error::other(e)));
        opened.map_err(|error| {
            PublishError::Dependency(DependencyError::Unavailable(format!("{}: {error}", self.path.display())))
        })
    }
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
