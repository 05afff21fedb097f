//! Collections as files of JSON lines: a header, then one line per face.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sparks_domain::{FaceBox, Signature};
use uuid::Uuid;

use crate::indexed_faces::{Collection, IndexedFace};

/// Extension of the file of a collection.
const EXTENSION: &str = "jsonl";
/// Extension of an incomplete file, which is removed when the folder is opened.
const INCOMPLETE: &str = "new";

/// Error of opening a folder of collections.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// An I/O error.
    #[error("failed to open {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Another server uses the folder.
    #[error("{0} is in use by another server")]
    InUse(PathBuf),
    /// A file is damaged.
    #[error("{path} is damaged in line {line}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// The parse error.
        reason: String,
    },
    /// The file was written with another model, whose signatures are not comparable.
    #[error("{path} was written with model {found}, but this server has model {ours}")]
    OtherModel {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: String,
        /// The version of this server.
        ours: String,
    },
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    collection: String,
    created: f64,
    model: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

/// A line of a face.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaceLine {
    face: String,
    image: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external: Option<String>,
    #[serde(rename = "box")]
    bounds: FaceBox,
    confidence: f32,
    signature: String,
}

/// A folder of collections, locked against other servers.
pub struct CollectionFolder {
    path: PathBuf,
    model: String,
    /// Holds the lock until dropped.
    _lock: File,
}

impl CollectionFolder {
    /// Opens the folder and reads all collections.
    pub fn open(path: &Path, model: &str) -> Result<(Self, Vec<Collection>), OpenError> {
        let io_error = |source| OpenError::Io { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error)?;
        let lock = private_file().truncate(false).open(path.join("lock")).map_err(io_error)?;
        lock.try_lock().map_err(|_| OpenError::InUse(path.to_owned()))?;
        let folder = Self { path: path.to_owned(), model: model.to_owned(), _lock: lock };
        let mut collections = Vec::new();
        for entry in fs::read_dir(path).map_err(io_error)? {
            let file = entry.map_err(io_error)?.path();
            match file.extension().and_then(|extension| extension.to_str()) {
                Some(EXTENSION) => collections.push(folder.read(&file)?),
                Some(INCOMPLETE) => fs::remove_file(&file).map_err(|source| OpenError::Io { path: file, source })?,
                _ => {}
            }
        }
        Ok((folder, collections))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file of a collection. Contains a hash, because IDs can exceed the length of file names and differ only in case.
    fn file(&self, id: &str) -> PathBuf {
        let digest = Sha256::digest(id);
        let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let prefix: String = id.chars().take(100).collect();
        self.path.join(format!("{prefix}-{hash}.{EXTENSION}"))
    }

    /// Replaces the file of a collection atomically.
    pub fn write(&self, collection: &Collection) -> io::Result<()> {
        let file = self.file(&collection.id);
        let incomplete = file.with_extension(INCOMPLETE);
        let header = Header {
            collection: collection.id.clone(),
            created: collection.created,
            model: self.model.clone(),
            tags: collection.tags.clone(),
        };
        let mut lines = serde_json::to_vec(&header)?;
        lines.push(b'\n');
        for (id, face) in &collection.faces {
            write_face(*id, face, &mut lines)?;
        }
        let mut output = private_file().truncate(true).open(&incomplete)?;
        output.write_all(&lines)?;
        output.sync_all()?;
        fs::rename(incomplete, file)?;
        File::open(&self.path)?.sync_all()
    }

    /// Appends faces to the file of a collection, all of them or none.
    pub fn append(&self, id: &str, faces: &[(Uuid, IndexedFace)]) -> io::Result<()> {
        let mut lines = Vec::new();
        for (id, face) in faces {
            write_face(*id, face, &mut lines)?;
        }
        let mut file = OpenOptions::new().append(true).open(self.file(id))?;
        let length = file.metadata()?.len();
        let result = file.write_all(&lines).and_then(|()| file.sync_data());
        // A partial line would corrupt the next one.
        result.or_else(|error| file.set_len(length).and(Err(error)))
    }

    /// Removes a collection.
    pub fn remove(&self, id: &str) -> io::Result<()> {
        fs::remove_file(self.file(id))?;
        File::open(&self.path)?.sync_all()
    }

    fn read(&self, path: &Path) -> Result<Collection, OpenError> {
        let io_error = |source| OpenError::Io { path: path.to_owned(), source };
        let damaged = |line: usize, reason: String| OpenError::Damaged { path: path.to_owned(), line, reason };
        let mut bytes = fs::read(path).map_err(io_error)?;
        // A partial last line is left by a crash during an append, whose request was never acknowledged.
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if complete > 0 && complete < bytes.len() {
            bytes.truncate(complete);
            let file = OpenOptions::new().write(true).open(path).map_err(io_error)?;
            file.set_len(complete as u64).map_err(io_error)?;
        }
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let header = lines.next().unwrap_or_default();
        let header: Header = serde_json::from_slice(header).map_err(|error| damaged(1, error.to_string()))?;
        if header.model != self.model {
            let (found, ours) = (header.model, self.model.clone());
            return Err(OpenError::OtherModel { path: path.to_owned(), found, ours });
        }
        if self.file(&header.collection) != path {
            return Err(damaged(1, format!("collection {} belongs to another file", header.collection)));
        }
        let face = |(number, line): (usize, &[u8])| parse_face(line).map_err(|reason| damaged(number, reason));
        let faces = (2..).zip(lines).map(face).collect::<Result<_, _>>()?;
        Ok(Collection { id: header.collection, created: header.created, tags: header.tags, faces })
    }
}

/// Returns options that create a file readable only by its owner, because signatures are biometric data.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

fn write_face(id: Uuid, face: &IndexedFace, lines: &mut Vec<u8>) -> io::Result<()> {
    let line = FaceLine {
        face: id.to_string(),
        image: face.image.to_string(),
        external: face.external.clone(),
        bounds: face.bounds,
        confidence: face.confidence,
        signature: BASE64_STANDARD.encode(face.signature.to_bytes()),
    };
    serde_json::to_writer(&mut *lines, &line)?;
    lines.push(b'\n');
    Ok(())
}

fn parse_face(line: &[u8]) -> Result<(Uuid, IndexedFace), String> {
    let line: FaceLine = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let signature = BASE64_STANDARD.decode(&line.signature).map_err(|error| error.to_string())?;
    let uuid = |text: &str| Uuid::try_parse(text).map_err(|error| error.to_string());
    let face = IndexedFace {
        image: uuid(&line.image)?,
        external: line.external,
        bounds: line.bounds,
        confidence: line.confidence,
        signature: Signature::from_bytes(&signature).ok_or("invalid signature")?,
        indexed_at: None,
    };
    Ok((uuid(&line.face)?, face))
}
