//! Effects of a commit that come late: after a later version, a rejection, a deletion or another worker's effects.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sparks_domain::{Key, PersonId};
use sparks_embedded::Embedded;
use sparks_engine::{Objects, Store};
use sparks_tests::{
    album::{Photo, album, photo},
    fault_injection::{Fault, FaultKind, FaultPlan, FaultTiming},
    platform_actions::{deletion_message, send, upload_again, upload_message},
    samples::person,
    worker::{Worker, drain, open, persons_in, rebuilder, upload},
};

use super::data_folders::{DataFolders, copy_folder};

/// Returns another content for the same image ID.
fn version_of(first: &Photo, number: u64, identities: &[usize]) -> Photo {
    Photo { number: first.number, ..photo(number, identities) }
}

/// Returns a file that is rejected, as another content for the same image ID.
fn damaged(first: &Photo) -> Photo {
    Photo { jpeg: first.jpeg[..first.jpeg.len() / 2].to_vec(), ..first.clone() }
}

/// Returns whether the person has a row, a crop and a template.
async fn is_enrolled(backend: &Embedded, person: PersonId) -> [bool; 3] {
    let row = backend.store.get(&Key::person(person)).await.unwrap().is_some();
    let crop = backend.objects.head(&format!("persons/{person}.jpg")).await.unwrap().is_some();
    let faces = backend.store.faces_of(&[person]).await.unwrap();
    [row, crop, faces.iter().any(|decided| decided.kept.template)]
}

async fn assert_no_drift(backend: &Embedded, name: &str) {
    let drift = rebuilder(backend).run(false, |_| ()).await.unwrap();
    assert_eq!(drift.total, 0, "{name}: {:?}", drift.differences);
}

/// Returns the calls of a worker that processes all messages of a copy of the folder.
async fn calls(folders: &DataFolders, folder: &Path) -> Vec<String> {
    let backend = open(&copy_folder(folder, &folders.fresh()));
    let plan = FaultPlan::without_faults();
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    plan.calls()
}

/// A worker dies after the commit of a version without persons; the next version is rejected before the message is delivered again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn persons_of_an_earlier_version_are_forgotten_after_a_rejection() {
    let folders = DataFolders::new();
    let (folder, photos) = (folders.fresh(), album(&[&[0], &[1]]));
    let backend = open(&folder);
    upload(&backend, &photos).await;
    drain(&backend).await;
    let empty = version_of(&photos[0], 70, &[]);
    upload_again(&backend, &empty).await;
    drop(backend);
    let commit = calls(&folders, &folder).await.iter().position(|call| call == "store.commit").unwrap() + 1;
    let backend = open(&folder);
    let fault = Fault { call: commit, timing: FaultTiming::AfterCall, kind: FaultKind::Crash };
    let plan = FaultPlan::at(fault);
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap_err();
    drop(backend);
    let backend = open(&folder);
    assert_eq!(
        is_enrolled(&backend, person(1)).await,
        [true, true, false],
        "the commit was made, its effects were not"
    );
    upload_again(&backend, &damaged(&photos[0])).await;
    drain(&backend).await;
    send(&backend, upload_message(&empty)).await;
    drain(&backend).await;
    assert_eq!(is_enrolled(&backend, person(1)).await, [false; 3]);
    assert_no_drift(&backend, "after the redelivery").await;
}

/// While the effects of a version are applied, another worker processes a later one, at every port call.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn effects_of_a_version_keep_the_tags_of_a_later_one() {
    let folders = Arc::new(DataFolders::new());
    let (folder, photos) = (folders.fresh(), album(&[&[0], &[1]]));
    let backend = open(&folder);
    upload(&backend, &photos).await;
    drain(&backend).await;
    upload_again(&backend, &version_of(&photos[0], 70, &[])).await;
    drop(backend);
    let calls = calls(&folders, &folder).await;
    let commit = calls.iter().position(|call| call == "store.commit").unwrap() + 1;
    for call in commit + 1..=calls.len() {
        let folder = copy_folder(&folder, &folders.fresh());
        let (backend, other) = (open(&folder), open(&folder));
        let later = version_of(&photos[0], 71, &[0]);
        let plan = FaultPlan::interrupting_call_number(call, async move {
            let another = Worker::start(&other, &FaultPlan::without_faults()).await.unwrap();
            upload_again(&other, &later).await;
            while another.next().await.unwrap() {}
        });
        Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
        let name = format!("before call {call} ({})", calls[call - 1]);
        assert_no_drift(&backend, &name).await;
        let persons = persons_in(&backend, &photos[0]).await;
        assert_eq!(persons.len(), 1, "{name}");
        assert_eq!(is_enrolled(&backend, persons[0]).await, [true; 3], "{name}: {persons:?}");
    }
}

/// A redelivery stores the crop of a new person while another worker replaces the photo by one without faces.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crop_stored_after_a_version_without_faces_is_removed() {
    let folders = DataFolders::new();
    let (folder, photos) = (folders.fresh(), album(&[&[0], &[1]]));
    let backend = open(&folder);
    upload(&backend, &photos).await;
    drain(&backend).await;
    backend.objects.delete("persons/person1.jpg").await.unwrap();
    send(&backend, upload_message(&photos[0])).await;
    let (other, later) = (open(&folder), version_of(&photos[0], 70, &[]));
    let plan = FaultPlan::interrupting_call_named("objects.put persons/person1.jpg", async move {
        let another = Worker::start(&other, &FaultPlan::without_faults()).await.unwrap();
        upload_again(&other, &later).await;
        while another.next().await.unwrap() {}
    });
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    assert!(plan.has_interruption_run());
    assert_eq!(is_enrolled(&backend, person(1)).await, [false; 3]);
}

/// Returns a folder in which person1 is forgotten, and a message about a photo of them waits for a worker who does not know that.
/// `before` runs while the person is known.
async fn forgotten_while_a_photo_waits<T>(folder: &Path, before: impl AsyncFnOnce(&Embedded) -> T) -> (T, Photo) {
    let (backend, photos) = (open(folder), album(&[&[0], &[1]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    let prepared = before(&backend).await;
    send(&backend, deletion_message(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(is_enrolled(&backend, person(1)).await, [false; 3]);
    let new = photo(50, &[0]);
    upload(&backend, std::slice::from_ref(&new)).await;
    (prepared, new)
}

/// Returns the names of the calls of a worker who does not know that person1 is forgotten.
async fn calls_of_stale_worker(folder: PathBuf) -> Vec<String> {
    let plan = FaultPlan::without_faults();
    let start = async |backend: &Embedded| Worker::start(backend, &plan).await.unwrap();
    let (worker, _) = forgotten_while_a_photo_waits(&folder, start).await;
    worker.drain(&open(&folder)).await.unwrap();
    plan.calls()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_after_a_reinstatement_loses_no_crop() {
    let folders = DataFolders::new();
    let calls = calls_of_stale_worker(folders.fresh()).await;
    let commits: Vec<usize> = (1..).zip(&calls).filter(|(_, call)| *call == "store.commit").map(|(n, _)| n).collect();
    assert_eq!(commits.len(), 2, "the photo and the reinstatement: {calls:?}");
    for call in commits[0]..=calls.len() {
        let folder = folders.fresh();
        let plan = FaultPlan::at(Fault { call, timing: FaultTiming::AfterCall, kind: FaultKind::Crash });
        let start = async |backend: &Embedded| Worker::start(backend, &plan).await.unwrap();
        let (worker, new) = forgotten_while_a_photo_waits(&folder, start).await;
        worker.drain(&open(&folder)).await.unwrap_err();
        drop(worker); // its lease ends with its handles
        let backend = open(&folder);
        send(&backend, upload_message(&new)).await;
        drain(&backend).await;
        assert_eq!(is_enrolled(&backend, person(1)).await, [true; 3], "crash after call {call} ({})", calls[call - 1]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_person_is_not_reinstated_by_a_photo_that_was_deleted_meanwhile() {
    let folders = DataFolders::new();
    let calls = calls_of_stale_worker(folders.fresh()).await;
    let commit = calls.iter().position(|call| call == "store.commit").unwrap() + 1;
    for call in commit + 1..=calls.len() {
        let folder = folders.fresh();
        let other = folder.clone();
        let plan = FaultPlan::interrupting_call_number(call, async move {
            let backend = open(&other);
            let another = Worker::start(&backend, &FaultPlan::without_faults()).await.unwrap();
            send(&backend, deletion_message(&photo(50, &[0]))).await;
            while another.next().await.unwrap() {}
        });
        let start = async |backend: &Embedded| Worker::start(backend, &plan).await.unwrap();
        let (worker, _) = forgotten_while_a_photo_waits(&folder, start).await;
        let backend = open(&folder);
        worker.drain(&backend).await.unwrap();
        let name = format!("deleted before call {call} ({})", calls[call - 1]);
        assert_eq!(is_enrolled(&backend, person(1)).await, [false; 3], "{name}");
        assert_no_drift(&backend, &name).await;
    }
}
