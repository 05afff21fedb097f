//! Users' pictures of themselves: who is the user?

use serde_json::{Value, json};
use sparks_domain::{Email, ImageId, Key};
use sparks_embedded::Embedded;
use sparks_engine::{DeadLetters, Objects, Queue, Store};
use sparks_tests::{
    album::{album, photo, photo_between},
    platform::{deletion, send, show_oneself, sign_up, write},
    samples::person,
    snapshot::{count, read_log},
    worker::{BUCKET, drain, open, persons_in, rebuilder, register, upload},
};

use super::embedded::Folders;

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
async fn a_user_is_who_their_picture_shows() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    upload(&backend, &album(&[&[0]])).await;
    drain(&backend).await;
    show_oneself(&backend, &ann(), &photo(10, &[0])).await;
    drain(&backend).await;
    let row = user(&backend, &ann()).await;
    assert_eq!((&row["personId"], &row["karma"], row["updatedAt"].is_string()), (&json!("person1"), &json!(7), true));

    // Another picture, of somebody whom nobody knows: they are known from then on, and tagged nowhere.
    show_oneself(&backend, &ann(), &photo(11, &[1])).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person2");
    assert!(backend.objects.head("persons/person2.jpg").await.unwrap().is_some());
    let tagged = [photo(12, &[1])];
    upload(&backend, &tagged).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &tagged[0]).await, [person(2)]);

    // Pictures that tell nobody leave who they were.
    for unclear in [photo(13, &[]), photo_between(14, 0, 1)] {
        show_oneself(&backend, &ann(), &unclear).await;
        drain(&backend).await;
        assert_eq!(user(&backend, &ann()).await["personId"], "person2");
        assert_no_drift(&backend).await;
    }
    assert_eq!(count(&read_log(&backend).await, "ProfileProcessed"), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_largest_face_is_the_user() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    upload(&backend, &album(&[&[0], &[1], &[2]])).await;
    drain(&backend).await;
    // All as large as each other: the first of equals.
    show_oneself(&backend, &ann(), &photo(10, &[2, 0, 1])).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person3");
    assert_eq!(backend.store.identity(sparks_domain::Seq(0)).await.unwrap().counter, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_picture_waits_for_its_user_and_for_itself() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    show_oneself(&backend, &ann(), &photo(10, &[0])).await;
    let late = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(backend.queue.depth().await.unwrap().delayed, 1, "it waits");
        sign_up(&backend, &ann()).await;
    };
    tokio::join!(late, drain(&backend));
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_eq!(backend.queue.list(None, 10).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_picture_that_is_no_picture_is_rejected_and_the_one_before_stays() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    show_oneself(&backend, &ann(), &photo(10, &[0])).await;
    drain(&backend).await;
    let broken = sparks_tests::album::Photo { jpeg: b"no picture".to_vec(), ..photo(11, &[1]) };
    show_oneself(&backend, &ann(), &broken).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_eq!(count(&read_log(&backend).await, "PhotoRejected"), 1);
    // What the picture before said comes back from the log.
    write(&backend, &Key::user(&ann()), json!({ "personId": "person7" })).await;
    rebuilder(&backend).run(true, |_| ()).await.unwrap();
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_no_drift(&backend).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_that_comes_again_says_who_they_are_by_now() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    upload(&backend, &album(&[&[1], &[0]])).await;
    drain(&backend).await;
    let me = photo(10, &[0]);
    show_oneself(&backend, &ann(), &me).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person2");
    let register = register(&backend, &sparks_tests::faults::Fuse::counting()).await.unwrap();
    let merged = register.join(person(1), person(2), false).await.unwrap();
    register.follow(|_| ()).await.unwrap();
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    show_oneself(&backend, &ann(), &me).await;
    drain(&backend).await;
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_eq!(count(&read_log(&backend).await, "ProfileProcessed"), 1, "the same picture");
    assert_no_drift(&backend).await;

    // Another picture of them while they are one: they are person1 also when both are parted.
    show_oneself(&backend, &ann(), &photo(11, &[1])).await;
    drain(&backend).await;
    register.undo(merged.event).await.unwrap();
    register.follow(|_| ()).await.unwrap();
    assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    assert_no_drift(&backend).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_is_a_user_is_not_forgotten_with_their_last_photo() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    let photos = album(&[&[0]]);
    upload(&backend, &photos).await;
    show_oneself(&backend, &ann(), &photo(10, &[0])).await;
    drain(&backend).await;
    send(&backend, deletion(&photos[0])).await;
    drain(&backend).await;
    assert_eq!(count(&read_log(&backend).await, "PersonsForgotten"), 0);
    assert!(backend.store.get(&Key::person(person(1))).await.unwrap().is_some());
    let next = [photo(11, &[0])];
    upload(&backend, &next).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &next[0]).await, [person(1)], "known by their picture of themselves");
    assert_no_drift(&backend).await;
}

/// An S3 event about such an object means the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_event_about_an_object_under_profiles_means_the_same() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    for (number, folder) in [(10, "profiles"), (11, "profile-pictures")] {
        let me = photo(number, &[0]);
        let key = format!("{folder}/{}/{number}.jpg", ann());
        let content = sparks_engine::Content::picture("image/jpeg");
        backend.objects.put(&key, me.jpeg, content, sparks_engine::PutMode::Replace).await.unwrap();
        let object = json!({ "key": key.replace('@', "%40"), "sequencer": "00A" });
        let s3 = json!({ "bucket": { "name": BUCKET }, "object": object });
        send(&backend, json!({ "Records": [{ "eventName": "ObjectCreated:Put", "s3": s3 }] })).await;
        drain(&backend).await;
        assert_eq!(user(&backend, &ann()).await["personId"], "person1");
    }
    assert_eq!(count(&read_log(&backend).await, "ProfileProcessed"), 2);
}

/// A user's picture has a name like a photo's, which anybody can work out who knows the user's address.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_picture_of_a_user_cannot_be_deleted_as_a_photo() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    sign_up(&backend, &ann()).await;
    show_oneself(&backend, &ann(), &photo(10, &[0])).await;
    drain(&backend).await;
    let name = ImageId::of_profile(&ann());
    let before = backend.store.photo(&name).await.unwrap();
    send(&backend, json!({ "action": "delete", "imageId": name, "uploadedBy": "eve@example.org" })).await;
    drain(&backend).await;
    assert_eq!(backend.store.photo(&name).await.unwrap(), before);
    assert_eq!(count(&read_log(&backend).await, "PhotoDeleted"), 0);
    assert_eq!(backend.store.faces_of(&[person(1)]).await.unwrap().len(), 1, "they are still known");
}
