//! The lines at the end of a file that grows, and that may not be there yet, be cut or be replaced.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// Bytes read at once.
const CHUNK: u64 = 1 << 16;

/// Lines of a file, the last ones first of all, then those to come. A line without an end is not there yet.
pub struct Lines {
    path: PathBuf,
    open: Option<Open>,
}

struct Open {
    file: File,
    /// How far it has been read.
    at: u64,
    /// The beginning of a line whose end is to come.
    half: Vec<u8>,
}

impl Lines {
    /// The lines of the file at this path.
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), open: None }
    }

    /// The last `most` lines that `read` makes something of; `next` goes on after them.
    pub fn last<T>(&mut self, most: usize, read: impl Fn(&str) -> Option<T>) -> io::Result<Vec<T>> {
        let Some(mut file) = open(&self.path)? else { return Ok(Vec::new()) };
        let (last, at) = match last(&mut file, most, read) {
            // Cut while it was read: what is there now is new.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => (Vec::new(), 0),
            last => last?,
        };
        self.open = Some(Open { file, at, half: Vec::new() });
        Ok(last)
    }

    /// Some lines that came since, perhaps none that is complete. Nothing if there is nothing new.
    pub fn next(&mut self) -> io::Result<Option<Vec<String>>> {
        if self.open.is_none() {
            self.open = open(&self.path)?.map(|file| Open { file, at: 0, half: Vec::new() });
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        let new = open.next()?;
        // What was written to the old file before another took its place is read to the end.
        if new.is_none() && !open.is_at(&self.path)? {
            self.open = None;
        }
        Ok(new)
    }
}

impl Open {
    fn next(&mut self) -> io::Result<Option<Vec<String>>> {
        if self.file.metadata()?.len() < self.at {
            (self.at, self.half) = (0, Vec::new());
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        let read = (&self.file).take(CHUNK).read_to_end(&mut self.half)?;
        self.at += read as u64;
        if read == 0 {
            return Ok(None);
        }
        let Some(end) = self.half.iter().rposition(|byte| *byte == b'\n') else { return Ok(Some(Vec::new())) };
        let half = self.half.split_off(end + 1);
        let whole = std::mem::replace(&mut self.half, half);
        Ok(Some(String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()))
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        match fs::metadata(path) {
            Ok(there) => Ok(id(&there) == id(&self.file.metadata()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What `read` makes of the last lines, and where the last one ends. Reads backwards: the file may be long.
fn last<T>(file: &mut File, most: usize, read: impl Fn(&str) -> Option<T>) -> io::Result<(Vec<T>, u64)> {
    let (mut found, mut end) = (Vec::new(), None);
    let mut start = file.metadata()?.len();
    // What has been read of a line whose beginning is still to come, without its end.
    let mut rest = Vec::new();
    while start > 0 && (found.len() < most || end.is_none()) {
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
            let read = lines.filter_map(|line| read(&String::from_utf8_lossy(line)));
            found.extend(read.take(most - found.len()));
            bytes.truncate(first.saturating_sub(1));
        }
        rest = bytes;
    }
    found.reverse();
    Ok((found, end.unwrap_or_default()))
}

#[cfg(unix)]
fn id(about: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (about.dev(), about.ino())
}

#[cfg(not(unix))]
fn id(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests;
