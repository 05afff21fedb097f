//! Photos with more persons than fit into one transaction: rows written after it, and changes limited to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::json;
use sparks_domain::{Event, Key};
use sparks_engine::{ArrivalOrder, Clock, Commit, Outcome, PhotoGuard, PhotoRef, Store, SystemClock};
use sparks_tests::{
    album::album,
    fault_injection::FaultPlan,
    platform_actions::{deletion_message, send, write_row},
    samples::{decided_face, empty_commit, face, image, person, processed},
    snapshot::read_log,
    worker::{consolidator, drain, image_of, open, pipeline, rebuilder, upload},
};

use super::data_folders::DataFolders;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivered_deletion_removes_remaining_tags() {
    let folders = DataFolders::new();
    let (backend, photos) = (open(&folders.fresh()), album(&[&[0], &[1]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    send(&backend, deletion_message(&photos[0])).await;
    drain(&backend).await;
    // As after a worker that was killed after the first transaction.
    let remaining = [7, 8].map(|number| Key::tagging(&image_of(&photos[0]), person(number)));
    for key in &remaining {
        write_row(&backend, key, json!({ "entityType": "TAGGING" })).await;
    }
    let other = Key::tagging(&image_of(&photos[1]), person(2));
    send(&backend, deletion_message(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(backend.store.batch_get(&remaining).await.unwrap(), []);
    assert!(backend.store.get(&other).await.unwrap().is_some(), "a tag of another photo was removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivery_creates_missing_person_rows() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0, 1, 2, 3]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
    consolidator.merge(person(1), person(4), true).await.unwrap();
    consolidator.apply_merges(|_| ()).await.unwrap();
    let rows = async || backend.store.batch_get(&[1, 2, 3, 4].map(|n| Key::person(person(n)))).await.unwrap();
    let complete = rows().await;
    assert_eq!(complete.len(), 3, "person4 is merged into person1");
    let file = rusqlite::Connection::open(folder.join("sparks.db")).unwrap();
    file.execute("DELETE FROM items WHERE PK IN ('PERSON#person2', 'PERSON#person3')", []).unwrap();

    let pipeline = pipeline(Arc::clone(&backend.store) as _, Arc::clone(&backend.objects) as _).await.unwrap();
    let (image, key) = (image_of(&photos[0]), format!("originals/{}.jpg", image_of(&photos[0])));
    let photo = PhotoRef { image, key, version: None, sequencer: None, file_name: None, finished: None };
    let outcome = pipeline.process(photo, &ArrivalOrder::default().slot(SystemClock.now())).await.unwrap();
    assert!(matches!(outcome, Outcome::AlreadyCommitted), "{outcome:?}");
    assert_eq!(rows().await, complete);
    assert_eq!(rebuilder(&backend).run(false, |_| ()).await.unwrap().total, 0);
}

/// The only templates of thirty persons are in the deleted photo; each person has a face in five other photos.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_changes_only_as_many_photos_as_fit_a_transaction() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    let numbers: Vec<u32> = (1..=30).collect();
    let commit = async |photo: u64, persons: &[u32], template: bool| {
        let image = image(photo);
        let faces = (0..).zip(persons).map(|(n, p)| decided_face(face(&image, n), *p as u8, Some(*p), template));
        let commit = Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: None }),
            events: vec![processed(&image, "v1", persons)],
            signatures: faces.collect(),
            ..empty_commit()
        };
        backend.store.commit(&commit).await.unwrap();
    };
    commit(1, &numbers, true).await;
    for number in &numbers {
        for n in 0..5 {
            commit(1000 + u64::from(*number) * 10 + n, &[*number], false).await;
        }
    }
    let pipeline = pipeline(Arc::clone(&backend.store) as _, Arc::clone(&backend.objects) as _).await.unwrap();
    pipeline.delete_as_operator(&image(1)).await.unwrap();
    let log = read_log(&backend).await;
    let Some(Event::PhotoDeleted(deleted)) = log.last().map(|recorded| &recorded.event) else { panic!("{log:?}") };
    let photos: BTreeSet<_> = deleted.known_by.iter().map(|face| &face.image).collect();
    assert!((30..=80).contains(&photos.len()), "{} photos changed in one transaction", photos.len());
    let mut each: BTreeMap<u32, usize> = BTreeMap::new();
    for kept in backend.store.signatures(&deleted.known_by).await.unwrap() {
        *each.entry(kept.person.unwrap().number()).or_default() += 1;
    }
    assert!(each.len() >= 15 && each.values().all(|faces| *faces <= 4), "{each:?}");
}
