//! What is left in a data folder when all is done, times aside: two runs that ended the same give equal snapshots.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sparks_domain::{Event, Position, Recorded};
use sparks_embedded::{Embedded, FileObjects};
use sparks_engine::{DeadLetters, Maintenance, Queue, Store};

use crate::{
    album::Photo,
    worker::{image_of, rebuilder},
};

/// A data folder, times aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The rows, sorted by key.
    pub rows: Vec<String>,
    /// The events, in order.
    pub log: Vec<String>,
    /// The objects: what they hold, or for crops, which may be cut from another copy of the picture, how large they are.
    pub objects: BTreeMap<String, String>,
    /// The faces that are kept, whose they are, and whether their persons are known by them.
    pub faces: Vec<String>,
    /// What nobody could do.
    pub dead: Vec<String>,
    /// Messages that are not settled.
    pub unsettled: u64,
    /// Where the table is not what the log says.
    pub drift: Vec<String>,
}

/// Attributes that say when something happened.
const TIMES: [&str; 6] = ["createdAt", "lastModified", "processedAt", "sequencer", "updatedAt", "uploaded_datetime"];

impl Snapshot {
    /// Looks at everything in the folder.
    pub async fn take(folder: &Path, backend: &Embedded) -> Self {
        let rows = backend.store.scan(None, usize::MAX).await.expect("the rows");
        let log = read_log(backend).await;
        let drift = rebuilder(backend).run(false, |_| ()).await.expect("a comparison");
        let depth = backend.queue.depth().await.expect("a depth");
        let letters = backend.queue.list(None, usize::MAX).await.expect("the dead letters");
        Self {
            rows: rows.into_iter().map(|row| timeless(row.into_json()).to_string()).collect(),
            log: log.iter().map(line).collect(),
            objects: objects(&folder.join("objects")),
            faces: faces(folder),
            dead: letters.into_iter().map(|letter| letter.reason).collect(),
            unsettled: depth.waiting + depth.leased + depth.delayed,
            drift: drift.differences.iter().map(ToString::to_string).collect(),
        }
    }

    /// How this folder differs from how it should be, if it does.
    pub fn difference(&self, expected: &Self) -> Option<String> {
        let parts = [
            difference("rows", &self.rows, &expected.rows),
            difference("log", &self.log, &expected.log),
            difference("objects", &pairs(&self.objects), &pairs(&expected.objects)),
            difference("faces", &self.faces, &expected.faces),
            difference("dead letters", &self.dead, &expected.dead),
            difference("drift", &self.drift, &expected.drift),
            (self.unsettled != expected.unsettled).then(|| format!("{} messages are not settled", self.unsettled)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn line(recorded: &Recorded) -> String {
    let data = serde_json::from_str(&recorded.event.to_data()).expect("an event in JSON");
    format!("{} {} {} {}", recorded.seq, recorded.id, recorded.actor, timeless(data))
}

/// The whole log.
pub async fn read_log(backend: &Embedded) -> Vec<Recorded> {
    backend.store.read_log(&Position::default(), usize::MAX).await.expect("the log")
}

/// How many events of this type are in the log.
pub fn count(log: &[Recorded], event_type: &str) -> usize {
    log.iter().filter(|recorded| recorded.event.event_type() == event_type).count()
}

/// Which photos each person is in, whatever the persons are called.
pub fn groups(log: &[Recorded]) -> BTreeSet<Vec<String>> {
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

/// Which photos each person should be in.
pub fn truth(photos: &[Photo]) -> BTreeSet<Vec<String>> {
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
    (found != expected).then(|| format!("{what}: missing {missing:#?}, not expected {surplus:#?}"))
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<String> {
    map.iter().map(|(key, value)| format!("{key}: {value}")).collect()
}

/// Every time is the same time; a row without one stays without.
fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                let inner = value.take();
                *value = if TIMES.contains(&name.as_str()) { "some time".into() } else { timeless(inner) };
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| *value = timeless(value.take())),
        _ => {}
    }
    value
}

fn faces(folder: &Path) -> Vec<String> {
    let file = rusqlite::Connection::open(folder.join("sparks.db")).expect("the file");
    let sql =
        "SELECT image_id || '#' || n || ' ' || coalesce(person, 'nobody') || ' ' || template FROM faces ORDER BY 1";
    let mut select = file.prepare(sql).expect("a statement");
    let faces = select.query_map([], |row| row.get(0)).expect("the faces");
    faces.collect::<Result<_, _>>().expect("the faces")
}

fn objects(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let key = path.strip_prefix(folder).expect("a path inside").to_string_lossy().into_owned();
            let bytes = fs::read(&path).expect("an object");
            let what = if key.starts_with("persons/") { size(&bytes) } else { FileObjects::version(&bytes) };
            found.insert(key, what);
        }
    }
    found
}

fn size(jpeg: &[u8]) -> String {
    match image::load_from_memory_with_format(jpeg, image::ImageFormat::Jpeg) {
        Ok(crop) => format!("{} x {} pixels", crop.width(), crop.height()),
        Err(error) => format!("no JPEG: {error}"),
    }
}
