//! Notices as lines of a file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use serde_json::json;
use sparks_engine::{Notice, PublishError, Publisher};

/// Appends every notice to a file, one JSON object a line, for whoever follows it.
pub struct FilePublisher {
    path: PathBuf,
}

impl FilePublisher {
    /// Appends to this file.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[async_trait]
impl Publisher for FilePublisher {
    async fn publish(&self, notices: &[Notice]) -> Result<(), PublishError> {
        let mut lines = String::new();
        for Notice { topic, event_type, deduplication, group, body } in notices {
            let line = json!({
                "topic": topic.name(), "eventType": event_type, "id": deduplication, "group": group, "message": body,
            });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        let path = self.path.clone();
        // One write of whole lines at the end of the file: several processes do not mix theirs.
        let append = move || {
            let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
            // A full disk may have left half a line behind.
            if ends_within_a_line(&mut file)? {
                lines.insert(0, '\n');
            }
            file.write_all(lines.as_bytes())
        };
        let appended = tokio::task::spawn_blocking(append).await.unwrap_or_else(|e| Err(io::Error::other(e)));
        appended.map_err(|error| PublishError::Unavailable(format!("{}: {error}", self.path.display())))
    }

    async fn check(&self) -> Result<(), PublishError> {
        let path = self.path.clone();
        let open = move || OpenOptions::new().create(true).append(true).open(&path).map(drop);
        let opened = tokio::task::spawn_blocking(open).await.unwrap_or_else(|e| Err(io::Error::other(e)));
        opened.map_err(|error| PublishError::Unavailable(format!("{}: {error}", self.path.display())))
    }
}

fn ends_within_a_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
