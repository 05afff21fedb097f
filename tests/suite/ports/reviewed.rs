//! Faces that nobody knew, looked at again when more is known.

use sparks_domain::{Event, Key, Verdict};
use sparks_engine::{Commit, PhotoGuard, Store};
use sparks_tests::{
    album::{Photo, album, photo, photo_between},
    faults::Fuse,
    samples::{decided_face, face, image, nothing, person, processed, uploader},
    snapshot::{count, read_log},
    worker::{drain, image_of, open, persons_in, register, upload},
};

use super::{embedded::Folders, joined::Known};

/// Two persons, and a photo of somebody who is as like the one as the other.
async fn between(folders: &Folders) -> (Known, Photo) {
    let unclear = photo_between(9, 0, 1);
    let known = Known::of(folders, [album(&[&[0], &[1]]), vec![unclear.clone()]].concat()).await;
    let log = read_log(&known.backend).await;
    let Some(Event::PhotoProcessed(event)) = log.last().map(|recorded| &recorded.event) else { panic!("{log:?}") };
    assert_eq!(event.faces[0].verdict, Verdict::Ambiguous, "{:?}", event.faces[0].candidates);
    assert_eq!(persons_in(&known.backend, &unclear).await, []);
    (known, unclear)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_face_between_two_persons_is_theirs_once_they_are_one() {
    let folders = Folders::new();
    let (known, unclear) = between(&folders).await;
    assert_eq!(known.register.review().await.unwrap(), 0, "it is still as like the one as the other");
    let merged = known.join(1, 2).await;
    assert_eq!(known.register.review().await.unwrap(), 1);

    let log = read_log(&known.backend).await;
    let Some(Event::FacesReviewed(review)) = log.last().map(|recorded| &recorded.event) else { panic!("{log:?}") };
    assert_eq!((review.faces[0].n, review.faces[0].verdict), (0, Verdict::Matched(person(1))));
    assert_eq!(persons_in(&known.backend, &unclear).await, [person(1)]);
    let tagging = known.row(&Key::tagging(&image_of(&unclear), person(1))).await.unwrap();
    assert_eq!(tagging["entityType"], "TAGGING#person1");
    known.assert_no_drift().await;
    assert_eq!(known.register.review().await.unwrap(), 0, "it is somebody's");
    assert_eq!(count(&read_log(&known.backend).await, "FacesReviewed"), 1);

    // It was decided to be person1, and that it stays.
    known.part(merged.event).await;
    assert_eq!(persons_in(&known.backend, &unclear).await, [person(1)]);
    known.assert_no_drift().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_leaves_a_photo_that_the_platform_deleted() {
    let folders = Folders::new();
    let (known, unclear) = between(&folders).await;
    known.join(1, 2).await;
    assert_eq!(known.by_hand(&format!("DELETE FROM items WHERE PK = '{}'", image_of(&unclear))), 1);
    assert_eq!(known.register.review().await.unwrap(), 0);
    assert_eq!(count(&read_log(&known.backend).await, "FacesReviewed"), 0);
    let row = known.backend.store.get(&Key::image(&image_of(&unclear), &uploader())).await.unwrap();
    assert_eq!(row, None);
}

/// A review decides that a face is person2's; before it commits, person2 is joined into person1.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_decided_before_a_merge_and_committed_after_it_shows_the_survivor() {
    let folders = Folders::new();
    let known = Known::of(&folders, vec![photo(0, &[5]), photo(1, &[0]), photo(2, &[1])]).await;
    let unclear = photo_between(9, 0, 1);
    upload(&known.backend, std::slice::from_ref(&unclear)).await;
    drain(&known.backend).await;
    assert_eq!(persons_in(&known.backend, &unclear).await, []);
    known.join(2, 3).await;
    let (folder, backend) = (known.folder.clone(), open(&known.folder));
    let fuse = Fuse::meanwhile("store.commit", async move {
        let other = open(&folder);
        let register = register(&other, &Fuse::counting()).await.unwrap();
        register.join(person(1), person(2), false).await.unwrap();
        register.follow(|_| ()).await.unwrap();
    });
    assert_eq!(register(&backend, &fuse).await.unwrap().review().await.unwrap(), 1);
    assert!(fuse.is_errand_done());
    assert_eq!(persons_in(&known.backend, &unclear).await, [person(1)]);
    known.assert_no_drift().await;
}

fn looks(fuse: &Fuse) -> usize {
    fuse.calls().iter().filter(|call| *call == "store.unidentified").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_without_news_does_not_look() {
    let folders = Folders::new();
    let (known, _) = between(&folders).await;
    let fuse = Fuse::counting();
    let register = register(&known.backend, &fuse).await.unwrap();
    register.review().await.unwrap();
    let before = looks(&fuse);
    assert!(before > 0);
    register.review().await.unwrap();
    assert_eq!(looks(&fuse), before, "nothing has been learnt since");
    upload(&known.backend, &[photo(20, &[7])]).await;
    drain(&known.backend).await;
    register.review().await.unwrap();
    assert!(looks(&fuse) > before, "somebody is known since");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_of_very_many_faces_takes_several_steps() {
    const PHOTOS: u64 = 45;
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    for number in 0..PHOTOS {
        let image = image(number);
        let commit = Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: None }),
            events: vec![processed(&image, "v1", &[])],
            signatures: (0..100).map(|n| decided_face(face(&image, n), n as u8, None, false)).collect(),
            ..nothing()
        };
        backend.store.commit(&commit).await.unwrap();
    }
    let fuse = Fuse::counting();
    let register = register(&backend, &fuse).await.unwrap();
    assert!(register.tidy(false).await.unwrap().more, "{PHOTOS} photos of a hundred faces are too many for one step");
    let first = looks(&fuse);
    assert!(first <= 16, "{first} pages in one step");
    let reads = fuse.calls().iter().filter(|call| ["store.photo", "store.event"].contains(&call.as_str())).count();
    assert_eq!(reads, 0, "photos in which nobody is recognised are not read one by one");
    assert!(!register.tidy(false).await.unwrap().more, "the second step goes on where the first stopped");
    assert!(looks(&fuse) < 2 * first, "and does not begin anew");
    assert!(!register.tidy(false).await.unwrap().more);
}
