//! The reader level of the log: a data folder raises its own, and a photo waits where the level is too low.

use std::fs::File;

use sparks_domain::{Level, Position, Seq};
use sparks_engine::{
    Cause, Class, Clock, Commit, CommitError, Delivery, Failure, LogStatus, MessageId, RetryPolicy, Settlement, Store,
    StoreError, SystemClock, WorkerRegistry, raise_level,
};
use sparks_tests::{
    samples::{empty_commit, image, level_raised, processed, time},
    worker::open,
};

use super::data_folders::DataFolders;

fn high_form(n: u64) -> Commit {
    Commit { events: vec![processed(&image(n), "v1", &[])], level: Level::MAX, ..empty_commit() }
}

async fn event_types(store: &dyn Store) -> Vec<&'static str> {
    let log = store.read_log(&Position::default(), 100).await.unwrap();
    log.iter().map(|recorded| recorded.event.event_type()).collect()
}

#[tokio::test]
async fn a_data_folder_raises_its_own_level_once() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let (one, other) = (open(&folder), open(&folder));
    one.store.commit(&Commit { level: Level::FIRST, ..high_form(1) }).await.unwrap();
    assert_eq!(one.store.identity(Seq(0)).await.unwrap().level, Level::FIRST, "not before it is needed");
    let recorded = one.store.commit(&high_form(2)).await.unwrap();
    assert_eq!(recorded.len(), 1, "the raise is not an event of the commit");
    other.store.commit(&high_form(3)).await.unwrap();
    let expected = ["PhotoProcessed", "LevelRaised", "PhotoProcessed", "PhotoProcessed"];
    assert_eq!(event_types(other.store.as_ref()).await, expected);
    assert_eq!(other.store.identity(Seq(0)).await.unwrap().level, Level::MAX);
}

/// Releases without levels have an empty lock file.
#[tokio::test]
async fn a_running_process_of_an_earlier_release_keeps_the_level() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let data = open(&folder);
    let lock = File::create(folder.join("owners").join("4242-1")).unwrap();
    lock.lock().unwrap();
    let refused = data.store.commit(&high_form(1)).await;
    let Err(CommitError::Store(error @ StoreError::LevelTooLow { .. })) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("stop process 4242, which is of a release before 0.2.0"), "{error}");
    assert_eq!(event_types(data.store.as_ref()).await, [""; 0]);

    let status = LogStatus::read(data.store.as_ref(), data.workers.as_ref(), SystemClock.now()).await.unwrap();
    let old: Vec<&str> = status.too_old_for(Level::MAX).iter().map(|worker| worker.host.as_str()).collect();
    assert_eq!(old, ["process 4242"]);

    drop(lock);
    data.store.commit(&high_form(1)).await.unwrap();
    assert_eq!(event_types(data.store.as_ref()).await, ["LevelRaised", "PhotoProcessed"]);
    assert!(data.workers.workers(time(0)).await.unwrap().is_empty(), "its own process is not listed");
}

/// A process that opens the folder is not registered yet, and may be of an earlier release.
#[tokio::test]
async fn the_level_is_not_raised_while_a_process_opens_the_folder() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let data = open(&folder);
    let opening = File::create(folder.join("setup.lock")).unwrap();
    opening.lock().unwrap();
    let Err(error) = data.store.commit(&high_form(1)).await else { panic!("the level was raised") };
    assert_eq!(Failure::from(error).cause, Cause::Throttled);
    drop(opening);
    data.store.commit(&high_form(1)).await.unwrap();
}

#[tokio::test]
async fn raising_the_level_again_is_a_no_op() {
    let folders = DataFolders::new();
    let data = open(&folders.fresh());
    assert!(raise_level(data.store.as_ref(), Level::MAX, "operator", &SystemClock).await.unwrap());
    assert!(!raise_level(data.store.as_ref(), Level::MAX, "operator", &SystemClock).await.unwrap());
    assert!(!raise_level(data.store.as_ref(), Level::FIRST, "operator", &SystemClock).await.unwrap());
    assert_eq!(event_types(data.store.as_ref()).await, ["LevelRaised"]);
}

#[tokio::test]
async fn a_log_of_a_higher_level_is_unreadable_and_not_written() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let data = open(&folder);
    let database = rusqlite::Connection::open(folder.join("sparks.db")).unwrap();
    database.execute("INSERT INTO heads (lane, seq) VALUES ('LEVEL', 3)", []).unwrap();
    let Err(StoreError::UnreadableLog(reason)) = data.store.identity(Seq(0)).await else { panic!("readable") };
    assert!(reason.contains("reader level 3"), "{reason}");
    let photo = Commit { events: vec![processed(&image(1), "v1", &[])], ..empty_commit() };
    let refused = data.store.commit(&photo).await;
    assert!(matches!(refused, Err(CommitError::Store(StoreError::UnreadableLog(_)))), "{refused:?}");
}

#[test]
fn a_photo_that_needs_a_higher_level_waits_and_is_never_a_dead_letter() {
    let failure = Failure::from(StoreError::level_too_low("a photo with this many faces", Level(2), Level(1)));
    assert_eq!((failure.cause, failure.cause.class()), (Cause::LevelTooLow, Class::Blocked));
    assert!(!failure.cause.concerns_all_requests(), "other photos are processed");
    let policy = RetryPolicy { max_attempts: 1, prerequisite_timeout: std::time::Duration::ZERO };
    let (id, body, receipt) = (MessageId("1".into()), String::new(), String::new());
    let old = Delivery { id, body, receives: 1000, sent: time(0), receipt };
    let settlement = policy.settlement(&Err(failure), &old, time(1_000_000));
    assert!(matches!(settlement, Settlement::Defer(_)), "{settlement:?}");
}

#[tokio::test]
async fn an_event_above_the_level_is_refused_by_name() {
    let commit = Commit { events: vec![processed(&image(1), "v1", &[])], ..empty_commit() };
    assert_eq!(commit.level_after(Level::FIRST).unwrap(), Level::FIRST);
    let raise = Commit { events: vec![level_raised(Level(2), Seq(0))], ..empty_commit() };
    assert_eq!(raise.level_after(Level::FIRST).unwrap(), Level(2), "a raise allows itself");
    assert!(matches!(raise.level_after(Level(2)), Err(StoreError::Refused(_))));
    assert!(matches!(commit.level_after(Level(3)), Err(StoreError::UnreadableLog(_))));
    let unknown = Commit { events: vec![level_raised(Level(3), Seq(0))], ..empty_commit() };
    assert!(matches!(unknown.level_after(Level(2)), Err(StoreError::UnreadableLog(_))));
}
