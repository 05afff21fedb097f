//! Deletions and erasures that need more than one transaction.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;
use sparks_domain::{Event, Key, Presence};
use sparks_engine::{Commit, Objects, PhotoGuard, Store};
use sparks_tests::{
    emulator::Emulator,
    samples::{allocated, decided_face, empty_commit, face, image, person, processed, raise, set},
    worker::{open, pipeline},
};

use super::dynamodb_faults::with_image_row;

/// Thirty persons have their only template in this photo and a face in five others: more than a transaction may contain.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deleting_the_only_template_of_thirty_persons_enrolls_others() {
    let (emulator, folder) = (Emulator::start().await, tempfile::tempdir().unwrap());
    let (_, store) = with_image_row(&emulator).await;
    let store = Arc::new(store);
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
        store.commit(&commit).await.unwrap();
    };
    commit(1, &numbers, true).await;
    for number in &numbers {
        for n in 0..5 {
            commit(1000 + u64::from(*number) * 10 + n, &[*number], false).await;
        }
    }
    let objects = Arc::clone(&open(folder.path()).objects) as Arc<dyn Objects>;
    let pipeline = pipeline(Arc::clone(&store) as Arc<dyn Store>, objects).await.unwrap();
    pipeline.delete_as_operator(&image(1)).await.unwrap();
    let kept = store.faces_of(&numbers.iter().map(|n| person(*n)).collect::<Vec<_>>()).await.unwrap();
    let with_template: BTreeSet<_> =
        kept.iter().filter(|face| face.kept.template).map(|face| face.kept.person).collect();
    assert!(with_template.len() >= 15, "only {} persons have a new template", with_template.len());
}

/// The platform has removed the rows of 150 photos without a message, so the faces of a person are in more items than a transaction may
/// change when the last photo is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_person_in_150_photos_is_forgotten_completely() {
    let (emulator, folder) = (Emulator::start().await, tempfile::tempdir().unwrap());
    let (_, store) = with_image_row(&emulator).await;
    let store = Arc::new(store);
    for n in 1..=151 {
        let (image, is_first) = (image(n), n == 1);
        let person_rows = [
            set(&Key::person(person(1)), Presence::Absent, json!({ "entityType": "PERSON" })),
            raise(&Key::counter(), json!({ "limit": 1 })),
        ];
        let events: Vec<Event> = is_first.then(|| allocated(&image, 0, &[1])).into_iter().collect();
        let commit = Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: None }),
            events: events.into_iter().chain([processed(&image, "v1", &[1])]).collect(),
            mutations: if is_first { person_rows.to_vec() } else { Vec::new() },
            signatures: vec![decided_face(face(&image, 0), n as u8, Some(1), true)],
            ..empty_commit()
        };
        store.commit(&commit).await.unwrap();
    }
    let objects = Arc::clone(&open(folder.path()).objects) as Arc<dyn Objects>;
    let pipeline = pipeline(Arc::clone(&store) as Arc<dyn Store>, objects).await.unwrap();
    pipeline.delete_as_operator(&image(1)).await.unwrap();
    assert_eq!(store.faces_of(&[person(1)]).await.unwrap().len(), 0, "stored faces of the forgotten person");
    assert_eq!(store.get(&Key::person(person(1))).await.unwrap(), None);
}
