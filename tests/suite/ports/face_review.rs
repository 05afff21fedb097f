//! Reviews: unidentified faces are compared again when the gallery has grown.

use sparks_domain::{Event, Key, Verdict};
use sparks_engine::{Commit, PhotoGuard, Store};
use sparks_tests::{
    album::{Photo, album, photo, photo_between},
    fault_injection::FaultPlan,
    samples::{decided_face, empty_commit, face, image, person, processed, uploader},
    snapshot::{count, read_log},
    worker::{consolidator, drain, image_of, open, persons_in, upload},
};

use super::{data_folders::DataFolders, processed_album::ProcessedAlbum};

/// Processes photos of two persons and one of a face that is equally similar to both.
async fn ambiguous_photo(folders: &DataFolders) -> (ProcessedAlbum, Photo) {
    let unclear = photo_between(9, 0, 1);
    let fixture = ProcessedAlbum::create(folders, [album(&[&[0], &[1]]), vec![unclear.clone()]].concat()).await;
    let log = read_log(&fixture.backend).await;
    let Some(Event::PhotoProcessed(event)) = log.last().map(|recorded| &recorded.event) else { panic!("{log:?}") };
    assert_eq!(event.faces[0].verdict, Verdict::Ambiguous, "{:?}", event.faces[0].candidates);
    assert_eq!(persons_in(&fixture.backend, &unclear).await, []);
    (fixture, unclear)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_ambiguous_face_is_identified_after_its_candidates_merge() {
    let folders = DataFolders::new();
    let (fixture, unclear) = ambiguous_photo(&folders).await;
    assert_eq!(fixture.consolidator.review().await.unwrap(), 0, "faces identified before the merge");
    let merged = fixture.merge(1, 2).await;
    assert_eq!(fixture.consolidator.review().await.unwrap(), 1);

    let log = read_log(&fixture.backend).await;
    let Some(Event::FacesReviewed(review)) = log.last().map(|recorded| &recorded.event) else { panic!("{log:?}") };
    assert_eq!((review.faces[0].n, review.faces[0].verdict), (0, Verdict::Matched(person(1))));
    assert_eq!(persons_in(&fixture.backend, &unclear).await, [person(1)]);
    let tagging = fixture.row(&Key::tagging(&image_of(&unclear), person(1))).await.unwrap();
    assert_eq!(tagging["entityType"], "TAGGING#person1");
    fixture.assert_no_drift().await;
    assert_eq!(fixture.consolidator.review().await.unwrap(), 0, "the face is already identified");
    assert_eq!(count(&read_log(&fixture.backend).await, "FacesReviewed"), 1);

    // The unmerge does not change the decision that the face is person1.
    fixture.unmerge(merged.event).await;
    assert_eq!(persons_in(&fixture.backend, &unclear).await, [person(1)]);
    fixture.assert_no_drift().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_skips_photos_that_the_platform_deleted() {
    let folders = DataFolders::new();
    let (fixture, unclear) = ambiguous_photo(&folders).await;
    fixture.merge(1, 2).await;
    assert_eq!(fixture.execute_sql(&format!("DELETE FROM items WHERE PK = '{}'", image_of(&unclear))), 1);
    assert_eq!(fixture.consolidator.review().await.unwrap(), 0);
    assert_eq!(count(&read_log(&fixture.backend).await, "FacesReviewed"), 0);
    let row = fixture.backend.store.get(&Key::image(&image_of(&unclear), &uploader())).await.unwrap();
    assert_eq!(row, None);
}

/// A review identifies a face as person2; before it commits, person2 is merged into person1.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_that_commits_after_a_merge_names_the_merged_person() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, vec![photo(0, &[5]), photo(1, &[0]), photo(2, &[1])]).await;
    let unclear = photo_between(9, 0, 1);
    upload(&fixture.backend, std::slice::from_ref(&unclear)).await;
    drain(&fixture.backend).await;
    assert_eq!(persons_in(&fixture.backend, &unclear).await, []);
    fixture.merge(2, 3).await;
    let (folder, backend) = (fixture.folder.clone(), open(&fixture.folder));
    let plan = FaultPlan::interrupting_call_named("store.commit", async move {
        let other = open(&folder);
        let consolidator = consolidator(&other, &FaultPlan::without_faults()).await.unwrap();
        consolidator.merge(person(1), person(2), false).await.unwrap();
        consolidator.apply_merges(|_| ()).await.unwrap();
    });
    assert_eq!(consolidator(&backend, &plan).await.unwrap().review().await.unwrap(), 1);
    assert!(plan.has_interruption_run());
    assert_eq!(persons_in(&fixture.backend, &unclear).await, [person(1)]);
    fixture.assert_no_drift().await;
}

fn page_reads(plan: &FaultPlan) -> usize {
    plan.calls().iter().filter(|call| *call == "store.unidentified").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_without_new_templates_reads_no_faces() {
    let folders = DataFolders::new();
    let (fixture, _) = ambiguous_photo(&folders).await;
    let plan = FaultPlan::without_faults();
    let consolidator = consolidator(&fixture.backend, &plan).await.unwrap();
    consolidator.review().await.unwrap();
    let before = page_reads(&plan);
    assert!(before > 0);
    consolidator.review().await.unwrap();
    assert_eq!(page_reads(&plan), before, "a review without new templates reads faces");
    upload(&fixture.backend, &[photo(20, &[7])]).await;
    drain(&fixture.backend).await;
    consolidator.review().await.unwrap();
    assert!(page_reads(&plan) > before, "a review after a new template reads no faces");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_of_many_faces_takes_several_steps() {
    const PHOTOS: u64 = 45;
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    for number in 0..PHOTOS {
        let image = image(number);
        let commit = Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: None }),
            events: vec![processed(&image, "v1", &[])],
            signatures: (0..100).map(|n| decided_face(face(&image, n), n as u8, None, false)).collect(),
            ..empty_commit()
        };
        backend.store.commit(&commit).await.unwrap();
    }
    let plan = FaultPlan::without_faults();
    let consolidator = consolidator(&backend, &plan).await.unwrap();
    assert!(consolidator.run(false).await.unwrap().has_more, "{PHOTOS} photos of 100 faces were reviewed in one step");
    let first = page_reads(&plan);
    assert!(first <= 16, "{first} pages were read in one step");
    let reads = plan.calls().iter().filter(|call| ["store.photo", "store.event"].contains(&call.as_str())).count();
    assert_eq!(reads, 0, "reads of single photos without identified faces");
    assert!(!consolidator.run(false).await.unwrap().has_more, "the second step did not finish the review");
    assert!(page_reads(&plan) < 2 * first, "the second step started from the beginning");
    assert!(!consolidator.run(false).await.unwrap().has_more);
}
