//! The last lines of a growing file, which may be missing at first, truncated or replaced. It is replaced when it becomes the previous
//! file, whose lines are then read first.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Bytes read per request.
const CHUNK: u64 = 1 << 16;

/// Reads the last lines of a file, then new ones. A line counts only once its line feed is written.
pub struct FileTail {
    path: PathBuf,
    previous: PathBuf,
    open: Option<OpenFile>,
    /// The previous file when `open` was opened, which is read already. Any other one was begun later.
    read_before: Option<FileVersion>,
}

struct OpenFile {
    file: File,
    /// Offset of the next byte to read.
    offset: u64,
    /// The beginning of a line without its line feed.
    partial_line: Vec<u8>,
}

/// A file that is no longer written to. With its time, because the identity of a removed file is used again.
#[derive(PartialEq)]
struct FileVersion {
    identity: (u64, u64),
    modified: SystemTime,
}

impl FileTail {
    /// Prepares to read the file at this path after the one at the path `previous`. Neither needs to exist yet.
    pub fn new(path: &Path, previous: &Path) -> Self {
        Self { path: path.to_owned(), previous: previous.to_owned(), open: None, read_before: None }
    }

    /// Returns the last `limit` lines that `parse` accepts; `next` continues after them.
    pub fn last<T>(&mut self, limit: usize, parse: impl Fn(&str) -> Option<T>) -> io::Result<Vec<T>> {
        self.open = open(&self.path)?.map(OpenFile::new);
        let mut lines = match &mut self.open {
            Some(open) => open.last(limit, &parse)?,
            None => Vec::new(),
        };
        if let Some(mut previous) = self.open_previous()? {
            self.read_before = Some(previous.version()?);
            let mut earlier = previous.last(limit - lines.len(), &parse)?;
            earlier.append(&mut lines);
            lines = earlier;
        }
        Ok(lines)
    }

    /// Returns new lines, possibly no complete one; `None` if nothing was written.
    pub fn next(&mut self) -> io::Result<Option<Vec<String>>> {
        if self.open.is_none() {
            self.open = self.open_next()?;
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        // Checked before the read: nothing is appended to a file once it is replaced.
        let is_replaced = !open.is_at(&self.path)?;
        let new = open.next()?;
        // A replaced file is read to its end before the next one is opened.
        if new.is_none() && is_replaced {
            self.open = self.open_next()?;
        }
        Ok(new)
    }

    /// Opens the previous file, unless it is the open one.
    fn open_previous(&self) -> io::Result<Option<OpenFile>> {
        let previous = open(&self.previous)?.map(OpenFile::new);
        Ok(match (previous, &self.open) {
            (Some(previous), Some(open)) if previous.identity()? == open.identity()? => None,
            (previous, _) => previous,
        })
    }

    /// Opens the file after the open one: the previous file if the open one was replaced twice, otherwise that at the path. Opens the
    /// latter first, because it may become the previous one at any time.
    fn open_next(&mut self) -> io::Result<Option<OpenFile>> {
        let next = open(&self.path)?.map(OpenFile::new);
        match (self.open_previous()?, &self.open) {
            (Some(previous), _) if self.read_before != Some(previous.version()?) => return Ok(Some(previous)),
            (None, Some(open)) => self.read_before = Some(open.version()?),
            _ => {}
        }
        Ok(next)
    }
}

impl OpenFile {
    fn new(file: File) -> Self {
        Self { file, offset: 0, partial_line: Vec::new() }
    }

    fn last<T>(&mut self, limit: usize, parse: impl Fn(&str) -> Option<T>) -> io::Result<Vec<T>> {
        let (last, offset) = match last(&mut self.file, limit, parse) {
            // Truncated while it was read: everything in it is new.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => (Vec::new(), 0),
            last => last?,
        };
        self.offset = offset;
        Ok(last)
    }

    fn next(&mut self) -> io::Result<Option<Vec<String>>> {
        if self.file.metadata()?.len() < self.offset {
            (self.offset, self.partial_line) = (0, Vec::new());
        }
        self.file.seek(SeekFrom::Start(self.offset))?;
        let read = (&self.file).take(CHUNK).read_to_end(&mut self.partial_line)?;
        self.offset += read as u64;
        if read == 0 {
            return Ok(None);
        }
        let Some(end) = self.partial_line.iter().rposition(|byte| *byte == b'\n') else { return Ok(Some(Vec::new())) };
        let partial_line = self.partial_line.split_off(end + 1);
        let complete = std::mem::replace(&mut self.partial_line, partial_line);
        Ok(Some(String::from_utf8_lossy(&complete).lines().map(str::to_owned).collect()))
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(file_identity(&metadata) == self.identity()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn version(&self) -> io::Result<FileVersion> {
        let metadata = self.file.metadata()?;
        Ok(FileVersion { identity: file_identity(&metadata), modified: metadata.modified()? })
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok(file_identity(&self.file.metadata()?))
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the last lines that `parse` accepts, and the offset after the last line. Reads backwards: the file may be long.
fn last<T>(file: &mut File, limit: usize, parse: impl Fn(&str) -> Option<T>) -> io::Result<(Vec<T>, u64)> {
    let (mut found, mut end) = (Vec::new(), None);
    let mut start = file.metadata()?.len();
    // The end of a line whose beginning is not read yet.
    let mut rest = Vec::new();
    while start > 0 && (found.len() < limit || end.is_none()) {
        let mut bytes = vec![0; usize::try_from(start.min(CHUNK)).unwrap_or_default()];
        start -= bytes.len() as u64;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        bytes.append(&mut rest);
        if end.is_none() {
            let last = bytes.iter().rposition(|byte| *byte == b'\n');
            end = last.map(|last| start + last as u64 + 1);
            bytes.truncate(last.unwrap_or(bytes.len()));
        }
        let first = if start == 0 { Some(0) } else { bytes.iter().position(|byte| *byte == b'\n').map(|n| n + 1) };
        if let (Some(first), Some(_)) = (first, end) {
            let lines = bytes[first..].rsplit(|byte| *byte == b'\n');
            let parsed = lines.filter_map(|line| parse(&String::from_utf8_lossy(line)));
            found.extend(parsed.take(limit - found.len()));
            bytes.truncate(first.saturating_sub(1));
        }
        rest = bytes;
    }
    found.reverse();
    Ok((found, end.unwrap_or_default()))
}

#[cfg(unix)]
fn file_identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn file_identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
#[path = "file_tail_tests.rs"]
mod tests;
