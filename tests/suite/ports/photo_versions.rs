//! New versions of a photo: what is kept and what is let go of the earlier one.

use serde_json::json;
use sparks_domain::{Email, Event, ImageId, Key, PersonId};
use sparks_embedded::Embedded;
use sparks_engine::{DeadLetters, Objects, Store};
use sparks_tests::{
    album::{Photo, album, photo},
    platform_actions::{sign_up, upload_again, upload_profile_picture},
    samples::{face, person},
    snapshot::{count, read_log},
    worker::{drain, image_of, open, persons_in, rebuilder, upload},
};

use super::data_folders::DataFolders;

/// Returns another content for the same image ID.
fn version_of(first: &Photo, number: u64, identities: &[usize]) -> Photo {
    Photo { number: first.number, ..photo(number, identities) }
}

/// Returns whether the person has a row, a crop and stored faces.
async fn is_enrolled(backend: &Embedded, person: PersonId) -> [bool; 3] {
    let row = backend.store.get(&Key::person(person)).await.unwrap().is_some();
    let crop = backend.objects.head(&format!("persons/{person}.jpg")).await.unwrap().is_some();
    [row, crop, !backend.store.faces_of(&[person]).await.unwrap().is_empty()]
}

/// Returns the numbers of the faces that are stored for an image.
async fn stored_numbers(backend: &Embedded, image: &ImageId) -> Vec<u16> {
    let faces: Vec<_> = (0..20).map(|n| face(image, n)).collect();
    let mut stored: Vec<_> = backend.store.signatures(&faces).await.unwrap().iter().map(|face| face.face.n).collect();
    stored.sort_unstable();
    stored
}

async fn assert_consistent(backend: &Embedded) {
    assert_eq!(backend.queue.list(None, 10).await.unwrap(), []);
    assert_eq!(rebuilder(backend).run(false, |_| ()).await.unwrap().total, 0);
}

async fn identify_next(backend: &Embedded, number: u64, identity: usize) -> Vec<PersonId> {
    let next = [photo(number, &[identity])];
    upload(backend, &next).await;
    drain(backend).await;
    persons_in(backend, &next[0]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_version_lets_go_of_persons_it_no_longer_shows() {
    let folders = DataFolders::new();
    let (backend, photos) = (open(&folders.fresh()), album(&[&[0, 1], &[1]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    upload_again(&backend, &version_of(&photos[0], 70, &[2])).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &photos[0]).await, [person(3)]);
    assert_eq!(is_enrolled(&backend, person(1)).await, [false; 3], "person1, who is in no photo any more");
    assert_eq!(is_enrolled(&backend, person(2)).await, [true; 3], "person2, who is in another photo");
    assert_eq!(stored_numbers(&backend, &image_of(&photos[0])).await, [2], "faces of the new version only");
    let log = read_log(&backend).await;
    let pictured = log.iter().filter_map(|recorded| match &recorded.event {
        Event::PersonPictured(event) => Some((event.person, event.face.image.clone())),
        _ => None,
    });
    assert_eq!(pictured.collect::<Vec<_>>(), [(person(2), image_of(&photos[1]))], "crops from other photos");
    assert_consistent(&backend).await;
    assert_eq!(identify_next(&backend, 80, 1).await, [person(2)]);
    assert_eq!(identify_next(&backend, 81, 0).await, [person(4)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_person_in_both_versions_stays_enrolled_by_the_new_one() {
    let folders = DataFolders::new();
    let (backend, photos) = (open(&folders.fresh()), album(&[&[0]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    let again = version_of(&photos[0], 70, &[0]);
    for _ in 0..3 {
        upload_again(&backend, &again).await;
        drain(&backend).await;
    }
    assert_eq!(is_enrolled(&backend, person(1)).await, [true; 3]);
    let faces = backend.store.faces_of(&[person(1)]).await.unwrap();
    let faces: Vec<_> = faces.into_iter().map(|decided| (decided.kept.face.n, decided.kept.template)).collect();
    assert_eq!(faces, [(1, true)], "the face of the new version");
    assert_eq!(count(&read_log(&backend).await, "PersonPictured"), 1, "the crop shows the new version");
    assert_consistent(&backend).await;
    assert_eq!(identify_next(&backend, 80, 0).await, [person(1)]);
}

/// Without this the item of a photo's faces exceeds the size limit of DynamoDB after many versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faces_of_many_versions_do_not_accumulate() {
    let folders = DataFolders::new();
    let (backend, photos) = (open(&folders.fresh()), album(&[&[0, 1]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    for number in 70..74 {
        upload_again(&backend, &version_of(&photos[0], number, &[0, 1])).await;
        drain(&backend).await;
    }
    assert_eq!(stored_numbers(&backend, &image_of(&photos[0])).await, [8, 9]);
    assert_eq!(persons_in(&backend, &photos[0]).await, [person(1), person(2)]);
    assert_consistent(&backend).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_profile_picture_erases_the_signature_of_the_earlier_one() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    let ann: Email = "ann@example.org".parse().unwrap();
    sign_up(&backend, &ann).await;
    for (number, identities) in [(10, &[0][..]), (11, &[0]), (12, &[])] {
        upload_profile_picture(&backend, &ann, &photo(number, identities)).await;
        drain(&backend).await;
    }
    let image = ImageId::of_profile(&ann);
    assert_eq!(stored_numbers(&backend, &image).await, [1], "a picture without a face replaces nothing");
    assert_eq!(is_enrolled(&backend, person(1)).await, [true; 3]);
    upload_profile_picture(&backend, &ann, &photo(13, &[1])).await;
    drain(&backend).await;
    let user = backend.store.get(&Key::user(&ann)).await.unwrap().unwrap();
    assert_eq!(user.attributes["personId"], json!("person2"));
    assert_eq!(stored_numbers(&backend, &image).await, [2]);
    assert_eq!(is_enrolled(&backend, person(1)).await, [false; 3], "the person of the earlier pictures");
    assert_consistent(&backend).await;
}
