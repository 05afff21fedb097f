//! Secondary indexes are eventually consistent: no decision may rely on a row that an index still shows or does not show yet.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use sparks_domain::{Email, Key};
use sparks_embedded::Embedded;
use sparks_engine::{
    ArrivalOrder, Checkpoint, Clock, DeleteRef, Maintenance, Objects, Outcome, Pipeline, Request, Store, SystemClock,
};
use sparks_tests::{
    album::{Photo, album, photo},
    fault_injection::FaultPlan,
    platform_actions::{sign_up, upload_profile_picture, write_row},
    samples::{person, uploader},
    snapshot::{count, read_log},
    stale_index_store::StaleIndexStore,
    worker::{consolidator_over, drain, image_of, open, persons_in, pipeline, rebuilder, upload},
};

use super::data_folders::DataFolders;

/// Processes photos and returns a view of the store whose indexes can be frozen.
async fn with_stale_indexes(folders: &DataFolders, photos: &[Photo]) -> (Embedded, Arc<StaleIndexStore>, Pipeline) {
    let backend = open(&folders.fresh());
    upload(&backend, photos).await;
    drain(&backend).await;
    let indexes = StaleIndexStore::new(Arc::clone(&backend.store) as Arc<dyn Maintenance>);
    let objects = Arc::clone(&backend.objects) as Arc<dyn Objects>;
    let pipeline = pipeline(Arc::clone(&indexes) as Arc<dyn Store>, objects).await.unwrap();
    (backend, indexes, pipeline)
}

async fn delete(pipeline: &Pipeline, photo: &Photo) {
    let request = Request::Delete(DeleteRef { image: image_of(photo), uploader: uploader() });
    let deleted = pipeline.handle(request, &ArrivalOrder::default().slot(SystemClock.now())).await.unwrap();
    assert!(matches!(deleted, Outcome::Deleted), "{deleted:?}");
}

/// Returns whether person1 has a row, a crop and stored faces.
async fn is_enrolled(backend: &Embedded) -> [bool; 3] {
    let row = backend.store.get(&Key::person(person(1))).await.unwrap().is_some();
    let crop = backend.objects.head("persons/person1.jpg").await.unwrap().is_some();
    [row, crop, !backend.store.faces_of(&[person(1)]).await.unwrap().is_empty()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_person_without_photos_is_forgotten_despite_a_stale_index() {
    let folders = DataFolders::new();
    let photos = album(&[&[0], &[0], &[0], &[1]]);
    let (backend, indexes, pipeline) = with_stale_indexes(&folders, &photos).await;
    indexes.freeze_indexes().await;
    for photo in &photos[..3] {
        assert_eq!(is_enrolled(&backend).await, [true; 3]);
        delete(&pipeline, photo).await;
    }
    assert_eq!(is_enrolled(&backend).await, [false; 3]);
    assert_eq!(count(&read_log(&backend).await, "PersonsForgotten"), 1);
    assert_eq!(rebuilder(&backend).run(false, |_| ()).await.unwrap().total, 0);
}

/// The person's other photo is so new that no index shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crop_is_replaced_from_a_photo_that_no_index_shows_yet() {
    let folders = DataFolders::new();
    let photos = album(&[&[0], &[1]]);
    let (backend, indexes, pipeline) = with_stale_indexes(&folders, &photos).await;
    indexes.freeze_indexes().await;
    upload(&backend, &[photo(50, &[0])]).await;
    drain(&backend).await;
    delete(&pipeline, &photos[0]).await;
    assert_eq!(is_enrolled(&backend).await, [true; 3]);
    assert_eq!(count(&read_log(&backend).await, "PersonPictured"), 1, "a crop of the deleted photo stays");
}

/// A consolidator that applies a merge slowly must not leave rows that ignore a later unmerge, although no index shows them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slow_merge_does_not_replace_the_rows_of_a_later_unmerge() {
    let folders = DataFolders::new();
    let photos = album(&[&[0], &[1]]);
    let (backend, indexes, _) = with_stale_indexes(&folders, &photos).await;
    let objects = || Arc::clone(&backend.objects) as Arc<dyn Objects>;
    let first =
        consolidator_over(Arc::clone(&indexes) as Arc<dyn Maintenance>, objects(), Duration::ZERO).await.unwrap();
    let merged = first.merge(person(1), person(2), false).await.unwrap();
    indexes.freeze_indexes().await;
    let store = Arc::clone(&backend.store) as Arc<dyn Maintenance>;
    let other = consolidator_over(store, objects(), Duration::ZERO).await.unwrap();
    let plan = FaultPlan::interrupting_call_named("store.commit", async move {
        other.unmerge(merged.event).await.unwrap();
        other.apply_merges(|_| ()).await.unwrap();
    });
    let store = plan.wrap(Arc::clone(&indexes) as Arc<dyn Maintenance>);
    let slow = consolidator_over(store, objects(), Duration::ZERO).await.unwrap();
    slow.apply_merges(|_| ()).await.unwrap();
    assert!(plan.has_interruption_run());
    assert_eq!(persons_in(&backend, &photos[1]).await, [person(2)]);
    assert_eq!(rebuilder(&backend).run(false, |_| ()).await.unwrap().total, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_former_person_of_a_user_is_forgotten_despite_a_stale_index() {
    let folders = DataFolders::new();
    let photos = album(&[&[0], &[1]]);
    let (backend, indexes, pipeline) = with_stale_indexes(&folders, &photos).await;
    let ann = Key::user(&"ann@example.org".parse().unwrap());
    write_row(&backend, &ann, json!({ "entityType": "USER", "personId": "person1" })).await;
    indexes.freeze_indexes().await;
    write_row(&backend, &ann, json!({ "personId": "person2" })).await;
    delete(&pipeline, &photos[0]).await;
    assert_eq!(is_enrolled(&backend).await, [false; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_person_of_a_user_is_kept_before_an_index_shows_the_user() {
    let folders = DataFolders::new();
    let photos = album(&[&[0], &[1]]);
    let (backend, indexes, pipeline) = with_stale_indexes(&folders, &photos).await;
    let ann: Email = "ann@example.org".parse().unwrap();
    sign_up(&backend, &ann).await;
    indexes.freeze_indexes().await;
    upload_profile_picture(&backend, &ann, &photo(50, &[0])).await;
    drain(&backend).await;
    delete(&pipeline, &photos[0]).await;
    assert!(is_enrolled(&backend).await[0], "the person of a user was forgotten");
    assert_eq!(count(&read_log(&backend).await, "PersonsForgotten"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn photos_missing_in_an_index_are_updated_after_a_merge_later() {
    const LAG: Duration = Duration::from_millis(1500);
    let folders = DataFolders::new();
    let (backend, indexes, _) = with_stale_indexes(&folders, &album(&[&[0], &[1]])).await;
    indexes.freeze_indexes().await;
    let late = photo(9, &[1]);
    upload(&backend, std::slice::from_ref(&late)).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &late).await, [person(2)]);

    let plan = FaultPlan::without_faults();
    let store = plan.wrap(Arc::clone(&indexes) as Arc<dyn Maintenance>);
    let objects = Arc::clone(&backend.objects) as Arc<dyn Objects>;
    let consolidator = consolidator_over(store, objects, LAG).await.unwrap();
    let before = backend.store.checkpoint(Checkpoint::Followed).await.unwrap();
    consolidator.merge(person(1), person(2), false).await.unwrap();
    let followed = consolidator.apply_merges(|_| ()).await.unwrap();
    assert_eq!((followed.photos, followed.is_incomplete), (1, true), "photos updated by the first pass");
    assert_eq!(persons_in(&backend, &late).await, [person(2)]);
    let queries = || plan.calls().iter().filter(|call| *call == "store.query").count();
    let before_run = queries();
    assert!(consolidator.run(false).await.unwrap().has_more, "the consolidator must run again");
    assert_eq!(queries(), before_run, "queries before the index lag has passed");

    indexes.refresh_indexes();
    tokio::time::sleep(LAG).await;
    let followed = consolidator.apply_merges(|_| ()).await.unwrap();
    assert_eq!((followed.photos, followed.is_incomplete), (1, false), "photos updated by the second pass");
    assert_eq!(persons_in(&backend, &late).await, [person(1)]);
    assert_ne!(backend.store.checkpoint(Checkpoint::Followed).await.unwrap(), before);
    assert_eq!(rebuilder(&backend).run(false, |_| ()).await.unwrap().total, 0);
    let before_run = queries();
    assert!(!consolidator.run(false).await.unwrap().has_more);
    assert_eq!(queries(), before_run, "queries after all photos were updated");
}
