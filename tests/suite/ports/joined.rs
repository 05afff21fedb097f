//! Two persons that are one, and two that are not: everything follows, and everything comes back.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::Connection;
use serde_json::Value;
use sparks_domain::{EventId, Item, Key, PersonId, Projection};
use sparks_embedded::Embedded;
use sparks_engine::{
    Fingerprint, Maintenance, Mark, Merged, Query, Rebuilder, Register, RegisterError, Store, SystemClock,
};
use sparks_tests::{
    album::{Photo, album, photo, photo_with_noise},
    faults::Fuse,
    samples::person,
    snapshot::{count, read_log},
    worker::{Worker, drain, image_of, open, persons_in, rebuilder, register, upload},
};

use super::embedded::Folders;

/// A data folder in which an album has been worked off, and who keeps track of who is who in it.
pub struct Known {
    pub folder: PathBuf,
    pub backend: Embedded,
    pub photos: Vec<Photo>,
    pub register: Register,
}

/// Every byte of the table and of the bucket.
#[derive(PartialEq)]
pub struct Bytes {
    fingerprint: Fingerprint,
    rows: Vec<Item>,
    objects: BTreeMap<PathBuf, Vec<u8>>,
}

impl Known {
    pub async fn of(folders: &Folders, photos: Vec<Photo>) -> Self {
        let folder = folders.fresh();
        let backend = open(&folder);
        upload(&backend, &photos).await;
        drain(&backend).await;
        let register = register(&backend, &Fuse::counting()).await.unwrap();
        Self { folder, backend, photos, register }
    }

    /// Everything in the folder, which is what the log says.
    pub async fn bytes(&self) -> Bytes {
        self.assert_no_drift().await;
        Bytes {
            fingerprint: self.backend.store.fingerprint().await.unwrap(),
            rows: self.backend.store.scan(None, usize::MAX).await.unwrap(),
            objects: objects(&self.folder.join("objects")),
        }
    }

    pub async fn assert_no_drift(&self) {
        let drift = rebuilder(&self.backend).run(false, |_| ()).await.unwrap();
        assert_eq!((drift.total, drift.renamed.len()), (0, 0), "{:#?} {:?}", drift.differences, drift.renamed);
    }

    pub async fn join(&self, a: u32, b: u32) -> Merged {
        let merged = self.register.join(person(a), person(b), false).await.unwrap();
        self.register.follow(|_| ()).await.unwrap();
        merged
    }

    pub async fn part(&self, merge: EventId) -> PersonId {
        let person = self.register.undo(merge).await.unwrap();
        self.register.follow(|_| ()).await.unwrap();
        person
    }

    /// The photos tagged with a person.
    pub async fn tagged(&self, number: u32) -> usize {
        let filter = sparks_engine::Filter::EntityType(format!("TAGGING#person{number}"));
        let query = Query { filter, after: None, limit: 10_000, backwards: false };
        self.backend.store.query(&query).await.unwrap().items.len()
    }

    pub async fn row(&self, key: &Key) -> Option<Value> {
        self.backend.store.get(key).await.unwrap().map(|item| Value::Object(item.attributes))
    }

    /// Writes into the table as the platform would.
    pub fn by_hand(&self, sql: &str) -> usize {
        Connection::open(self.folder.join("sparks.db")).unwrap().execute(sql, []).unwrap()
    }

    pub async fn name(&self, number: u32) -> Value {
        self.row(&Key::person(person(number))).await.unwrap()["displayName"].clone()
    }
}

fn objects(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(objects(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

fn assert_same(now: &Bytes, before: &Bytes) {
    assert_eq!(now.fingerprint, before.fingerprint);
    assert!(now.rows == before.rows, "the rows differ");
    let keys = |bytes: &Bytes| bytes.objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(now), keys(before));
    assert!(now.objects == before.objects, "an object differs");
}

const USERS: &str = r#"
    INSERT INTO items (PK, SK, item) VALUES
    ('ann@example.org', 'ann@example.org', '{"entityType":"USER","karma":7,"personId":"person2"}'),
    ('bob@example.org', 'bob@example.org', '{"entityType":"USER","personId":"person1"}'),
    ('eve@example.org', 'eve@example.org', '{"entityType":"USER","personId":"person2"}')"#;

const THEIRS: &str = r#"
    UPDATE items SET item = json_set(item, '$.votes', json('[1,2.50]'), '$.note', 'the "tall" one')
    WHERE PK = 'PERSON#person2'"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn merged_and_unmerged_gives_back_every_byte() {
    let folders = Folders::new();
    let casts: Vec<&[usize]> = [&[0][..], &[1]].repeat(50);
    let photos = album(&[&casts[..], &[&[0, 2], &[2, 1], &[]]].concat());
    let known = Known::of(&folders, photos).await;
    assert_eq!((known.tagged(1).await, known.tagged(2).await), (51, 51));
    assert_eq!((known.by_hand(USERS), known.by_hand(THEIRS)), (3, 1));
    rebuilder(&known.backend).run(true, |_| ()).await.unwrap();
    let user = async |name: &str| known.row(&Key::user(&name.parse().unwrap())).await.unwrap()["personId"].clone();
    // Rows that others wrote have their attributes in another order until one of us writes them.
    let spelled = known.join(1, 2).await;
    known.part(spelled.event).await;

    let before = known.bytes().await;
    let merged = known.join(1, 2).await;
    assert_eq!((merged.into, merged.from), (person(1), person(2)));
    known.assert_no_drift().await;
    assert_eq!((known.tagged(1).await, known.tagged(2).await, known.tagged(3).await), (102, 0, 2));
    assert_eq!(known.row(&Key::person(person(2))).await, None);
    assert_eq!([user("ann@example.org").await, user("bob@example.org").await], ["person1", "person1"]);
    let crop = |number| known.folder.join(format!("objects/persons/person{number}.jpg")).exists();
    assert_eq!([crop(1), crop(2)], [true, false]);
    for photo in &known.photos[..100] {
        assert_eq!(persons_in(&known.backend, photo).await, [person(1)]);
    }

    assert_eq!(known.part(merged.event).await, person(2));
    assert_same(&known.bytes().await, &before);
    assert_eq!([user("ann@example.org").await, user("bob@example.org").await], ["person2", "person1"]);
    assert_eq!([crop(1), crop(2)], [true, true]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_chain_is_taken_back_from_either_end_and_in_the_middle() {
    let folders = Folders::new();
    let known = Known::of(&folders, album(&[&[0], &[1], &[2], &[3], &[0], &[1], &[2], &[3]])).await;
    known.by_hand(USERS);
    let spelled = known.join(1, 2).await;
    known.part(spelled.event).await;
    let before = known.bytes().await;
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
        let merges = [known.join(3, 4).await, known.join(2, 3).await, known.join(1, 2).await];
        assert_eq!((known.tagged(1).await, known.tagged(4).await), (8, 0));
        for merge in order {
            known.part(merges[merge].event).await;
            known.assert_no_drift().await;
        }
        assert_same(&known.bytes().await, &before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_middle_of_a_chain_taken_back_leaves_the_rest_joined() {
    let folders = Folders::new();
    let known = Known::of(&folders, album(&[&[0], &[1], &[2], &[3]])).await;
    known.join(3, 4).await;
    let middle = known.join(2, 3).await;
    known.join(1, 2).await;
    assert_eq!(known.part(middle.event).await, person(3));
    known.assert_no_drift().await;
    for (photo, number) in known.photos.iter().zip([1, 1, 3, 3]) {
        assert_eq!(persons_in(&known.backend, photo).await, [person(number)]);
    }
    assert_eq!((known.tagged(1).await, known.tagged(3).await), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_was_joined_is_recognised_as_who_they_are_now() {
    let folders = Folders::new();
    let known = Known::of(&folders, album(&[&[0], &[1]])).await;
    let merged = known.join(1, 2).await;
    let during = [photo(50, &[1]), photo(51, &[0, 5])];
    upload(&known.backend, &during).await;
    drain(&known.backend).await;
    assert_eq!(persons_in(&known.backend, &during[0]).await, [person(1)]);
    assert_eq!(persons_in(&known.backend, &during[1]).await, [person(1), person(3)], "numbers are never given again");
    known.part(merged.event).await;
    known.assert_no_drift().await;
    let after = [photo(60, &[1]), photo(61, &[0])];
    upload(&known.backend, &after).await;
    drain(&known.backend).await;
    assert_eq!(persons_in(&known.backend, &after[0]).await, [person(2)]);
    assert_eq!(persons_in(&known.backend, &after[1]).await, [person(1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_seen_in_one_photo_are_joined_by_force_only() {
    let folders = Folders::new();
    let known = Known::of(&folders, album(&[&[0, 1], &[2], &[2, 1]])).await;
    let before = known.bytes().await;
    for (a, b) in [(1, 2), (2, 1), (2, 3)] {
        let refused = known.register.join(person(a), person(b), false).await;
        assert!(matches!(refused, Err(RegisterError::SeenTogether(..))), "{a} and {b}: {refused:?}");
    }
    assert_eq!(count(&read_log(&known.backend).await, "PersonsMerged"), 0);

    let forced = known.register.join(person(2), person(1), true).await.unwrap();
    known.register.follow(|_| ()).await.unwrap();
    assert_eq!(persons_in(&known.backend, &known.photos[0]).await, [person(1)], "both are one");
    // Those who were joined are seen beside whoever one of them was seen beside.
    let refused = known.register.join(person(1), person(3), false).await;
    assert!(matches!(refused, Err(RegisterError::SeenTogether(..))), "{refused:?}");
    known.part(forced.event).await;
    assert_same(&known.bytes().await, &before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_cannot_be_meant_is_refused_and_recorded_nowhere() {
    let folders = Folders::new();
    let known = Known::of(&folders, album(&[&[0], &[1]])).await;
    let events = read_log(&known.backend).await.len();
    let refused = known.register.join(person(1), person(9), false).await;
    assert!(matches!(refused, Err(RegisterError::Unknown(who)) if who == person(9)), "{refused:?}");
    let refused = known.register.join(person(2), person(2), true).await;
    assert!(matches!(refused, Err(RegisterError::Already(..))), "{refused:?}");
    let not_a_merge = read_log(&known.backend).await[0].id;
    let refused = known.register.undo(not_a_merge).await;
    assert!(matches!(refused, Err(RegisterError::NotAMerge(_))), "{refused:?}");
    assert_eq!(read_log(&known.backend).await.len(), events);

    let merged = known.join(1, 2).await;
    let refused = known.register.join(person(2), person(1), false).await;
    assert!(matches!(refused, Err(RegisterError::Already(..))), "{refused:?}");
    known.part(merged.event).await;
    let events = read_log(&known.backend).await.len();
    assert_eq!(known.part(merged.event).await, person(2), "a second time is no error");
    assert_eq!(read_log(&known.backend).await.len(), events, "and no event");
}

fn rename(number: u32, name: &str) -> String {
    format!("UPDATE items SET item = json_set(item, '$.displayName', '{name}') WHERE PK = 'PERSON#person{number}'")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_name_that_somebody_else_gave_survives_merging_and_parting() {
    let folders = Folders::new();
    let known = Known::of(&folders, album(&[&[0], &[1], &[2]])).await;
    known.by_hand(&rename(2, "Bride"));
    let merged = known.join(1, 2).await;
    assert_eq!(known.name(1).await, "Bride", "whoever has no name gets that of the other");
    known.assert_no_drift().await;
    known.part(merged.event).await;
    assert_eq!([known.name(1).await, known.name(2).await], ["person1", "Bride"]);
    known.assert_no_drift().await;

    let again = known.join(1, 2).await;
    known.by_hand(&rename(1, "Groom"));
    known.part(again.event).await;
    assert_eq!([known.name(1).await, known.name(2).await], ["Groom", "Bride"]);
    let last = known.join(1, 2).await;
    assert_eq!(known.name(1).await, "Groom", "a name of one's own stays");
    known.part(last.event).await;
    assert_eq!([known.name(1).await, known.name(2).await, known.name(3).await], ["Groom", "Bride", "person3"]);
    known.assert_no_drift().await;
}

/// Three photos of one person that are each too little like the others, among strangers.
fn pieces() -> Vec<Photo> {
    let pieces = (0..4).map(|number| photo_with_noise(number, 0, 1.1));
    let strangers = (10..30).map(|number| photo(number, &[number as usize]));
    pieces.chain(strangers).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pieces_of_a_person_are_joined_and_never_again_once_parted() {
    let folders = Folders::new();
    let known = Known::of(&folders, pieces()).await;
    let founded = known.backend.store.identity(sparks_domain::Seq(0)).await.unwrap().counter;
    assert!(founded > 21, "{founded} persons: nobody is in pieces");
    let joined = known.register.consolidate().await.unwrap();
    known.register.follow(|_| ()).await.unwrap();
    assert!(!joined.is_empty() && joined.iter().all(|merge| merge.from <= person(4)), "{joined:?}");
    known.assert_no_drift().await;
    assert_eq!(known.register.consolidate().await.unwrap(), [], "nothing is new");

    let parted = joined.last().unwrap();
    known.part(parted.event).await;
    let apart = |merged: &[Merged]| !merged.iter().any(|m| (m.into, m.from) == (parted.into, parted.from));
    // Everything is considered once more, and once more after another photo of them.
    known.backend.store.set_mark(Mark::Considered, &sparks_domain::Position::default()).await.unwrap();
    let again = known.register.consolidate().await.unwrap();
    assert!(apart(&again), "{again:?}");
    let another = [photo_with_noise(5, 0, 1.1)];
    upload(&known.backend, &another).await;
    drain(&known.backend).await;
    known.register.consolidate().await.unwrap();
    known.register.follow(|_| ()).await.unwrap();
    let merges = known.register.consider(None).await.unwrap();
    assert!(!merges.joins.iter().any(|join| (join.into, join.from) == (parted.into, parted.from)), "{merges:?}");
    let pair = [0, 1, 2, 3].map(|n| &known.photos[n]);
    let mut shown = Vec::new();
    for photo in pair {
        shown.extend(persons_in(&known.backend, photo).await);
    }
    assert!(shown.contains(&parted.from) && shown.contains(&parted.into), "{parted:?} are one again: {shown:?}");
    known.assert_no_drift().await;

    // A human may say so again.
    let (into, from) = (parted.into.number(), parted.from.number());
    assert_eq!(known.join(into, from).await.from, parted.from);
}

/// Somebody decides that a photo shows person2; before they commit, person2 is joined into person1.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_decided_before_a_merge_and_committed_after_it_shows_the_survivor() {
    let folders = Folders::new();
    let known = Known::of(&folders, album(&[&[0], &[1]])).await;
    let late = [photo(50, &[1])];
    upload(&known.backend, &late).await;
    let (folder, backend) = (known.folder.clone(), open(&known.folder));
    let fuse = Fuse::meanwhile("store.commit", async move {
        let other = open(&folder);
        let register = register(&other, &Fuse::counting()).await.unwrap();
        register.join(person(1), person(2), false).await.unwrap();
        register.follow(|_| ()).await.unwrap();
    });
    Worker::start(&backend, &fuse).await.unwrap().drain(&backend).await.unwrap();
    assert!(fuse.is_errand_done());
    let state = known.backend.store.photo(&image_of(&late[0])).await.unwrap().unwrap();
    assert_eq!(state.persons, [person(2)], "decided before");
    assert_eq!(persons_in(&known.backend, &late[0]).await, [person(1)], "shown after");
    assert_eq!((known.tagged(1).await, known.tagged(2).await), (3, 0));
    known.assert_no_drift().await;
}

/// Somebody goes along the photos of a merge while somebody else joins the survivor into a third and goes along first.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_who_follow_at_once_end_as_the_log_says() {
    let folders = Folders::new();
    let known = Known::of(&folders, album(&[&[0], &[1], &[2], &[2], &[2]])).await;
    known.register.join(person(2), person(3), false).await.unwrap();
    let (folder, backend) = (known.folder.clone(), open(&known.folder));
    let fuse = Fuse::meanwhile("store.commit", async move {
        let other = open(&folder);
        let register = register(&other, &Fuse::counting()).await.unwrap();
        register.join(person(1), person(2), false).await.unwrap();
        register.follow(|_| ()).await.unwrap();
    });
    register(&backend, &fuse).await.unwrap().follow(|_| ()).await.unwrap();
    assert!(fuse.is_errand_done());
    // Whoever comes next goes on.
    known.register.follow(|_| ()).await.unwrap();
    known.assert_no_drift().await;
    assert_eq!(known.tagged(1).await, 5);
}

/// Who is who changes after a rebuild has read it, and before it has written the rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rebuild_beside_a_merge_ends_as_the_log_says() {
    let folders = Folders::new();
    let known = Known::of(&folders, album(&[&[0], &[1], &[1]])).await;
    let (folder, backend) = (known.folder.clone(), open(&known.folder));
    let fuse = Fuse::meanwhile("store.mend", async move {
        let other = open(&folder);
        let register = register(&other, &Fuse::counting()).await.unwrap();
        register.join(person(1), person(2), false).await.unwrap();
        register.follow(|_| ()).await.unwrap();
    });
    let store = fuse.guard(Arc::clone(&backend.store) as Arc<dyn Maintenance>);
    let rebuilder = Rebuilder::new(store, Arc::new(SystemClock), Projection::default(), "tests".into());
    rebuilder.run(true, |_| ()).await.unwrap();
    assert!(fuse.is_errand_done());
    known.assert_no_drift().await;
    assert_eq!((known.tagged(1).await, known.tagged(2).await), (3, 0));
    assert_eq!(known.row(&Key::person(person(2))).await, None);
}
