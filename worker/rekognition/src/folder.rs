//! Collections as files: a line that says what it is, then a line a face.

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

use crate::collection::{Collection, KeptFace};

const ENDING: &str = "jsonl";
/// Being written; whoever finds one may remove it.
const UNFINISHED: &str = "new";

/// Why a folder of collections cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refuses.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another server has it.
    #[error("{0} is in use by another server")]
    InUse(PathBuf),
    /// A file is not what a server wrote.
    #[error("{path} is damaged in line {line}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Signatures of one model mean nothing to another.
    #[error("{path} was made with model {found}, and this server has model {ours}")]
    OtherModel {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: String,
        /// The version of this server.
        ours: String,
    },
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    collection: String,
    created: f64,
    model: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

/// Each other line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    face: String,
    image: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external: Option<String>,
    #[serde(rename = "box")]
    bounds: FaceBox,
    confidence: f32,
    signature: String,
}

/// A folder that no other server uses.
pub struct Folder {
    path: PathBuf,
    model: String,
    /// Held for as long as this is.
    _lock: File,
}

impl Folder {
    /// Opens the folder, and reads all that is in it.
    pub fn open(path: &Path, model: &str) -> Result<(Self, Vec<Collection>), OpenError> {
        let trouble = |source| OpenError::Io { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(trouble)?;
        let lock = private().truncate(false).open(path.join("lock")).map_err(trouble)?;
        lock.try_lock().map_err(|_| OpenError::InUse(path.to_owned()))?;
        let folder = Self { path: path.to_owned(), model: model.to_owned(), _lock: lock };
        let mut collections = Vec::new();
        for entry in fs::read_dir(path).map_err(trouble)? {
            let file = entry.map_err(trouble)?.path();
            match file.extension().and_then(|ending| ending.to_str()) {
                Some(ENDING) => collections.push(folder.read(&file)?),
                Some(UNFINISHED) => fs::remove_file(&file).map_err(|source| OpenError::Io { path: file, source })?,
                _ => {}
            }
        }
        Ok((folder, collections))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a collection. Names may be longer than a file's, and differ in capitals alone.
    fn file(&self, id: &str) -> PathBuf {
        let digest = Sha256::digest(id);
        let tail: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let head: String = id.chars().take(100).collect();
        self.path.join(format!("{head}-{tail}.{ENDING}"))
    }

    /// Writes a collection anew: whole or not at all.
    pub fn write(&self, collection: &Collection) -> io::Result<()> {
        let file = self.file(&collection.id);
        let unfinished = file.with_extension(UNFINISHED);
        let header = Header {
            collection: collection.id.clone(),
            created: collection.created,
            model: self.model.clone(),
            tags: collection.tags.clone(),
        };
        let mut lines = serde_json::to_vec(&header)?;
        lines.push(b'\n');
        for (id, face) in &collection.faces {
            line(*id, face, &mut lines)?;
        }
        let mut new = private().truncate(true).open(&unfinished)?;
        new.write_all(&lines)?;
        new.sync_all()?;
        fs::rename(unfinished, file)?;
        File::open(&self.path)?.sync_all()
    }

    /// Adds faces to a collection: all of them or none.
    pub fn append(&self, id: &str, faces: &[(Uuid, KeptFace)]) -> io::Result<()> {
        let mut lines = Vec::new();
        for (id, face) in faces {
            line(*id, face, &mut lines)?;
        }
        let mut file = OpenOptions::new().append(true).open(self.file(id))?;
        let before = file.metadata()?.len();
        let written = file.write_all(&lines).and_then(|()| file.sync_data());
        // Half a line would spoil the next one.
        written.or_else(|error| file.set_len(before).and(Err(error)))
    }

    /// Removes a collection.
    pub fn remove(&self, id: &str) -> io::Result<()> {
        fs::remove_file(self.file(id))?;
        File::open(&self.path)?.sync_all()
    }

    fn read(&self, path: &Path) -> Result<Collection, OpenError> {
        let trouble = |source| OpenError::Io { path: path.to_owned(), source };
        let damaged = |line: usize, reason: String| OpenError::Damaged { path: path.to_owned(), line, reason };
        let mut bytes = fs::read(path).map_err(trouble)?;
        // A server died while it added faces; nobody was told that they are there.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole > 0 && whole < bytes.len() {
            bytes.truncate(whole);
            let file = OpenOptions::new().write(true).open(path).map_err(trouble)?;
            file.set_len(whole as u64).map_err(trouble)?;
        }
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let header = lines.next().unwrap_or_default();
        let header: Header = serde_json::from_slice(header).map_err(|error| damaged(1, error.to_string()))?;
        if header.model != self.model {
            let (found, ours) = (header.model, self.model.clone());
            return Err(OpenError::OtherModel { path: path.to_owned(), found, ours });
        }
        if self.file(&header.collection) != path {
            return Err(damaged(1, format!("collection {} has another file", header.collection)));
        }
        let face = |(number, line): (usize, &[u8])| face(line).map_err(|reason| damaged(number, reason));
        let faces = (2..).zip(lines).map(face).collect::<Result<_, _>>()?;
        Ok(Collection { id: header.collection, created: header.created, tags: header.tags, faces })
    }
}

/// A file of biometrics is its owner's alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

fn line(id: Uuid, face: &KeptFace, lines: &mut Vec<u8>) -> io::Result<()> {
    let line = Line {
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

fn face(line: &[u8]) -> Result<(Uuid, KeptFace), String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let signature = BASE64_STANDARD.decode(&line.signature).map_err(|error| error.to_string())?;
    let uuid = |text: &str| Uuid::try_parse(text).map_err(|error| error.to_string());
    let face = KeptFace {
        image: uuid(&line.image)?,
        external: line.external,
        bounds: line.bounds,
        confidence: line.confidence,
        signature: Signature::from_bytes(&signature).ok_or("a signature that is none")?,
        since: None,
    };
    Ok((uuid(&line.face)?, face))
}
