//! A data folder of an earlier schema opens, and everybody in it is known.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};
use sparks_domain::{Event, FaceId, Lane, PhotoProcessed, Position, Seq, Verdict};
use sparks_embedded::{Embedded, Patience};
use sparks_engine::{DeadLetters, Maintenance, Mark, Queue, Reach, Settlement, Store, Templates};
use sparks_tests::{
    album::{Photo, photo},
    faults::Fuse,
    samples::{image, person, processed, stored_face, time},
    snapshot::read_log,
    worker::{drain, open, persons_in, rebuilder, register, upload},
};

use super::embedded::Folders;

/// Made by the first release of six photos.
const SCHEMA_1: &str = include_str!("../../fixtures/schema_1.sql");

/// Six photos, a merge and two dead letters as schema 2 kept them.
const SCHEMA_2: &str = include_str!("../../fixtures/schema_2.sql");

/// Who are person1, person2 and person3 in it.
const IDENTITIES: [usize; 3] = [0, 1, 2];

fn made_by_schema_1(folders: &Folders) -> PathBuf {
    made_by(SCHEMA_1, 1, folders)
}

fn made_by_schema_2(folders: &Folders) -> PathBuf {
    made_by(SCHEMA_2, 2, folders)
}

fn made_by(fixture: &str, schema: i64, folders: &Folders) -> PathBuf {
    let folder = folders.fresh();
    fs::create_dir_all(folder.join("objects")).unwrap();
    let file = connect(&folder);
    file.execute_batch(fixture).unwrap();
    assert_eq!(version(&file), schema);
    folder
}

fn connect(folder: &Path) -> Connection {
    Connection::open(folder.join("sparks.db")).unwrap()
}

fn version(file: &Connection) -> i64 {
    file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// Every byte of a table.
fn rows(file: &Connection, table: &str) -> Vec<String> {
    let mut select = file.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns = select.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let values = (0..columns).map(|column| row.get_ref(column).map(|value| format!("{value:?}")));
        Ok(values.collect::<Result<Vec<_>, _>>()?.join(" "))
    };
    select.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

async fn templates_after(backend: &Embedded, seq: Seq) -> Templates {
    backend.store.templates(&Position::at(Lane::IDENTITY, seq), Reach::Everything, 1000).await.unwrap()
}

async fn processed_photos(backend: &Embedded) -> Vec<PhotoProcessed> {
    let photo = |recorded: sparks_domain::Recorded| match recorded.event {
        Event::PhotoProcessed(photo) => Some(photo),
        _ => None,
    };
    read_log(backend).await.into_iter().filter_map(photo).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_folder_of_schema_1_opens_and_nothing_of_it_is_changed() {
    let folders = Folders::new();
    let folder = made_by_schema_1(&folders);
    let tables = ["log", "items", "states", "messages", "dead_letters"];
    let before = tables.map(|table| rows(&connect(&folder), table));
    assert!(before[0].len() >= 5 && before[1].len() >= 10, "{before:?}");
    for _ in 0..2 {
        let backend = open(&folder);
        let file = connect(&folder);
        assert_eq!(version(&file), 3);
        assert_eq!(tables.map(|table| rows(&file, table)), before);
        let marks =
            [backend.store.mark(Mark::Followed).await.unwrap(), backend.store.mark(Mark::Considered).await.unwrap()];
        assert_eq!(marks, [Position::default(), Position::default()]);
        let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
        assert_eq!(drift.total, 0, "{:#?}", drift.differences);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_face_of_schema_1_is_whose_the_log_says() {
    let folders = Folders::new();
    let backend = open(&made_by_schema_1(&folders));
    let photos = processed_photos(&backend).await;
    let mut templates = Vec::new();
    for photo in &photos {
        for (n, decided) in (photo.first_face..).zip(&photo.faces) {
            let face = FaceId { image: photo.image_id.clone(), n };
            let kept = backend.store.signatures(std::slice::from_ref(&face)).await.unwrap();
            assert_eq!(kept.len(), 1, "{face:?}");
            assert_eq!((kept[0].person, kept[0].template), (decided.verdict.person(), decided.template), "{face:?}");
            templates.extend(decided.template.then_some(face));
        }
    }
    let found: Vec<_> = templates_after(&backend, Seq(0)).await.faces.into_iter().map(|kept| kept.face).collect();
    assert_eq!(found, templates);
    assert!(templates.len() >= 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn persons_of_schema_1_are_recognised_joined_and_parted() {
    let folders = Folders::new();
    let folder = made_by_schema_1(&folders);
    let backend = open(&folder);
    let known = backend.store.identity(Seq(0)).await.unwrap().counter;
    let photos: Vec<Photo> = (0..3).map(|n| photo(100 + n, &[IDENTITIES[n as usize]])).collect();
    let stranger = photo(110, &[40]);
    upload(&backend, &photos).await;
    upload(&backend, std::slice::from_ref(&stranger)).await;
    drain(&backend).await;
    for (photo, number) in photos.iter().zip(1..) {
        assert_eq!(persons_in(&backend, photo).await, [person(number)], "{:?}", photo.identities);
    }
    assert_eq!(persons_in(&backend, &stranger).await, [person(known + 1)]);

    let fingerprint = backend.store.fingerprint().await.unwrap();
    let register = register(&backend, &Fuse::counting()).await.unwrap();
    let merged = register.join(person(1), person(2), true).await.unwrap();
    register.follow(|_| ()).await.unwrap();
    assert_eq!(persons_in(&backend, &photos[1]).await, [person(1)]);
    register.undo(merged.event).await.unwrap();
    register.follow(|_| ()).await.unwrap();
    assert_eq!(backend.store.fingerprint().await.unwrap(), fingerprint);
    let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
    assert_eq!(drift.total, 0, "{:#?}", drift.differences);
}

/// A photo that came in two versions: the faces of the second have numbers of their own, and one of them is nobody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faces_of_a_later_version_keep_their_numbers() {
    let folders = Folders::new();
    let folder = made_by_schema_1(&folders);
    let last: i64 = connect(&folder).query_row("SELECT max(seq) FROM log", [], |row| row.get(0)).unwrap();
    let version = |name: &str, first_face: u16, persons: &[u32]| {
        let Event::PhotoProcessed(photo) = processed(&image(77), name, persons) else { unreachable!() };
        PhotoProcessed { first_face, ..photo }
    };
    let first = version("v1", 0, &[2, 1]);
    let mut second = version("v2", 2, &[3, 3]);
    second.faces[0].template = true;
    second.faces[1].verdict = Verdict::TooPoor;
    let file = connect(&folder);
    for (seq, event) in (last + 1..).zip([first, second].map(Event::PhotoProcessed)) {
        let values = params![seq, event.id().to_string(), time(seq).to_string(), event.event_type(), event.to_data()];
        file.execute("INSERT INTO log VALUES (?, ?, 'tests', ?, ?, ?, 0)", values).unwrap();
    }
    for n in 0..4 {
        let kept = stored_face(FaceId { image: image(77), n }, n as u8 + 1);
        let values = params![kept.face.image.as_str(), n, kept.model, kept.signature.to_bytes()];
        file.execute("INSERT INTO faces (image_id, n, model, signature) VALUES (?, ?, ?, ?)", values).unwrap();
    }
    drop(file);

    let backend = open(&folder);
    let faces: Vec<_> = (0..4).map(|n| FaceId { image: image(77), n }).collect();
    let kept = backend.store.signatures(&faces).await.unwrap();
    let decided: Vec<_> = kept.iter().map(|face| (face.person.map(|p| p.number()), face.template)).collect();
    assert_eq!(decided, [(Some(2), false), (Some(1), false), (Some(3), true), (None, false)]);
    let unknown = backend.store.unidentified(None, 100).await.unwrap();
    let last = Seq(last.cast_unsigned());
    let unknown: Vec<_> = unknown.into_iter().filter(|decided| decided.kept.face.image == image(77)).collect();
    assert_eq!(unknown.iter().map(|d| (d.kept.face.n, d.seq)).collect::<Vec<_>>(), [(3, Seq(last.0 + 2))]);
    let templates = templates_after(&backend, last).await;
    assert_eq!(templates.faces.iter().map(|kept| kept.face.n).collect::<Vec<_>>(), [2]);
    assert_eq!(templates.read, Position::at(Lane::IDENTITY, Seq(last.0 + 2)));
    let company = backend.store.company(None).await.unwrap();
    assert!(company.contains(&(person(1), person(2))), "{company:?}");
}

#[test]
fn many_who_open_a_folder_of_schema_1_at_once_change_it_once() {
    let folders = Folders::new();
    let folder = made_by_schema_1(&folders);
    std::thread::scope(|scope| {
        let opening: Vec<_> = (0..6).map(|_| scope.spawn(|| drop(open(&folder)))).collect();
        assert!(opening.into_iter().all(|opened| opened.join().is_ok()));
    });
    assert_eq!(version(&connect(&folder)), 3);
}

#[test]
fn a_folder_of_a_later_release_is_left_alone() {
    let folders = Folders::new();
    let folder = made_by_schema_1(&folders);
    connect(&folder).pragma_update(None, "user_version", 4).unwrap();
    let before = rows(&connect(&folder), "faces");
    let patience = Patience { visibility: std::time::Duration::from_secs(60), max_deaths: 25 };
    let refused = Embedded::open(&folder, patience).err().expect("a refusal").to_string();
    assert!(refused.contains("schema 4") && refused.contains("reads schema 3"), "{refused}");
    assert_eq!((version(&connect(&folder)), rows(&connect(&folder), "faces")), (4, before));
}

/// The columns and indexes of every table, in words.
fn shape(file: &Connection) -> Vec<String> {
    let sql = "SELECT t.name || ': ' || c.name || ' ' || c.type || ' ' || coalesce(c.dflt_value, '') || ' ' || c.\"notnull\" || ' ' || c.pk
               FROM sqlite_master t JOIN pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'
               UNION ALL SELECT type || ' ' || name || ' ' || sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL
               ORDER BY 1";
    let mut select = file.prepare(sql).unwrap();
    select.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_schema_becomes_the_one_that_a_new_folder_has() {
    let folders = Folders::new();
    let new = folders.fresh();
    drop(open(&new));
    let expected = shape(&connect(&new));
    assert!(expected.len() > 40, "{expected:#?}");
    for folder in [made_by_schema_1(&folders), made_by_schema_2(&folders)] {
        drop(open(&folder));
        assert_eq!(version(&connect(&folder)), 3);
        assert_eq!(shape(&connect(&folder)), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_folder_of_schema_2_opens_and_nothing_of_it_is_changed() {
    let folders = Folders::new();
    let folder = made_by_schema_2(&folders);
    let tables = ["log", "items", "states", "heads"];
    let before = tables.map(|table| rows(&connect(&folder), table));
    let faces = rows(&connect(&folder), "faces");
    let templates: i64 = connect(&folder).query_row("SELECT sum(template) FROM faces", [], |row| row.get(0)).unwrap();
    for _ in 0..2 {
        let backend = open(&folder);
        assert_eq!(version(&connect(&folder)), 3);
        assert_eq!(tables.map(|table| rows(&connect(&folder), table)), before);
        let kept: Vec<_> = faces.iter().map(|row| format!("{row} Null")).collect();
        assert_eq!(rows(&connect(&folder), "faces"), kept, "nothing was promoted");
        let found = templates_after(&backend, Seq(0)).await.faces;
        assert_eq!(found.len(), usize::try_from(templates).unwrap());
        let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
        assert_eq!(drift.total, 0, "{:#?}", drift.differences);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_and_letters_of_schema_2_are_worked_off() {
    let folders = Folders::new();
    let folder = made_by_schema_2(&folders);
    let backend = open(&folder);
    let letters = backend.queue.list(None, 10).await.unwrap();
    let told: Vec<_> =
        letters.iter().map(|l| (l.body.as_str(), l.cause.as_str(), l.reason.as_str(), l.receives)).collect();
    let reason = "it says nothing we know";
    assert_eq!(told, [("{\"n\":0}", "fault", reason, 1), ("{\"n\":1}", "fault", reason, 1)]);
    assert!(letters.iter().all(|letter| letter.died > letter.sent), "nobody knows when they were sent");
    assert!(backend.queue.replay(&letters[0].id).await.unwrap().is_some());
    let mut received = backend.queue.receive(10).await.unwrap();
    assert_eq!(
        received.iter().map(|d| (d.body.as_str(), d.receives)).collect::<Vec<_>>(),
        [("{\"n\":2}", 1), ("{\"n\":0}", 1)]
    );
    for delivery in received.drain(..) {
        backend.queue.settle(delivery, Settlement::Done).await.unwrap();
    }
    assert_eq!(backend.queue.depth().await.unwrap().dead, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn persons_of_schema_2_are_recognised_and_forgotten() {
    let folders = Folders::new();
    let folder = made_by_schema_2(&folders);
    let backend = open(&folder);
    let last = templates_after(&backend, Seq(0)).await.read.in_lane(Lane::IDENTITY);
    // Identities 0, 1 and 2 are persons 1 to 3; identity 3 was person4 and is person1.
    let photos: Vec<Photo> = [(100, 1), (101, 3)].map(|(number, identity)| photo(number, &[identity])).to_vec();
    upload(&backend, &photos).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &photos[0]).await, [person(2)]);
    assert_eq!(persons_in(&backend, &photos[1]).await, [person(1)]);
    let of_first = |number: u64| photo(number, &[]);
    for number in [1, 3] {
        sparks_tests::platform::send(&backend, sparks_tests::platform::deletion(&of_first(number))).await;
    }
    drain(&backend).await;
    let log = read_log(&backend).await;
    assert_eq!(sparks_tests::snapshot::count(&log, "PhotoDeleted"), 2);
    // Photo 1 founded persons 2 and 3; each is known by what is left.
    let next = [photo(110, &[1]), photo(111, &[2])];
    upload(&backend, &next).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &next[0]).await, [person(2)]);
    assert_eq!(persons_in(&backend, &next[1]).await, [person(3)]);
    assert!(!templates_after(&backend, last).await.faces.is_empty());
    let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
    assert_eq!(drift.total, 0, "{:#?}", drift.differences);
}
