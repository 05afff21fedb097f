//! Profile pictures: which person a user is.

use serde_json::{Value, json};
use sparks_domain::{Email, ImageId, Key};
use sparks_embedded::Embedded;
use sparks_engine::{DeadLetters, Objects, Queue, Store};
use sparks_tests::{
    album::{album, photo, photo_between},
    fault_injection::FaultPlan,
    platform_actions::{deletion_message, send, sign_up, upload_profile_picture, write_row},
    samples::person,
    snapshot::{count, read_log},
    worker::{BUCKET, consolidator, drain, open, persons_in, rebuilder, upload},
};

use super::data_folders::DataFolders;

fn ann() -> Email {
    "ann@example.org".parse().unwrap()
}

async fn user(backend: &Embedded, email: &Email) -> Value {
    Value::Object(backend.store.get(&Key::user(email)).await.unwrap().unwrap().attributes)
}

async fn assert_no_drift(backend: &Embedded) {
    let drift = rebuilder(backend).run(false, |_| ()).await.unwrap();
    assert_eq!(drift.total, 0, "{:#?}", drift.differences);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_profile_picture_sets_the_person_of_its_user() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    upload(&backend, &album(&[&[0]])).await;
    drain(&backend).await;
    upload_profile_picture(&backend, &ann(), &photo(10, &[0])).await;
    drain(&backend).await;
    let row = user(&backend, &ann()).await;
    assert_eq!((&row["personId"], &row["karma"], row["updatedAt"].is_string()), (&json!("person1"), &json!(7), true));

    // A profile picture of an unknown identity allocates a person without tags.
    upload_profile_picture(&backend, &ann(), &photo(11, &[1])).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person2");
    assert!(backend.objects.head("persons/person2.jpg").await.unwrap().is_some());
    let tagged = [photo(12, &[1])];
    upload(&backend, &tagged).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &tagged[0]).await, [person(2)]);

    // Profile pictures without a face, or with an ambiguous one, keep the person.
    for unclear in [photo(13, &[]), photo_between(14, 0, 1)] {
        upload_profile_picture(&backend, &ann(), &unclear).await;
        drain(&backend).await;
        assert_eq!(user(&backend, &ann()).await["personId"], "person2");
        assert_no_drift(&backend).await;
    }
    assert_eq!(count(&read_log(&backend).await, "ProfileProcessed"), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_first_of_equally_large_faces_is_the_user() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    upload(&backend, &album(&[&[0], &[1], &[2]])).await;
    drain(&backend).await;
    upload_profile_picture(&backend, &ann(), &photo(10, &[2, 0, 1])).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person3");
    assert_eq!(backend.store.identity(sparks_domain::Seq(0)).await.unwrap().counter, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_profile_picture_waits_for_the_row_of_its_user() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    upload_profile_picture(&backend, &ann(), &photo(10, &[0])).await;
    let late = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(backend.queue.depth().await.unwrap().delayed, 1, "number of delayed messages");
        sign_up(&backend, &ann()).await;
    };
    tokio::join!(late, drain(&backend));
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_eq!(backend.queue.list(None, 10).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rejected_profile_picture_keeps_the_earlier_person() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    upload_profile_picture(&backend, &ann(), &photo(10, &[0])).await;
    drain(&backend).await;
    let broken = sparks_tests::album::Photo { jpeg: b"not an image".to_vec(), ..photo(11, &[1]) };
    upload_profile_picture(&backend, &ann(), &broken).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_eq!(count(&read_log(&backend).await, "PhotoRejected"), 1);
    // A rebuild restores the person of the earlier profile picture.
    write_row(&backend, &Key::user(&ann()), json!({ "personId": "person7" })).await;
    rebuilder(&backend).run(true, |_| ()).await.unwrap();
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_no_drift(&backend).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivered_profile_picture_names_the_surviving_person() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    upload(&backend, &album(&[&[1], &[0]])).await;
    drain(&backend).await;
    let profile = photo(10, &[0]);
    upload_profile_picture(&backend, &ann(), &profile).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person2");
    let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
    let merged = consolidator.merge(person(1), person(2), false).await.unwrap();
    consolidator.apply_merges(|_| ()).await.unwrap();
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    upload_profile_picture(&backend, &ann(), &profile).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_eq!(count(&read_log(&backend).await, "ProfileProcessed"), 1, "events for the same profile picture");
    assert_no_drift(&backend).await;

    // A profile picture processed while the persons are merged keeps person1 after the unmerge.
    upload_profile_picture(&backend, &ann(), &photo(11, &[1])).await;
    drain(&backend).await;
    consolidator.unmerge(merged.event).await.unwrap();
    consolidator.apply_merges(|_| ()).await.unwrap();
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_no_drift(&backend).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_user_is_not_forgotten_with_the_last_photo() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    let photos = album(&[&[0]]);
    upload(&backend, &photos).await;
    upload_profile_picture(&backend, &ann(), &photo(10, &[0])).await;
    drain(&backend).await;
    send(&backend, deletion_message(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(count(&read_log(&backend).await, "PersonsForgotten"), 0);
    assert!(backend.store.get(&Key::person(person(1))).await.unwrap().is_some());
    let next = [photo(11, &[0])];
    upload(&backend, &next).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &next[0]).await, [person(1)], "identified by the template of the profile picture");
    assert_no_drift(&backend).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_s3_event_for_a_profile_key_is_a_profile_picture() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    for (number, folder) in [(10, "profiles"), (11, "profile-pictures")] {
        let profile = photo(number, &[0]);
        let key = format!("{folder}/{}/{number}.jpg", ann());
        let content = sparks_engine::Content::image("image/jpeg");
        backend.objects.put(&key, profile.jpeg, content, sparks_engine::PutMode::Replace).await.unwrap();
        let object = json!({ "key": key.replace('@', "%40"), "sequencer": "00A" });
        let s3 = json!({ "bucket": { "name": BUCKET }, "object": object });
        send(&backend, json!({ "Records": [{ "eventName": "ObjectCreated:Put", "s3": s3 }] })).await;
        drain(&backend).await;
        assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    }
    assert_eq!(count(&read_log(&backend).await, "ProfileProcessed"), 2);
}

/// A profile picture has an image ID that is derived from the user's address and can be computed by anyone who knows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_profile_picture_cannot_be_deleted_as_a_photo() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    upload_profile_picture(&backend, &ann(), &photo(10, &[0])).await;
    drain(&backend).await;
    let name = ImageId::of_profile(&ann());
    let before = backend.store.photo(&name).await.unwrap();
    send(&backend, json!({ "action": "delete", "imageId": name, "uploadedBy": "eve@example.org" })).await;
    drain(&backend).await;
    assert_eq!(backend.store.photo(&name).await.unwrap(), before);
    assert_eq!(count(&read_log(&backend).await, "PhotoDeleted"), 0);
    assert_eq!(backend.store.faces_of(&[person(1)]).await.unwrap().len(), 1, "the face of the profile picture");
}
