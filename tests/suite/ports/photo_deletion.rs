//! Deleting photos: what is removed, what stays, and what is published.

use std::time::Duration;

use serde_json::{Value, json};
use sparks_domain::{Key, PhotoStatus};
use sparks_embedded::{Embedded, FileObjects};
use sparks_engine::{
    ArrivalOrder, Clock, DeadLetters, DeleteRef, Objects, Outcome, PhotoRef, Pipeline, Request, Store, SystemClock,
};
use sparks_tests::{
    album::{Photo, album, photo},
    fault_injection::{Fault, FaultKind, FaultPlan, FaultTiming},
    platform_actions::{
        deletion_message, original_key, removal_message, send, set_upload_limit, upload_again, upload_limit,
    },
    samples::{person, uploader},
    snapshot::{Snapshot, count, read_log},
    worker::{Worker, drain, image_of, open, persons_in, pipeline, rebuilder, upload},
};

use super::data_folders::DataFolders;

async fn processed_album(folders: &DataFolders, identities: &[&[usize]]) -> (std::path::PathBuf, Embedded, Vec<Photo>) {
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(identities));
    set_upload_limit(&backend, 100).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    (folder, backend, photos)
}

async fn delete(backend: &Embedded, photo: &Photo) {
    send(backend, deletion_message(photo)).await;
    drain(backend).await;
}

async fn handle(pipeline: &Pipeline, request: Request) -> Outcome {
    pipeline.handle(request, &ArrivalOrder::default().slot(SystemClock.now())).await.unwrap()
}

async fn pipeline_over(backend: &Embedded) -> Pipeline {
    pipeline(std::sync::Arc::clone(&backend.store) as _, std::sync::Arc::clone(&backend.objects) as _).await.unwrap()
}

async fn row(backend: &Embedded, key: &Key) -> Option<Value> {
    backend.store.get(key).await.unwrap().map(|item| Value::Object(item.attributes))
}

fn find_traces(snapshot: &Snapshot, name: &str) -> Vec<String> {
    let all = snapshot.rows.iter().chain(snapshot.objects.keys()).chain(&snapshot.faces);
    all.filter(|text| text.contains(name)).cloned().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deleted_photo_leaves_nothing_but_its_event() {
    let folders = DataFolders::new();
    let (folder, backend, photos) = processed_album(&folders, &[&[0, 1], &[0]]).await;
    let image = image_of(&photos[0]);
    let thumbnail = format!("thumbnails/{image}.jpg");
    let content = sparks_engine::Content::image("image/jpeg");
    backend.objects.put(&thumbnail, vec![1], content, sparks_engine::PutMode::Replace).await.unwrap();
    let key = Key::image(&image, &uploader());
    sparks_tests::platform_actions::write_row(&backend, &key, json!({ "thumbnailFileName": thumbnail })).await;
    delete(&backend, &photos[0]).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!(find_traces(&after, image.as_str()), [""; 0]);
    assert_eq!((after.dead.len(), after.drift.len()), (0, 0), "{after:#?}");
    assert_eq!(upload_limit(&backend).await, 101);
    assert_eq!(row(&backend, &Key::person(person(2))).await, None, "the row of a person without photos");
    assert_eq!(find_traces(&after, "person2.jpg"), [""; 0]);
    assert_eq!(persons_in(&backend, &photos[1]).await, [person(1)]);
    assert!(after.objects.contains_key("persons/person1.jpg"));
    let log = read_log(&backend).await;
    assert_eq!(["PhotoDeleted", "PersonsForgotten", "PersonPictured"].map(|name| count(&log, name)), [1, 1, 1]);

    // A repeated deletion changes nothing.
    delete(&backend, &photos[0]).await;
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&after), None);
    assert_eq!(upload_limit(&backend).await, 101);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_by_another_user_is_dead_lettered() {
    let folders = DataFolders::new();
    let (folder, backend, photos) = processed_album(&folders, &[&[0]]).await;
    let before = Snapshot::take(&folder, &backend).await;
    let message = json!({ "action": "delete", "imageId": image_of(&photos[0]), "uploadedBy": "eve@example.org" });
    send(&backend, message).await;
    drain(&backend).await;
    let letters = backend.queue.list(None, 10).await.unwrap();
    assert_eq!(letters.iter().map(|letter| letter.cause.as_str()).collect::<Vec<_>>(), ["not-theirs"]);
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!((after.rows, after.objects, after.log), (before.rows, before.objects, before.log));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deleted_photo_is_processed_again_only_with_new_content() {
    let folders = DataFolders::new();
    let (folder, backend, photos) = processed_album(&folders, &[&[0], &[1]]).await;
    let pipeline = pipeline_over(&backend).await;
    let image = image_of(&photos[0]);
    let message = |version: &[u8]| PhotoRef {
        image: image.clone(),
        key: original_key(&photos[0]),
        version: Some(FileObjects::version(version)),
        sequencer: None,
        file_name: None,
        finished: None,
    };
    delete(&backend, &photos[0]).await;
    let deleted = Snapshot::take(&folder, &backend).await;
    for late in [message(&photos[0].jpeg), PhotoRef { version: None, ..message(&[]) }] {
        let outcome = handle(&pipeline, Request::Photo(late.clone())).await;
        assert!(matches!(outcome, Outcome::Deleted), "{outcome:?} for {late:?}");
    }
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&deleted), None);

    // The same image ID with other content, uploaded as the platform does.
    let later = Photo { number: photos[0].number, ..photo(77, &[2, 1]) };
    upload(&backend, std::slice::from_ref(&later)).await;
    drain(&backend).await;
    assert_eq!(
        persons_in(&backend, &later).await,
        [person(2), person(3)],
        "person1 is forgotten, and the number is not reused"
    );
    let state = backend.store.photo(&image).await.unwrap().unwrap();
    assert_eq!((state.status, state.faces), (PhotoStatus::Processed, 3), "face numbers continue");
    assert_eq!(rebuilder(&backend).run(false, |_| ()).await.unwrap().total, 0);
    delete(&backend, &later).await;
    assert_eq!(find_traces(&Snapshot::take(&folder, &backend).await, image.as_str()), [""; 0]);
    assert_eq!(upload_limit(&backend).await, 102);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_unprocessed_photo_can_be_deleted() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0]]));
    set_upload_limit(&backend, 5).await;
    let pipeline = pipeline_over(&backend).await;
    upload(&backend, &photos).await;
    let outcome =
        handle(&pipeline, Request::Delete(DeleteRef { image: image_of(&photos[0]), uploader: uploader() })).await;
    assert!(matches!(outcome, Outcome::Deleted), "{outcome:?}");
    drain(&backend).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!((find_traces(&after, image_of(&photos[0]).as_str()), after.dead.len()), (vec![], 0), "{after:#?}");
    assert_eq!(count(&read_log(&backend).await, "PhotoProcessed"), 0, "the late upload message was not skipped");
    assert_eq!(upload_limit(&backend).await, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_without_a_limit_row_creates_none() {
    let folders = DataFolders::new();
    let (backend, photos) = (open(&folders.fresh()), album(&[&[0]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    delete(&backend, &photos[0]).await;
    assert_eq!(row(&backend, &Key::limit(&uploader())).await, None);
    assert_eq!(backend.queue.list(None, 10).await.unwrap(), []);
    assert_eq!(count(&read_log(&backend).await, "PhotoDeleted"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_removal_event_for_an_existing_original_is_ignored() {
    let folders = DataFolders::new();
    let (folder, backend, photos) = processed_album(&folders, &[&[0]]).await;
    let before = Snapshot::take(&folder, &backend).await;
    send(&backend, removal_message(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(
        Snapshot::take(&folder, &backend).await.difference(&before),
        None,
        "a removal event for an earlier version changed the folder"
    );

    backend.objects.delete(&original_key(&photos[0])).await.unwrap();
    send(&backend, removal_message(&photos[0])).await;
    drain(&backend).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!(after.objects.len(), 0, "{:?}", after.objects);
    assert!(
        row(&backend, &Key::image(&image_of(&photos[0]), &uploader())).await.is_some(),
        "the IMAGE row, which belongs to the platform, was deleted"
    );
    assert_eq!(row(&backend, &Key::tagging(&image_of(&photos[0]), person(1))).await, None);
    assert_eq!((upload_limit(&backend).await, after.drift.len()), (100.into(), 0));
    // A later deletion message for the row credits the upload limit once.
    send(&backend, deletion_message(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(upload_limit(&backend).await, 101);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deletions_publish_the_events_of_photos_and_persons() {
    let folders = DataFolders::new();
    let (_, backend, photos) = processed_album(&folders, &[&[0], &[0, 1]]).await;
    for photo in &photos {
        send(&backend, deletion_message(photo)).await;
    }
    let worker = Worker::start(&backend, &FaultPlan::without_faults()).await.unwrap();
    worker.drain(&backend).await.unwrap();
    let mut published = worker.publisher.event_types(sparks_engine::Topic::Events);
    published.sort_unstable();
    let expected = ["PersonPictured", "PersonsForgotten", "PersonsForgotten", "PhotoDeleted", "PhotoDeleted"];
    assert_eq!(published, expected);
    assert!(worker.publisher.event_types(sparks_engine::Topic::ThumbnailCompleted).is_empty());
    let deleted = worker
        .publisher
        .notifications()
        .into_iter()
        .find(|notification| notification.event_type == "PhotoDeleted")
        .unwrap();
    assert_eq!(deleted.body["data"]["image_id"], json!(image_of(&photos[0])));
}

/// Uploads a photo under the image ID of a deleted one, and expects it to be processed.
async fn upload_deleted(backend: &Embedded, photo: &Photo) {
    upload(backend, std::slice::from_ref(photo)).await;
    expect_second_upload(backend, photo).await;
}

async fn expect_second_upload(backend: &Embedded, photo: &Photo) {
    drain(backend).await;
    assert_eq!(persons_in(backend, photo).await.len(), photo.identities.len(), "persons of the second upload");
    assert!(backend.objects.head(&original_key(photo)).await.unwrap().is_some());
    assert_eq!(count(&read_log(backend).await, "PhotoProcessed"), 2);
    assert_eq!(backend.queue.list(None, 10).await.unwrap(), []);
    assert_eq!(rebuilder(backend).run(false, |_| ()).await.unwrap().total, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_bytes_under_a_deleted_image_id_are_processed() {
    let folders = DataFolders::new();
    let (_, backend, photos) = processed_album(&folders, &[&[0]]).await;
    delete(&backend, &photos[0]).await;
    // Without a sequencer, and with the version of the deleted object.
    let row = json!({ "entityType": "IMAGE" });
    sparks_tests::platform_actions::write_row(&backend, &Key::image(&image_of(&photos[0]), &uploader()), row).await;
    upload_again(&backend, &photos[0]).await;
    expect_second_upload(&backend, &photos[0]).await;
}

/// Sequencers come from messages, and anything may be in a message.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_high_sequencer_in_a_removal_does_not_refuse_later_uploads() {
    let folders = DataFolders::new();
    let (_, backend, photos) = processed_album(&folders, &[&[0]]).await;
    backend.objects.delete(&original_key(&photos[0])).await.unwrap();
    send(&backend, removal_message(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(count(&read_log(&backend).await, "PhotoDeleted"), 1);
    upload_deleted(&backend, &photos[0]).await;
}

/// A worker died before it acknowledged the deletion, and the photo was uploaded again before the message was delivered again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivered_deletion_keeps_a_later_upload() {
    for identities in [&[0][..], &[1]] {
        let folders = DataFolders::new();
        let (folder, backend, photos) = processed_album(&folders, &[&[0]]).await;
        send(&backend, deletion_message(&photos[0])).await;
        let call = {
            let copy = open(&super::data_folders::copy_folder(&folder, &folders.fresh()));
            let plan = FaultPlan::without_faults();
            Worker::start(&copy, &plan).await.unwrap().drain(&copy).await.unwrap();
            1 + plan.calls().iter().position(|call| call == "queue.settle acknowledge").unwrap()
        };
        let plan = FaultPlan::at(Fault { call, timing: FaultTiming::BeforeCall, kind: FaultKind::Crash });
        assert!(Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.is_err());
        drop(backend);
        let backend = open(&folder);
        assert_eq!(count(&read_log(&backend).await, "PhotoDeleted"), 1);
        upload_deleted(&backend, &Photo { number: photos[0].number, ..photo(77, identities) }).await;
        assert_eq!(count(&read_log(&backend).await, "PhotoDeleted"), 1, "deletions");
        assert_eq!(upload_limit(&backend).await, 101, "one credit");
    }
}

/// S3 has the times of objects in whole seconds, so an upload right after a deletion may look as if it was before the request. The event
/// tells which version the request met.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivered_deletion_keeps_an_upload_in_the_same_second() {
    let folders = DataFolders::new();
    let (folder, backend, photos) = processed_album(&folders, &[&[0]]).await;
    let pipeline = pipeline_over(&backend).await;
    let slot = ArrivalOrder::default().slot(SystemClock.now());
    let request = || Request::Delete(DeleteRef { image: image_of(&photos[0]), uploader: uploader() });
    assert!(matches!(pipeline.handle(request(), &slot).await.unwrap(), Outcome::Deleted));
    let again = Photo { number: photos[0].number, ..photo(77, &[1]) };
    upload(&backend, std::slice::from_ref(&again)).await;
    let original = std::fs::File::open(folder.join("objects").join(original_key(&again))).unwrap();
    let second = Duration::from_millis((slot.sent.as_millis() - 300).try_into().unwrap());
    original.set_modified(std::time::UNIX_EPOCH + second).unwrap();
    let outcome = pipeline.handle(request(), &slot).await.unwrap();
    assert!(matches!(outcome, Outcome::Ignored(_)), "{outcome:?}");
    drain(&backend).await;
    assert_eq!(count(&read_log(&backend).await, "PhotoProcessed"), 2);
    assert!(backend.objects.head(&original_key(&again)).await.unwrap().is_some(), "the original of the later upload");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn removing_another_original_of_a_photo_changes_nothing() {
    let folders = DataFolders::new();
    let (folder, backend, photos) = processed_album(&folders, &[&[0]]).await;
    let before = Snapshot::take(&folder, &backend).await;
    let mut message = removal_message(&photos[0]);
    message["Records"][0]["s3"]["object"]["key"] = json!(original_key(&photos[0]).replace(".jpg", ".png"));
    send(&backend, message).await;
    drain(&backend).await;
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&before), None);
}

/// The keys in the row, which other programs write, point to objects of another photo.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_removes_no_objects_of_another_photo() {
    let folders = DataFolders::new();
    let (folder, backend, photos) = processed_album(&folders, &[&[0], &[1]]).await;
    let (own, other) = (image_of(&photos[0]), image_of(&photos[1]));
    let row = json!({
        "s3Key": original_key(&photos[1]),
        "thumbnailFileName": "persons/person2.jpg",
        "images": { "large": format!("processed/{other}_large.webp"), "medium": format!("{other}_thumb.jpg") },
    });
    let thumbnail = format!("{other}_thumb.jpg");
    let content = sparks_engine::Content::image("image/jpeg");
    backend.objects.put(&thumbnail, vec![1], content, sparks_engine::PutMode::Replace).await.unwrap();
    sparks_tests::platform_actions::write_row(&backend, &Key::image(&own, &uploader()), row).await;
    delete(&backend, &photos[0]).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!(find_traces(&after, own.as_str()), [""; 0], "remaining rows, objects or faces of the photo");
    let variants = ["large", "medium"].map(|size| format!("processed/{other}_{size}.webp"));
    for key in variants.into_iter().chain([original_key(&photos[1]), "persons/person2.jpg".into(), thumbnail]) {
        assert!(after.objects.contains_key(&key), "{key} was deleted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_invalid_object_key_in_the_row_does_not_stop_a_deletion() {
    let folders = DataFolders::new();
    let (folder, backend, photos) = processed_album(&folders, &[&[0]]).await;
    let row = json!({ "thumbnailFileName": "t".repeat(300) });
    sparks_tests::platform_actions::write_row(&backend, &Key::image(&image_of(&photos[0]), &uploader()), row).await;
    delete(&backend, &photos[0]).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!((after.dead.len(), find_traces(&after, "person1")), (0, vec![]), "{after:#?}");
}
