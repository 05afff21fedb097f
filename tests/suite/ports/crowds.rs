//! Photos of more persons than one transaction takes: what was to come after it, and what must fit into it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::json;
use sparks_domain::{Event, Key};
use sparks_engine::{Commit, Outcome, PhotoGuard, PhotoRef, Store, Turnstile};
use sparks_tests::{
    album::album,
    faults::Fuse,
    platform::{deletion, send, write},
    samples::{decided_face, face, image, nothing, person, processed},
    snapshot::read_log,
    worker::{drain, image_of, open, pipeline, rebuilder, register, upload},
};

use super::embedded::Folders;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_that_comes_again_removes_the_tags_that_are_left() {
    let folders = Folders::new();
    let (backend, photos) = (open(&folders.fresh()), album(&[&[0], &[1]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    send(&backend, deletion(&photos[0])).await;
    drain(&backend).await;
    // Whoever deleted it was killed after the first transaction.
    let left = [7, 8].map(|number| Key::tagging(&image_of(&photos[0]), person(number)));
    for key in &left {
        write(&backend, key, json!({ "entityType": "TAGGING" })).await;
    }
    let other = Key::tagging(&image_of(&photos[1]), person(2));
    send(&backend, deletion(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(backend.store.batch_get(&left).await.unwrap(), []);
    assert!(backend.store.get(&other).await.unwrap().is_some(), "another photo's tag");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_that_comes_again_makes_the_rows_of_persons_that_are_missing() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0, 1, 2, 3]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    let register = register(&backend, &Fuse::counting()).await.unwrap();
    register.join(person(1), person(4), true).await.unwrap();
    register.follow(|_| ()).await.unwrap();
    let rows = async || backend.store.batch_get(&[1, 2, 3, 4].map(|n| Key::person(person(n)))).await.unwrap();
    let complete = rows().await;
    assert_eq!(complete.len(), 3, "person4 is person1");
    let file = rusqlite::Connection::open(folder.join("sparks.db")).unwrap();
    file.execute("DELETE FROM items WHERE PK IN ('PERSON#person2', 'PERSON#person3')", []).unwrap();

    let pipeline = pipeline(Arc::clone(&backend.store) as _, Arc::clone(&backend.objects) as _).await.unwrap();
    let (image, key) = (image_of(&photos[0]), format!("originals/{}.jpg", image_of(&photos[0])));
    let photo = PhotoRef { image, key, version: None, sequencer: None, file_name: None, finished: None };
    let outcome = pipeline.process(photo, &Turnstile::default().ticket()).await.unwrap();
    assert!(matches!(outcome, Outcome::AlreadyCommitted), "{outcome:?}");
    assert_eq!(rows().await, complete);
    assert_eq!(rebuilder(&backend).run(false, |_| ()).await.unwrap().total, 0);
}

/// Thirty persons were known by nothing but this photo, and each has a face in five others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_changes_no_more_photos_than_a_transaction_takes() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    let numbers: Vec<u32> = (1..=30).collect();
    let commit = async |photo: u64, persons: &[u32], template: bool| {
        let image = image(photo);
        let faces = (0..).zip(persons).map(|(n, p)| decided_face(face(&image, n), *p as u8, Some(*p), template));
        let commit = Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: None }),
            events: vec![processed(&image, "v1", persons)],
            signatures: faces.collect(),
            ..nothing()
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
    pipeline.delete_as_owner(&image(1)).await.unwrap();
    let log = read_log(&backend).await;
    let Some(Event::PhotoDeleted(deleted)) = log.last().map(|recorded| &recorded.event) else { panic!("{log:?}") };
    let photos: BTreeSet<_> = deleted.known_by.iter().map(|face| &face.image).collect();
    assert!((30..=80).contains(&photos.len()), "{} photos change in one transaction", photos.len());
    let mut each: BTreeMap<u32, usize> = BTreeMap::new();
    for kept in backend.store.signatures(&deleted.known_by).await.unwrap() {
        *each.entry(kept.person.unwrap().number()).or_default() += 1;
    }
    assert!(each.len() >= 15 && each.values().all(|faces| *faces <= 4), "{each:?}");
}
