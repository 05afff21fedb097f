//! The embedded adapters pass the contract suites; what a dead process leaves behind is released and removed at once.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sparks_embedded::Embedded;
use sparks_engine::{
    Content, DeadLetters, DependencyError, Objects, ObjectsError, PutMode, Queue, QueueError, Settlement, Store,
};
use sparks_tests::{
    contract::{self, LeaseDuration, QueueFixture},
    worker::{open, with_queue},
};

use super::data_folders::DataFolders;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_passes_the_contract() {
    let folders = DataFolders::new();
    contract::store(async || folders.store()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_maintenance_port_passes_the_contract() {
    let folders = DataFolders::new();
    contract::maintenance(async || folders.maintenance()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_queue_passes_the_contract() {
    let folders = DataFolders::new();
    contract::queue(async |lease_duration| folders.queue(lease_duration)).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_bucket_passes_the_contract() {
    let folders = DataFolders::new();
    contract::objects(async || folders.objects()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_platform_client_passes_the_contract() {
    let folders = DataFolders::new();
    contract::platform_client(async || folders.platform()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_missing_objects_folder_is_an_outage() {
    let folders = DataFolders::new();
    contract::outage(async || folders.outage()).await.assert_passed();
}

/// Partially written files are stored there, so nothing can be stored without it.
#[tokio::test]
async fn a_missing_temporary_folder_is_an_outage() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let objects = open(&folder).objects;
    std::fs::rename(folder.join("tmp"), folder.join("tmp.renamed")).unwrap();
    let stored = objects.put("a", vec![1], Content::image("image/webp"), PutMode::Replace).await;
    assert!(
        matches!(stored, Err(ObjectsError::Dependency { error: DependencyError::Unavailable(_), .. })),
        "{stored:?}"
    );
    let checked = objects.check().await;
    assert!(
        matches!(checked, Err(ObjectsError::Dependency { error: DependencyError::Unavailable(_), .. })),
        "{checked:?}"
    );
}

#[tokio::test]
async fn check_fails_if_the_store_cannot_write() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let store = open(&folder).store;
    store.check().await.unwrap();
    rusqlite::Connection::open(folder.join("sparks.db")).unwrap().execute_batch("DROP TABLE heads").unwrap();
    assert!(store.check().await.is_err(), "check succeeds without the heads table");
}

#[tokio::test]
async fn messages_of_a_dead_process_are_released_at_once() {
    let folders = DataFolders::new();
    let fixture = folders.queue(LeaseDuration::Long);
    for n in 0..3 {
        fixture.queue.send(&format!("m{n}"), &format!("d{n}")).await.unwrap();
    }
    let held = fixture.queue.receive(2).await.unwrap();
    assert_eq!(held.len(), 2);
    assert_eq!(
        fixture.other.receive(5).await.unwrap().len(),
        1,
        "leased messages of a live process are received by another"
    );

    let QueueFixture { queue, other, dead_letters, visibility, .. } = fixture;
    drop((queue, dead_letters));
    let started = Instant::now();
    let released = other.receive(5).await.unwrap();
    let bodies: Vec<_> = released.iter().map(|delivery| (delivery.body.as_str(), delivery.receives)).collect();
    assert_eq!(bodies, [("m0", 2), ("m1", 2)], "messages of the dead process");
    assert!(started.elapsed() < visibility, "the messages were released by the visibility timeout");

    let late = other.settle(held[0].clone(), Settlement::Acknowledge).await;
    assert!(matches!(late, Err(QueueError::LeaseLost(_))), "settling a lease of the dead process returns {late:?}");
}

/// Makes it impossible to open a lock file. A loop of symbolic links stands for every error that does not say whether the process has
/// ended, such as too many open files or a denied access: it also fails for root, and other tests keep their files.
fn make_unreadable(lock_file: &Path) {
    fs::rename(lock_file, lock_file.with_file_name("../moved")).unwrap();
    std::os::unix::fs::symlink(lock_file, lock_file).unwrap();
    assert!(fs::File::open(lock_file).is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound));
}

/// Returns the lock files of processes.
fn lock_files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder.join("owners")).unwrap().map(|file| file.unwrap().path()).collect()
}

#[tokio::test]
async fn a_process_keeps_its_leases_if_its_lock_file_cannot_be_opened() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let live = open(&folder);
    live.queue.send("m", "d").await.unwrap();
    let held = live.queue.receive(1).await.unwrap().remove(0);
    let lock_file = lock_files(&folder).remove(0);
    make_unreadable(&lock_file);
    let other = open(&folder);
    assert!(other.queue.receive(1).await.unwrap().is_empty(), "the message of a live process was released");
    assert!(fs::symlink_metadata(lock_file).is_ok(), "the lock file of a live process was removed");
    live.queue.settle(held, Settlement::Acknowledge).await.unwrap();
}

#[tokio::test]
async fn partial_files_are_kept_if_the_lock_file_cannot_be_opened() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let _live = open(&folder);
    let lock_file = lock_files(&folder).remove(0);
    let partial = folder.join("tmp").join(format!("{}.7", lock_file.file_name().unwrap().to_str().unwrap()));
    fs::write(&partial, "half").unwrap();
    make_unreadable(&lock_file);
    open(&folder);
    assert!(partial.exists(), "a partial file of a live process was removed");
}

/// Commands that receive no messages leave lock files too: without this, `sparks query` every minute would leave half a million a year.
#[tokio::test]
async fn opening_a_folder_removes_the_lock_files_of_ended_processes() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let live = open(&folder);
    for _ in 0..3 {
        open(&folder);
    }
    let held = {
        let ended = open(&folder);
        ended.queue.send("m", "d").await.unwrap();
        ended.queue.receive(1).await.unwrap()
    };
    assert_eq!(held.len(), 1);
    let _last = open(&folder);
    assert_eq!(lock_files(&folder).len(), 2, "lock files of the two running processes");
    assert_eq!(live.queue.receive(1).await.unwrap().len(), 1, "the message of the ended process");
}

#[tokio::test]
async fn a_message_that_kills_its_workers_is_dead_lettered() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let open = || Embedded::open_or_create(&folder, with_queue(|queue| queue.max_crashes = 3)).unwrap();
    open().queue.send("deadly", "d").await.unwrap();
    for receives in 1..=3 {
        let received = open().queue.receive(1).await.unwrap();
        assert_eq!(received.first().map(|delivery| delivery.receives), Some(receives));
    }
    let backend = open();
    assert!(backend.queue.receive(1).await.unwrap().is_empty(), "a fourth worker received the message");
    let letters = backend.queue.list(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].body.as_str(), letters[0].receives), ("deadly", 3));
    assert_eq!(letters[0].cause, "worker-died");
    assert!(letters[0].reason.contains("crashed"), "the reason is {:?}", letters[0].reason);
}

#[tokio::test]
async fn partial_files_of_dead_processes_are_removed() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let live = open(&folder);
    let owner = std::fs::read_dir(folder.join("owners")).unwrap().next().unwrap().unwrap().file_name();
    let live_file = folder.join("tmp").join(format!("{}.7", owner.to_str().unwrap()));
    let dead_file = folder.join("tmp/1-1.7");
    std::fs::write(&live_file, "half").unwrap();
    std::fs::write(&dead_file, "half").unwrap();
    let _another = open(&folder);
    assert!(live_file.exists(), "a partial file of a live process was removed");
    assert!(!dead_file.exists(), "a partial file of a dead process was kept");
    drop(live);
}

#[tokio::test]
async fn a_deferred_message_returns_to_the_end_of_the_queue() {
    let folders = DataFolders::new();
    let queue = open(&folders.fresh()).queue;
    for body in ["waits", "is new"] {
        queue.send(body, body).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let waits = queue.receive(1).await.unwrap().remove(0);
    assert_eq!(waits.body, "waits");
    queue.settle(waits, Settlement::Defer(Duration::from_millis(5))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let received: Vec<String> = queue.receive(2).await.unwrap().into_iter().map(|delivery| delivery.body).collect();
    assert_eq!(received, ["is new", "waits"]);
}
