//! Comparable snapshots of a data folder without times: two runs with the same result give equal snapshots.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sparks_domain::{Event, Position, RecordedEvent};
use sparks_embedded::{Embedded, FileObjects};
use sparks_engine::{DeadLetters, Maintenance, Queue, Store};

use crate::{
    album::Photo,
    worker::{image_of, rebuilder},
};

/// The contents of a data folder, without times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The rows, sorted by key.
    pub rows: Vec<String>,
    /// The events, in order.
    pub log: Vec<String>,
    /// The objects by key: their content version, or for crops, which may be cut from another variant, their size.
    pub objects: BTreeMap<String, String>,
    /// The stored faces, each with its person and whether it is a template.
    pub faces: Vec<String>,
    /// The reasons of the dead letters.
    pub dead: Vec<String>,
    /// The number of messages that are not settled.
    pub unsettled: u64,
    /// Differences between the table and the event log.
    pub drift: Vec<String>,
}

/// Attributes that hold a time or depend on one.
const TIMES: [&str; 6] = ["createdAt", "lastModified", "processedAt", "sequencer", "updatedAt", "uploaded_datetime"];

impl Snapshot {
    /// Takes a snapshot of a data folder.
    pub async fn take(folder: &Path, backend: &Embedded) -> Self {
        let rows = backend.store.scan(None, usize::MAX).await.expect("scan succeeds");
        let log = read_log(backend).await;
        let drift = rebuilder(backend).run(false, |_| ()).await.expect("comparison succeeds");
        let depth = backend.queue.depth().await.expect("queue depth");
        let letters = backend.queue.list(None, usize::MAX).await.expect("dead letters are listed");
        Self {
            rows: rows.into_iter().map(|row| without_times(row.into_json()).to_string()).collect(),
            log: log.iter().map(line).collect(),
            objects: objects(&folder.join("objects")),
            faces: faces(folder),
            dead: letters.into_iter().map(|letter| letter.reason).collect(),
            unsettled: depth.waiting + depth.leased + depth.delayed,
            drift: drift.differences.iter().map(ToString::to_string).collect(),
        }
    }

    /// Describes how this snapshot differs from the expected one, if it does.
    pub fn difference(&self, expected: &Self) -> Option<String> {
        let parts = [
            difference("rows", &self.rows, &expected.rows),
            difference("log", &self.log, &expected.log),
            difference("objects", &pairs(&self.objects), &pairs(&expected.objects)),
            difference("faces", &self.faces, &expected.faces),
            difference("dead letters", &self.dead, &expected.dead),
            difference("drift", &self.drift, &expected.drift),
            (self.unsettled != expected.unsettled)
                .then(|| format!("unsettled messages: {} instead of {}", self.unsettled, expected.unsettled)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn line(recorded: &RecordedEvent) -> String {
    let data = serde_json::from_str(&recorded.event.to_data()).expect("event is JSON");
    format!("{} {} {} {}", recorded.seq, recorded.id, recorded.actor, without_times(data))
}

/// Reads the whole event log.
pub async fn read_log(backend: &Embedded) -> Vec<RecordedEvent> {
    backend.store.read_log(&Position::default(), usize::MAX).await.expect("log is readable")
}

/// Counts the events of this type in the log.
pub fn count(log: &[RecordedEvent], event_type: &str) -> usize {
    log.iter().filter(|recorded| recorded.event.event_type() == event_type).count()
}

/// Groups photos by person, independent of person numbers.
pub fn photo_groups(log: &[RecordedEvent]) -> BTreeSet<Vec<String>> {
    let mut persons: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for recorded in log {
        if let Event::PhotoProcessed(photo) = &recorded.event {
            for person in photo.persons() {
                persons.entry(person).or_default().push(photo.image_id.to_string());
            }
        }
    }
    persons.into_values().map(sorted).collect()
}

/// Groups photos by identity: the ground truth for [`photo_groups`].
pub fn expected_groups(photos: &[Photo]) -> BTreeSet<Vec<String>> {
    let identities: BTreeSet<usize> = photos.iter().flat_map(|photo| photo.identities.clone()).collect();
    let photos_of = |identity: usize| {
        let with = photos.iter().filter(|photo| photo.identities.contains(&identity));
        sorted(with.map(|photo| image_of(photo).to_string()).collect())
    };
    identities.into_iter().map(photos_of).collect()
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort_unstable();
    texts
}

fn difference(what: &str, found: &[String], expected: &[String]) -> Option<String> {
    let missing: Vec<_> = expected.iter().filter(|line| !found.contains(line)).collect();
    let surplus: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
    (found != expected).then(|| format!("{what}: missing {missing:#?}, unexpected {surplus:#?}"))
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<String> {
    map.iter().map(|(key, value)| format!("{key}: {value}")).collect()
}

/// Replaces every time by the same placeholder; a missing time stays missing.
fn without_times(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                let inner = value.take();
                *value = if TIMES.contains(&name.as_str()) { "TIME".into() } else { without_times(inner) };
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| *value = without_times(value.take())),
        _ => {}
    }
    value
}

fn faces(folder: &Path) -> Vec<String> {
    let file = rusqlite::Connection::open(folder.join("sparks.db")).expect("database opens");
    let sql = "SELECT image_id || '#' || n || ' ' || coalesce(person, 'unidentified') || ' ' || template FROM faces ORDER BY 1";
    let mut select = file.prepare(sql).expect("valid statement");
    let faces = select.query_map([], |row| row.get(0)).expect("faces are readable");
    faces.collect::<Result<_, _>>().expect("faces are readable")
}

fn objects(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside).expect("folder is readable") {
            let path = entry.expect("folder entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let key = path.strip_prefix(folder).expect("path inside the folder").to_string_lossy().into_owned();
            let bytes = fs::read(&path).expect("object is readable");
            let description = if key.starts_with("persons/") { size(&bytes) } else { FileObjects::version(&bytes) };
            found.insert(key, description);
        }
    }
    found
}

fn size(jpeg: &[u8]) -> String {
    match image::load_from_memory_with_format(jpeg, image::ImageFormat::Jpeg) {
        Ok(crop) => format!("{} x {} pixels", crop.width(), crop.height()),
        Err(error) => format!("not a JPEG: {error}"),
    }
}
