//! Indexes in the cloud lag behind the table: nothing is decided on what they show, or do not show yet.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use sparks_domain::{Email, Key};
use sparks_embedded::Embedded;
use sparks_engine::{DeleteRef, Maintenance, Mark, Objects, Outcome, Pipeline, Request, Store, Turnstile};
use sparks_tests::{
    album::{Photo, album, photo},
    faults::Fuse,
    lagging::Lagging,
    platform::{show_oneself, sign_up, write},
    samples::{person, uploader},
    snapshot::{count, read_log},
    worker::{drain, image_of, open, persons_in, pipeline, rebuilder, register_over, upload},
};

use super::embedded::Folders;

/// A folder in which these photos have been worked off, and a view of it whose indexes can lag.
async fn lagging(folders: &Folders, photos: &[Photo]) -> (Embedded, Arc<Lagging>, Pipeline) {
    let backend = open(&folders.fresh());
    upload(&backend, photos).await;
    drain(&backend).await;
    let lagging = Lagging::over(Arc::clone(&backend.store) as Arc<dyn Maintenance>);
    let objects = Arc::clone(&backend.objects) as Arc<dyn Objects>;
    let pipeline = pipeline(Arc::clone(&lagging) as Arc<dyn Store>, objects).await.unwrap();
    (backend, lagging, pipeline)
}

async fn delete(pipeline: &Pipeline, photo: &Photo) {
    let request = Request::Delete(DeleteRef { image: image_of(photo), uploader: uploader() });
    let deleted = pipeline.handle(request, &Turnstile::default().ticket()).await.unwrap();
    assert!(matches!(deleted, Outcome::Deleted), "{deleted:?}");
}

/// Whether person1 has a row, a crop and faces.
async fn is_known(backend: &Embedded) -> [bool; 3] {
    let row = backend.store.get(&Key::person(person(1))).await.unwrap().is_some();
    let crop = backend.objects.head("persons/person1.jpg").await.unwrap().is_some();
    [row, crop, !backend.store.faces_of(&[person(1)]).await.unwrap().is_empty()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_is_in_no_photo_is_forgotten_while_an_index_still_shows_some() {
    let folders = Folders::new();
    let photos = album(&[&[0], &[0], &[0], &[1]]);
    let (backend, lagging, pipeline) = lagging(&folders, &photos).await;
    lagging.fall_behind().await;
    for photo in &photos[..3] {
        assert_eq!(is_known(&backend).await, [true; 3]);
        delete(&pipeline, photo).await;
    }
    assert_eq!(is_known(&backend).await, [false; 3]);
    assert_eq!(count(&read_log(&backend).await, "PersonsForgotten"), 1);
    assert_eq!(rebuilder(&backend).run(false, |_| ()).await.unwrap().total, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whom_a_user_was_is_forgotten_while_an_index_still_shows_it() {
    let folders = Folders::new();
    let photos = album(&[&[0], &[1]]);
    let (backend, lagging, pipeline) = lagging(&folders, &photos).await;
    let ann = Key::user(&"ann@example.org".parse().unwrap());
    write(&backend, &ann, json!({ "entityType": "USER", "personId": "person1" })).await;
    lagging.fall_behind().await;
    write(&backend, &ann, json!({ "personId": "person2" })).await;
    delete(&pipeline, &photos[0]).await;
    assert_eq!(is_known(&backend).await, [false; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_a_user_is_stays_known_while_no_index_shows_it_yet() {
    let folders = Folders::new();
    let photos = album(&[&[0], &[1]]);
    let (backend, lagging, pipeline) = lagging(&folders, &photos).await;
    let ann: Email = "ann@example.org".parse().unwrap();
    sign_up(&backend, &ann).await;
    lagging.fall_behind().await;
    show_oneself(&backend, &ann, &photo(50, &[0])).await;
    drain(&backend).await;
    delete(&pipeline, &photos[0]).await;
    assert!(is_known(&backend).await[0], "a user is person1");
    assert_eq!(count(&read_log(&backend).await, "PersonsForgotten"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn photos_that_no_index_shows_yet_follow_a_merge_when_it_does() {
    const LAG: Duration = Duration::from_millis(1500);
    let folders = Folders::new();
    let (backend, lagging, _) = lagging(&folders, &album(&[&[0], &[1]])).await;
    lagging.fall_behind().await;
    let late = photo(9, &[1]);
    upload(&backend, std::slice::from_ref(&late)).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &late).await, [person(2)]);

    let fuse = Fuse::counting();
    let store = fuse.guard(Arc::clone(&lagging) as Arc<dyn Maintenance>);
    let objects = Arc::clone(&backend.objects) as Arc<dyn Objects>;
    let register = register_over(store, objects, LAG).await.unwrap();
    let before = backend.store.mark(Mark::Followed).await.unwrap();
    register.join(person(1), person(2), false).await.unwrap();
    let followed = register.follow(|_| ()).await.unwrap();
    assert_eq!((followed.photos, followed.again), (1, true), "the photo that the index shows");
    assert_eq!(persons_in(&backend, &late).await, [person(2)]);
    let queries = || fuse.calls().iter().filter(|call| *call == "store.query").count();
    let swept = queries();
    assert!(register.tidy(false).await.unwrap().more, "somebody must look again");
    assert_eq!(queries(), swept, "but not before the time has come");

    lagging.catch_up();
    tokio::time::sleep(LAG).await;
    let followed = register.follow(|_| ()).await.unwrap();
    assert_eq!((followed.photos, followed.again), (1, false), "the photo that it did not show");
    assert_eq!(persons_in(&backend, &late).await, [person(1)]);
    assert_ne!(backend.store.mark(Mark::Followed).await.unwrap(), before);
    assert_eq!(rebuilder(&backend).run(false, |_| ()).await.unwrap().total, 0);
    let swept = queries();
    assert!(!register.tidy(false).await.unwrap().more);
    assert_eq!(queries(), swept, "all have followed");
}
