//! Photos that go: what goes with them, and what stays.

use serde_json::{Value, json};
use sparks_domain::{Key, Outcome as State};
use sparks_embedded::{Embedded, FileObjects, Submission};
use sparks_engine::{DeadLetters, DeleteRef, Objects, Outcome, PhotoRef, Pipeline, Request, Store, Turnstile};
use sparks_tests::{
    album::{Photo, album, photo},
    faults::Fuse,
    platform::{allow, allowed, deletion, original, removal, send},
    samples::{person, uploader},
    snapshot::{Snapshot, count, read_log},
    worker::{Worker, drain, image_of, open, persons_in, pipeline, rebuilder, upload},
};

use super::embedded::Folders;

async fn album_in(folders: &Folders, casts: &[&[usize]]) -> (std::path::PathBuf, Embedded, Vec<Photo>) {
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(casts));
    allow(&backend, 100).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    (folder, backend, photos)
}

async fn delete(backend: &Embedded, photo: &Photo) {
    send(backend, deletion(photo)).await;
    drain(backend).await;
}

async fn handle(pipeline: &Pipeline, request: Request) -> Outcome {
    pipeline.handle(request, &Turnstile::default().ticket()).await.unwrap()
}

async fn pipeline_over(backend: &Embedded) -> Pipeline {
    pipeline(std::sync::Arc::clone(&backend.store) as _, std::sync::Arc::clone(&backend.objects) as _).await.unwrap()
}

async fn row(backend: &Embedded, key: &Key) -> Option<Value> {
    backend.store.get(key).await.unwrap().map(|item| Value::Object(item.attributes))
}

fn traces(snapshot: &Snapshot, of: &str) -> Vec<String> {
    let all = snapshot.rows.iter().chain(snapshot.objects.keys()).chain(&snapshot.faces);
    all.filter(|name| name.contains(of)).cloned().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deleted_photo_leaves_nothing_but_its_event() {
    let folders = Folders::new();
    let (folder, backend, photos) = album_in(&folders, &[&[0, 1], &[0]]).await;
    let image = image_of(&photos[0]);
    let thumbnail = format!("thumbnails/{image}.jpg");
    let content = sparks_engine::Content::picture("image/jpeg");
    backend.objects.put(&thumbnail, vec![1], content, sparks_engine::PutMode::Replace).await.unwrap();
    let key = Key::image(&image, &uploader());
    sparks_tests::platform::write(&backend, &key, json!({ "thumbnailFileName": thumbnail })).await;
    delete(&backend, &photos[0]).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!(traces(&after, image.as_str()), [""; 0]);
    assert_eq!((after.dead.len(), after.drift.len()), (0, 0), "{after:#?}");
    assert_eq!(allowed(&backend).await, 101);
    assert_eq!(row(&backend, &Key::person(person(2))).await, None, "in no photo any more");
    assert_eq!(traces(&after, "person2.jpg"), [""; 0]);
    assert_eq!(persons_in(&backend, &photos[1]).await, [person(1)]);
    assert!(after.objects.contains_key("persons/person1.jpg"));
    let log = read_log(&backend).await;
    assert_eq!(["PhotoDeleted", "PersonsForgotten", "PersonPictured"].map(|name| count(&log, name)), [1, 1, 1]);

    // Repeating any of it is harmless.
    delete(&backend, &photos[0]).await;
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&after), None);
    assert_eq!(allowed(&backend).await, 101);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn only_the_owner_deletes_and_nobody_else() {
    let folders = Folders::new();
    let (folder, backend, photos) = album_in(&folders, &[&[0]]).await;
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
async fn a_deleted_photo_is_not_taken_in_again_but_a_later_one_is() {
    let folders = Folders::new();
    let (folder, backend, photos) = album_in(&folders, &[&[0], &[1]]).await;
    let pipeline = pipeline_over(&backend).await;
    let image = image_of(&photos[0]);
    let message = |version: &[u8]| PhotoRef {
        image: image.clone(),
        key: original(&photos[0]),
        version: Some(FileObjects::version(version)),
        sequencer: None,
        file_name: None,
        finished: None,
    };
    delete(&backend, &photos[0]).await;
    let gone = Snapshot::take(&folder, &backend).await;
    for late in [message(&photos[0].jpeg), PhotoRef { version: None, ..message(&[]) }] {
        let outcome = handle(&pipeline, Request::Photo(late.clone())).await;
        assert!(matches!(outcome, Outcome::Deleted), "{outcome:?} for {late:?}");
    }
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&gone), None);

    // The same name with other content, uploaded as the platform does.
    let later = Photo { number: photos[0].number, ..photo(77, &[2, 1]) };
    upload(&backend, std::slice::from_ref(&later)).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &later).await, [person(2), person(3)], "person1 is gone, and so is their number");
    let state = backend.store.photo(&image).await.unwrap().unwrap();
    assert_eq!((state.outcome, state.faces), (State::Processed, 3), "faces are numbered on");
    assert_eq!(rebuilder(&backend).run(false, |_| ()).await.unwrap().total, 0);
    delete(&backend, &later).await;
    assert_eq!(traces(&Snapshot::take(&folder, &backend).await, image.as_str()), [""; 0]);
    assert_eq!(allowed(&backend).await, 102);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_that_was_never_taken_in_may_be_deleted() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0]]));
    allow(&backend, 5).await;
    let pipeline = pipeline_over(&backend).await;
    upload(&backend, &photos).await;
    let outcome =
        handle(&pipeline, Request::Delete(DeleteRef { image: image_of(&photos[0]), uploader: uploader() })).await;
    assert!(matches!(outcome, Outcome::Deleted), "{outcome:?}");
    drain(&backend).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!((traces(&after, image_of(&photos[0]).as_str()), after.dead.len()), (vec![], 0), "{after:#?}");
    assert_eq!(count(&read_log(&backend).await, "PhotoProcessed"), 0, "the message that came late found it deleted");
    assert_eq!(allowed(&backend).await, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_a_limit_there_is_nothing_to_give_back() {
    let folders = Folders::new();
    let (backend, photos) = (open(&folders.fresh()), album(&[&[0]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    delete(&backend, &photos[0]).await;
    assert_eq!(row(&backend, &Key::limit(&uploader())).await, None);
    assert_eq!(backend.queue.list(None, 10).await.unwrap(), []);
    assert_eq!(count(&read_log(&backend).await, "PhotoDeleted"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_original_that_is_back_was_not_removed() {
    let folders = Folders::new();
    let (folder, backend, photos) = album_in(&folders, &[&[0]]).await;
    let before = Snapshot::take(&folder, &backend).await;
    send(&backend, removal(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&before), None, "an earlier version was removed");

    backend.objects.delete(&original(&photos[0])).await.unwrap();
    send(&backend, removal(&photos[0])).await;
    drain(&backend).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!(after.objects.len(), 0, "{:?}", after.objects);
    assert!(
        row(&backend, &Key::image(&image_of(&photos[0]), &uploader())).await.is_some(),
        "the row is the platform's"
    );
    assert_eq!(row(&backend, &Key::tagging(&image_of(&photos[0]), person(1))).await, None);
    assert_eq!((allowed(&backend).await, after.drift.len()), (100.into(), 0));
    // The platform goes on by deleting the row through us, or by itself: either way there is one credit at most.
    send(&backend, deletion(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(allowed(&backend).await, 101);
}

/// What is told, is told of everything that the log says.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn others_are_told_of_photos_that_go_and_of_persons_with_them() {
    let folders = Folders::new();
    let (_, backend, photos) = album_in(&folders, &[&[0], &[0, 1]]).await;
    for photo in &photos {
        send(&backend, deletion(photo)).await;
    }
    let worker = Worker::start(&backend, &Fuse::counting()).await.unwrap();
    worker.drain(&backend).await.unwrap();
    let mut told = worker.notices.types(sparks_engine::Topic::Events);
    told.sort_unstable();
    let expected = ["PersonPictured", "PersonsForgotten", "PersonsForgotten", "PhotoDeleted", "PhotoDeleted"];
    assert_eq!(told, expected);
    assert!(worker.notices.types(sparks_engine::Topic::ThumbnailCompleted).is_empty());
    let deleted = worker.notices.all().into_iter().find(|notice| notice.event_type == "PhotoDeleted").unwrap();
    assert_eq!(deleted.body["data"]["image_id"], json!(image_of(&photos[0])));
}

/// Uploading a file again that was deleted makes nothing of it: the platform gives every upload a name of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_bytes_under_the_name_of_a_deleted_photo_stay_deleted() {
    let folders = Folders::new();
    let (_, backend, photos) = album_in(&folders, &[&[0]]).await;
    delete(&backend, &photos[0]).await;
    let again = sparks_engine::Upload {
        bucket: sparks_tests::worker::BUCKET.into(),
        key: original(&photos[0]),
        image: image_of(&photos[0]),
        uploader: uploader(),
        version: FileObjects::version(&photos[0].jpeg),
        bytes: photos[0].jpeg.len() as u64,
        file_name: "again.jpg".into(),
        when: sparks_tests::samples::time(0),
    };
    let content = sparks_engine::Content::picture("image/jpeg");
    backend.objects.put(&again.key, photos[0].jpeg.clone(), content, sparks_engine::PutMode::Replace).await.unwrap();
    assert!(matches!(backend.intake.submit(again).await.unwrap(), Submission::Queued(_)));
    drain(&backend).await;
    assert_eq!(count(&read_log(&backend).await, "PhotoProcessed"), 1, "the first time");
    assert_eq!(backend.queue.list(None, 10).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_original_that_goes_leaves_a_photo_whose_other_original_stays() {
    let folders = Folders::new();
    let (folder, backend, photos) = album_in(&folders, &[&[0]]).await;
    let before = Snapshot::take(&folder, &backend).await;
    let mut message = removal(&photos[0]);
    message["Records"][0]["s3"]["object"]["key"] = json!(original(&photos[0]).replace(".jpg", ".png"));
    send(&backend, message).await;
    drain(&backend).await;
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&before), None);
}

/// Others write the row, and the message that pictures are made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_deletes_with_their_photo_what_is_anothers() {
    let folders = Folders::new();
    let (folder, backend, photos) = album_in(&folders, &[&[0], &[1]]).await;
    let (mine, theirs) = (image_of(&photos[0]), image_of(&photos[1]));
    let row = json!({
        "s3Key": original(&photos[1]),
        "thumbnailFileName": "persons/person2.jpg",
        "images": { "large": format!("processed/{theirs}_large.webp"), "medium": format!("{theirs}_thumb.jpg") },
    });
    let thumbnail = format!("{theirs}_thumb.jpg");
    let content = sparks_engine::Content::picture("image/jpeg");
    backend.objects.put(&thumbnail, vec![1], content, sparks_engine::PutMode::Replace).await.unwrap();
    sparks_tests::platform::write(&backend, &Key::image(&mine, &uploader()), row).await;
    delete(&backend, &photos[0]).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!(traces(&after, mine.as_str()), [""; 0], "all that is the photo's own goes");
    let pictures = ["large", "medium"].map(|size| format!("processed/{theirs}_{size}.webp"));
    for key in pictures.into_iter().chain([original(&photos[1]), "persons/person2.jpg".into(), thumbnail]) {
        assert!(after.objects.contains_key(&key), "{key} is gone");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_name_that_no_object_can_have_keeps_nothing_from_going() {
    let folders = Folders::new();
    let (folder, backend, photos) = album_in(&folders, &[&[0]]).await;
    let row = json!({ "thumbnailFileName": "t".repeat(300) });
    sparks_tests::platform::write(&backend, &Key::image(&image_of(&photos[0]), &uploader()), row).await;
    delete(&backend, &photos[0]).await;
    let after = Snapshot::take(&folder, &backend).await;
    assert_eq!((after.dead.len(), traces(&after, "person1")), (0, vec![]), "{after:#?}");
}
