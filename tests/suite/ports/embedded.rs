//! The embedded adapters keep the contracts, and a promise of their own: a dead owner's messages are free at once.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use sparks_embedded::{Embedded, Patience};
use sparks_engine::{
    Content, DeadLetters, Maintenance, Objects, ObjectsError, PutMode, Queue, QueueError, Settlement, Store,
};
use sparks_tests::contract::{self, Abilities, Leases, OutageRig, PlatformRig, QueueRig};
use tempfile::TempDir;

/// Fresh data folders, removed at the end.
pub struct Folders {
    root: TempDir,
    made: AtomicU64,
}

impl Folders {
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), made: AtomicU64::new(0) }
    }

    pub fn fresh(&self) -> PathBuf {
        self.root.path().join(self.made.fetch_add(1, Ordering::Relaxed).to_string())
    }

    pub fn store(&self) -> Arc<dyn Store> {
        sparks_tests::worker::open(&self.fresh()).store
    }

    pub fn maintenance(&self) -> Arc<dyn Maintenance> {
        sparks_tests::worker::open(&self.fresh()).store
    }

    pub fn objects(&self) -> Arc<dyn Objects> {
        sparks_tests::worker::open(&self.fresh()).objects
    }

    /// A bucket whose folder can be renamed away.
    pub fn outage(&self) -> OutageRig {
        let folder = self.fresh();
        let objects = sparks_tests::worker::open(&folder).objects;
        let (here, away) = (folder.join("objects"), folder.join("objects.away"));
        let (from, to) = (here.clone(), away.clone());
        OutageRig {
            objects,
            away: Box::new(move || std::fs::rename(&from, &to).unwrap()),
            back: Box::new(move || std::fs::rename(&away, &here).unwrap()),
        }
    }

    /// Somebody who plays the platform's part.
    pub fn platform(&self) -> PlatformRig {
        let Embedded { platform, store, objects, .. } = sparks_tests::worker::open(&self.fresh());
        PlatformRig { platform, store, objects }
    }

    pub fn queue(&self, leases: Leases) -> QueueRig {
        let visibility = match leases {
            Leases::Long => Duration::from_secs(60),
            Leases::Short => Duration::from_millis(800),
        };
        let (folder, patience) = (self.fresh(), Patience { visibility, max_deaths: 25 });
        let one = Embedded::open_or_create(&folder, patience).unwrap();
        let other = Embedded::open_or_create(&folder, patience).unwrap();
        let letters = Arc::clone(&one.queue) as Arc<dyn DeadLetters>;
        QueueRig { queue: one.queue, other: other.queue, letters, visibility, abilities: Abilities::ALL }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_its_contract() {
    let folders = Folders::new();
    contract::store(async || folders.store()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_looks_at_everything_keeps_its_contract() {
    let folders = Folders::new();
    contract::maintenance(async || folders.maintenance()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_queue_keeps_its_contract() {
    let folders = Folders::new();
    contract::queue(async |leases| folders.queue(leases)).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_objects_keep_their_contract() {
    let folders = Folders::new();
    contract::objects(async || folders.objects()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_platform_keeps_its_contract() {
    let folders = Folders::new();
    contract::platform(async || folders.platform()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_folder_of_objects_that_is_renamed_away_is_an_outage() {
    let folders = Folders::new();
    contract::outage(async || folders.outage()).await.assert_passed();
}

/// Half-written files are put there: without it nothing can be stored, and that is no missing object.
#[tokio::test]
async fn a_missing_folder_for_what_is_half_written_is_an_outage_too() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let objects = sparks_tests::worker::open(&folder).objects;
    std::fs::rename(folder.join("tmp"), folder.join("tmp.away")).unwrap();
    let stored = objects.put("a", vec![1], Content::picture("image/webp"), PutMode::Replace).await;
    assert!(matches!(stored, Err(ObjectsError::Unavailable { .. })), "{stored:?}");
    let checked = objects.check().await;
    assert!(matches!(checked, Err(ObjectsError::Unavailable { .. })), "{checked:?}");
}

#[tokio::test]
async fn a_store_that_cannot_write_says_so() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let store = sparks_tests::worker::open(&folder).store;
    store.check().await.unwrap();
    rusqlite::Connection::open(folder.join("sparks.db")).unwrap().execute_batch("DROP TABLE heads").unwrap();
    assert!(store.check().await.is_err(), "a file without heads takes no commit");
}

#[tokio::test]
async fn messages_of_a_dead_owner_are_free_at_once() {
    let folders = Folders::new();
    let rig = folders.queue(Leases::Long);
    for n in 0..3 {
        rig.queue.send(&format!("m{n}"), &format!("d{n}")).await.unwrap();
    }
    let held = rig.queue.receive(2).await.unwrap();
    assert_eq!(held.len(), 2);
    assert_eq!(rig.other.receive(5).await.unwrap().len(), 1, "the owner lives, so its messages are its own");

    let QueueRig { queue, other, letters, visibility, .. } = rig;
    drop((queue, letters));
    let asked = Instant::now();
    let freed = other.receive(5).await.unwrap();
    let bodies: Vec<_> = freed.iter().map(|delivery| (delivery.body.as_str(), delivery.receives)).collect();
    assert_eq!(bodies, [("m0", 2), ("m1", 2)], "the messages of the owner that is gone");
    assert!(asked.elapsed() < visibility, "that was the end of the lease, not of the owner");

    let late = other.settle(held[0].clone(), Settlement::Done).await;
    assert!(matches!(late, Err(QueueError::LeaseLost(_))), "the lease of the dead gives {late:?}");
}

#[tokio::test]
async fn a_message_that_kills_its_workers_becomes_a_dead_letter() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let patience = Patience { visibility: Duration::from_secs(60), max_deaths: 3 };
    let open = || Embedded::open_or_create(&folder, patience).unwrap();
    open().queue.send("deadly", "d").await.unwrap();
    for receives in 1..=3 {
        let received = open().queue.receive(1).await.unwrap();
        assert_eq!(received.first().map(|delivery| delivery.receives), Some(receives));
    }
    let backend = open();
    assert!(backend.queue.receive(1).await.unwrap().is_empty(), "a fourth worker got it");
    let letters = backend.queue.list(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].body.as_str(), letters[0].receives), ("deadly", 3));
    assert_eq!(letters[0].cause, "worker-died");
    assert!(letters[0].reason.contains("died"), "the reason is {:?}", letters[0].reason);
}

#[tokio::test]
async fn what_is_half_written_by_the_dead_is_swept() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let alive = sparks_tests::worker::open(&folder);
    let owner = std::fs::read_dir(folder.join("owners")).unwrap().next().unwrap().unwrap().file_name();
    let of_the_living = folder.join("tmp").join(format!("{}.7", owner.to_str().unwrap()));
    let of_the_dead = folder.join("tmp/1-1.7");
    std::fs::write(&of_the_living, "half").unwrap();
    std::fs::write(&of_the_dead, "half").unwrap();
    let _another = sparks_tests::worker::open(&folder);
    assert!(of_the_living.exists(), "its owner may still be writing it");
    assert!(!of_the_dead.exists(), "nobody will finish it");
    drop(alive);
}

#[tokio::test]
async fn what_waits_stands_in_line_again() {
    let folders = Folders::new();
    let queue = sparks_tests::worker::open(&folders.fresh()).queue;
    for body in ["waits", "is new"] {
        queue.send(body, body).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let waits = queue.receive(1).await.unwrap().remove(0);
    assert_eq!(waits.body, "waits");
    queue.settle(waits, Settlement::Wait(Duration::from_millis(5))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let received: Vec<String> = queue.receive(2).await.unwrap().into_iter().map(|delivery| delivery.body).collect();
    assert_eq!(received, ["is new", "waits"]);
}
