//! Photos that are removed or replaced while persons are merged, and the unmerge after it.

use sparks_domain::{Event, Key, PersonId};
use sparks_engine::{Objects, Store};
use sparks_tests::{
    album::{Photo, album, photo},
    fault_injection::FaultPlan,
    platform_actions::{deletion_message, send, upload_again},
    samples::person,
    snapshot::read_log,
    worker::{Worker, consolidator, drain, open, persons_in, upload},
};

use super::{data_folders::DataFolders, processed_album::ProcessedAlbum};

/// Returns whether the person has a row, a crop, an archived crop and a template.
async fn traces(fixture: &ProcessedAlbum, person: PersonId) -> [bool; 4] {
    let exists = async |key: String| fixture.backend.objects.head(&key).await.unwrap().is_some();
    let faces = fixture.backend.store.faces_of(&[person]).await.unwrap();
    [
        fixture.row(&Key::person(person)).await.is_some(),
        exists(format!("persons/{person}.jpg")).await,
        exists(format!("merged/{person}.jpg")).await,
        faces.iter().any(|decided| decided.kept.template),
    ]
}

async fn delete(fixture: &ProcessedAlbum, photo: &Photo) {
    send(&fixture.backend, deletion_message(photo)).await;
    drain(&fixture.backend).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_unmerge_forgets_the_merged_person_without_photos() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1]])).await;
    let merged = fixture.merge(1, 2).await;
    delete(&fixture, &fixture.photos[1]).await;
    assert_eq!(traces(&fixture, person(1)).await, [true, true, false, true]);
    fixture.unmerge(merged.event).await;
    assert_eq!(traces(&fixture, person(2)).await, [false; 4]);
    assert_eq!(traces(&fixture, person(1)).await, [true, true, false, true]);
    fixture.assert_no_drift().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_unmerge_forgets_the_surviving_person_without_photos() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1]])).await;
    let merged = fixture.merge(1, 2).await;
    delete(&fixture, &fixture.photos[0]).await;
    fixture.unmerge(merged.event).await;
    assert_eq!(traces(&fixture, person(1)).await, [false; 4]);
    assert_eq!(traces(&fixture, person(2)).await, [true, true, false, true]);
    fixture.assert_no_drift().await;
}

/// The archived crop shows a face that was erased with its photo.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_unmerge_replaces_a_crop_of_a_deleted_photo() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1], &[1]])).await;
    let merged = fixture.merge(1, 2).await;
    delete(&fixture, &fixture.photos[1]).await;
    fixture.unmerge(merged.event).await;
    assert_eq!(traces(&fixture, person(2)).await, [true, true, false, true]);
    let log = read_log(&fixture.backend).await;
    let pictured = log.iter().rev().find_map(|recorded| match &recorded.event {
        Event::PersonPictured(event) if event.person == person(2) => Some(event.face.image.clone()),
        _ => None,
    });
    assert_eq!(pictured, Some(sparks_tests::worker::image_of(&fixture.photos[2])));
    fixture.assert_no_drift().await;
}

/// The survivor has templates of the other person, whose faces are not theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_version_keeps_a_template_of_each_merged_person() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1], &[0]])).await;
    fixture.merge(1, 2).await;
    let again = Photo { number: fixture.photos[0].number, ..photo(70, &[]) };
    upload_again(&fixture.backend, &again).await;
    drain(&fixture.backend).await;
    let next = [photo(80, &[0])];
    upload(&fixture.backend, &next).await;
    drain(&fixture.backend).await;
    assert_eq!(persons_in(&fixture.backend, &next[0]).await, [person(1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_person_merged_while_their_crop_is_stored_has_no_public_crop() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let backend = open(&folder);
    upload(&backend, &album(&[&[0], &[1]])).await;
    let other = folder.clone();
    let plan = FaultPlan::interrupting_call_named("objects.put persons/person2.jpg", async move {
        let backend = open(&other);
        let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
        consolidator.merge(person(1), person(2), false).await.unwrap();
        consolidator.apply_merges(|_| ()).await.unwrap();
    });
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    assert!(plan.has_interruption_run());
    assert!(backend.objects.head("persons/person1.jpg").await.unwrap().is_some());
    assert!(backend.objects.head("persons/person2.jpg").await.unwrap().is_none(), "the crop of a merged person");
}
