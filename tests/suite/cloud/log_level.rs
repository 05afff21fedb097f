//! The reader level of a log in DynamoDB: what is stored at each level, and `sparks log level`.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use sparks_aws::DynamoStore;
use sparks_domain::{Level, Timestamp};
use sparks_engine::{
    Clock, Commit, CommitError, LogStatus, PhotoGuard, Store, StoreError, StoredFace, SystemClock, WorkerAnnouncement,
    WorkerRegistry, raise_level,
};
use sparks_tests::{
    album::photo,
    emulator::Emulator,
    samples::{decided_face, empty_commit, face, image, processed},
};

use super::account::{Account, RunningWorker, row};

/// Returns a commit of a photo with this many faces.
fn group_photo(n: u64, faces: u16) -> Commit {
    let signatures: Vec<StoredFace> =
        (0..faces).map(|number| decided_face(face(&image(n), number), 1, Some(1), false)).collect();
    let photo = Some(PhotoGuard { image: image(n), before: None });
    Commit { photo, events: vec![processed(&image(n), "v1", &[1])], signatures, ..empty_commit() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faces_are_stored_in_several_items_only_from_level_2_on() {
    let emulator = Emulator::start().await;
    let (connection, tables) = (emulator.connect().await, emulator.tables().await);
    let (client, table) = (connection.dynamodb(), tables.faces.clone());
    let items = async |n: u64| {
        let query = client.query().table_name(&table).key_condition_expression("PK = :pk");
        let query = query.expression_attribute_values(":pk", AttributeValue::S(image(n).to_string()));
        query.send().await.unwrap().items.unwrap_or_default().len()
    };
    let store = DynamoStore::open(&connection, tables.clone(), 2).await.unwrap();
    let operator = DynamoStore::open(&connection, tables, 2).await.unwrap();

    // As the previous release stores them: all faces of a photo in one item.
    store.commit(&group_photo(1, 250)).await.unwrap();
    assert_eq!(items(1).await, 1);
    let refused = store.commit(&group_photo(2, 400)).await;
    let Err(CommitError::Store(error @ StoreError::LevelTooLow { .. })) = refused else { panic!("{refused:?}") };
    let message = error.to_string();
    assert!(message.contains("this many faces") && message.contains("`sparks log level 2`"), "{message}");
    assert_eq!((items(2).await, store.photo(&image(2)).await.unwrap()), (0, None), "nothing is written");

    assert!(raise_level(&operator, Level(2), "operator", &SystemClock).await.unwrap());
    // The store has not read the raise yet: it writes what every reader can read, and reads the level where it must.
    store.commit(&group_photo(3, 250)).await.unwrap();
    assert_eq!(items(3).await, 1);
    store.commit(&group_photo(2, 400)).await.unwrap();
    assert_eq!(items(2).await, 4);
    store.commit(&group_photo(4, 250)).await.unwrap();
    assert_eq!(items(4).await, 3);
    assert_eq!(operator.faces_of(&[sparks_tests::samples::person(1)]).await.unwrap().len(), 250 + 250 + 400 + 250);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn announcements_expire_and_their_items_are_used_again() {
    let emulator = Emulator::start().await;
    let (connection, tables) = (emulator.connect().await, emulator.tables().await);
    let log = tables.log.clone();
    let store = DynamoStore::open(&connection, tables, 2).await.unwrap();
    let worker = |id: &str, seen: i64| WorkerAnnouncement {
        id: id.into(),
        host: format!("{id} process 1"),
        version: "0.2.0".into(),
        level: Level(2),
        seen: Timestamp::from_millis(seen),
    };
    let names = async |since: i64| {
        let workers = store.workers(Timestamp::from_millis(since)).await.unwrap();
        let mut names: Vec<String> = workers.into_iter().map(|worker| worker.id).collect();
        names.sort();
        names
    };
    let minute = 60_000;
    store.announce(&worker("a", minute)).await.unwrap();
    store.announce(&worker("b", minute)).await.unwrap();
    store.announce(&worker("a", 2 * minute)).await.unwrap();
    assert_eq!(store.workers(Timestamp::from_millis(1)).await.unwrap().len(), 2, "an announcement is renewed");
    assert_eq!(names(2 * minute).await, ["a"]);
    store.withdraw(&worker("a", 2 * minute)).await.unwrap();
    assert_eq!(names(1).await, ["b"]);
    // c takes the item of a, d that of b, which has expired.
    store.announce(&worker("c", 3 * minute)).await.unwrap();
    store.announce(&worker("d", 9 * minute)).await.unwrap();
    assert_eq!(names(1).await, ["c", "d"]);
    let query = connection.dynamodb().query().table_name(&log).key_condition_expression("PK = :pk");
    let query = query.expression_attribute_values(":pk", AttributeValue::S("WORKER".into()));
    assert_eq!(query.send().await.unwrap().count, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_level_is_raised_once_no_worker_is_too_old() {
    let account = Account::new(&[("SPARKS_AWS_POLL_SECONDS", "1")]).await;
    let worker = RunningWorker::start(&account, []);
    account.upload(&row(&photo(1, &[1])), photo(1, &[1]).jpeg).await;
    account.wait_for_photos(1).await;
    let show = || account.lines(["log", "level", "--json"]).remove(0);
    let started = Instant::now();
    while show()["workers"].as_array().unwrap().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(30), "the worker announces itself");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let shown = show();
    assert_eq!((&shown["level"], &shown["workers"][0]["level"]), (&1.into(), &2.into()), "{shown}");
    assert_eq!(shown["workers"][0]["version"], env!("CARGO_PKG_VERSION"));

    // A release that announces nothing is recognised by its events.
    let events = vec![processed(&image(7), "v1", &[])];
    let old = Commit { events, actor: "sparks/0.1.0".into(), when: SystemClock.now(), ..empty_commit() };
    account.store.commit(&old).await.unwrap();
    let refused = account.run(["log", "level", "2"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && error.contains("seen by its events (0.1.0)"), "{error}");
    let doctor = String::from_utf8(account.run(["doctor"]).stdout).unwrap();
    let line = doctor.lines().find(|line| line.contains("reader level")).unwrap_or_else(|| panic!("{doctor}"));
    assert!(line.starts_with("warn") && line.contains("too old for level 2: seen by its events (0.1.0)"), "{line}");

    assert_eq!(account.text(["log", "level", "2", "--force"]), "raised the level of the log from 1 to 2\n");
    assert_eq!(account.text(["log", "level", "2"]), "the log has level 2 already\n");
    account.upload(&row(&photo(2, &[1, 2])), photo(2, &[1, 2]).jpeg).await;
    account.wait_for_photos(3).await;
    worker.stop().await;
    let status = LogStatus::read(&account.store, &account.store, SystemClock.now()).await.unwrap();
    let left: Vec<&str> = status.workers.iter().map(|worker| worker.version.as_str()).collect();
    assert_eq!((status.level, left), (Level(2), vec!["0.1.0"]), "a clean stop removes the announcement");
}
