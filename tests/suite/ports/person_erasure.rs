//! Forgetting a person whose faces are in more photos than one transaction takes.

use std::{path::Path, sync::Arc};

use sparks_domain::{Key, PersonId};
use sparks_embedded::Embedded;
use sparks_engine::{
    Commit, DeadLetters, FaceSearch, GalleryIndex, Maintenance, Objects, PhotoGuard, SnapshotStore, Store,
};
use sparks_tests::{
    album::album,
    fault_injection::{Fault, FaultKind, FaultPlan, FaultTiming},
    platform_actions::{deletion_message, send},
    samples::{decided_face, empty_commit, face, image, person, processed},
    snapshot::{count, read_log},
    worker::{Worker, drain, open, upload},
};

use super::data_folders::{DataFolders, copy_folder};

const PHOTOS: u8 = 150;

/// Prepares a folder with a message that deletes the last photo of person1. The platform has removed the rows of 150 other photos of
/// them without a message, so that their faces are still stored.
async fn before_deletion(folders: &DataFolders) -> std::path::PathBuf {
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[1]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    for n in 1..=PHOTOS {
        let image = image(1000 + u64::from(n));
        let commit = Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: None }),
            events: vec![processed(&image, "v1", &[1])],
            signatures: vec![decided_face(face(&image, 0), n, Some(1), n % 10 == 0)],
            ..empty_commit()
        };
        backend.store.commit(&commit).await.unwrap();
    }
    send(&backend, deletion_message(&photos[0])).await;
    folder
}

fn has_template(index: &GalleryIndex, person: PersonId) -> bool {
    let state = index.state();
    state.gallery.models().any(|model| state.gallery.contains(model, person))
}

async fn gallery(backend: &Embedded) -> GalleryIndex {
    GalleryIndex::load(Arc::clone(&backend.store) as Arc<dyn Store>, 5).await.unwrap()
}

async fn gallery_with_snapshot(backend: &Embedded) -> GalleryIndex {
    let objects = Arc::clone(&backend.objects) as Arc<dyn Objects>;
    let (store, snapshots) = (Arc::clone(&backend.store), SnapshotStore::new(objects, "gallery/templates.json".into()));
    GalleryIndex::load_with_snapshot(store as Arc<dyn Maintenance>, 5, snapshots).await.unwrap()
}

/// Fails unless person1 is forgotten and none of their faces is stored.
async fn check_erased(backend: &Embedded) -> Result<(), String> {
    let letters = backend.queue.list(None, 10).await.unwrap();
    let faces = backend.store.faces_of(&[person(1)]).await.unwrap().len();
    let row = backend.store.get(&Key::person(person(1))).await.unwrap();
    let crop = backend.objects.head("persons/person1.jpg").await.unwrap();
    let forgotten = count(&read_log(backend).await, "PersonsForgotten");
    let is_erased = letters.is_empty() && (faces, forgotten) == (0, 1) && row.is_none() && crop.is_none();
    is_erased.then_some(()).ok_or_else(|| {
        let reasons: Vec<_> = letters.into_iter().map(|letter| letter.reason).collect();
        format!("{faces} faces, row {row:?}, crop {crop:?}, {forgotten} PersonsForgotten, dead letters {reasons:?}")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_person_in_150_photos_is_forgotten_completely() {
    let folders = DataFolders::new();
    let backend = open(&before_deletion(&folders).await);
    drain(&backend).await;
    check_erased(&backend).await.unwrap();
    assert_eq!(backend.store.faces_of(&[person(2)]).await.unwrap().len(), 1, "the face of another person");
}

/// Crashes at this commit. Until another worker has finished, no gallery may contain a template of the forgotten person.
async fn crash_at_commit(fault: Fault, folder: &Path) -> Result<(), String> {
    let backend = open(folder);
    let running = gallery_with_snapshot(&backend).await;
    running.save_snapshot(true).await.unwrap();
    assert!(has_template(&running, person(1)));
    let plan = FaultPlan::at(fault);
    let stopped = Worker::start(&backend, &plan).await.unwrap().drain(&backend).await;
    if stopped.is_ok() || !plan.has_fired() {
        return Err("the worker did not crash".into());
    }
    running.refresh().await.unwrap();
    running.catch_up().await.unwrap();
    if count(&read_log(&backend).await, "PersonsForgotten") > 0 {
        let (new, restored) = (gallery(&backend).await, gallery_with_snapshot(&backend).await);
        for (name, index) in [("running", running), ("new", new), ("restored", restored)] {
            if has_template(&index, person(1)) {
                return Err(format!("a {name} gallery contains the forgotten person"));
            }
        }
    }
    drop(backend);
    let backend = open(folder);
    drain(&backend).await;
    check_erased(&backend).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_large_erasure_is_completed_after_a_crash_at_any_commit() {
    let folders = DataFolders::new();
    let before = before_deletion(&folders).await;
    let plan = FaultPlan::without_faults();
    let backend = open(&copy_folder(&before, &folders.fresh()));
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    let calls = (1..).zip(plan.calls()).filter(|(_, name)| name == "store.commit").map(|(call, _)| call);
    let calls: Vec<usize> = calls.collect();
    assert!(calls.len() >= 4, "the deletion, the event and two further erasures: {calls:?}");
    for call in calls {
        for timing in [FaultTiming::BeforeCall, FaultTiming::AfterCall] {
            let folder = copy_folder(&before, &folders.fresh());
            let fault = Fault { call, timing, kind: FaultKind::Crash };
            let result = crash_at_commit(fault, &folder).await;
            assert_eq!(result, Ok(()), "{fault:?}");
        }
    }
}
