//! New versions of a photo: what is kept and what is let go of the earlier one, and which version wins a race.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde_json::{Value, json};
use sparks_domain::{Email, Event, ImageId, Key, PersonId};
use sparks_embedded::{Embedded, FileObjects};
use sparks_engine::{DeadLetters, Objects, Store};
use sparks_tests::{
    album::{Photo, album, photo},
    fault_injection::FaultPlan,
    platform_actions::{sign_up, store_original, upload_again, upload_message, upload_profile_picture, write_row},
    samples::{face, person, uploader},
    snapshot::{Snapshot, count, read_log},
    worker::{Worker, drain, image_of, open, persons_in, rebuilder, upload},
};
use tokio::task::JoinSet;

use super::data_folders::{DataFolders, copy_folder};

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

/// Returns the S3 event for a version, with a sequencer if versions are ordered by them.
fn message(version: &Photo, sequencer: Option<&str>) -> Value {
    let mut message = upload_message(version);
    if let Some(sequencer) = sequencer {
        message["Records"][0]["s3"]["object"]["sequencer"] = json!(sequencer);
    }
    message
}

/// Returns the variants in a data folder, with their content.
fn variants(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let is_variant = |(key, _): &(&String, &String)| key.starts_with("processed/");
    snapshot.objects.iter().filter(is_variant).map(|(key, content)| (key.clone(), content.clone())).collect()
}

/// Returns a data folder with the first version of a photo and its message.
async fn with_first_version(folders: &DataFolders, first: &Photo, sequencer: Option<&str>) -> std::path::PathBuf {
    let folder = folders.fresh();
    let backend = open(&folder);
    write_row(&backend, &Key::image(&image_of(first), &uploader()), json!({ "entityType": "IMAGE" })).await;
    store_original(&backend, first).await;
    sparks_tests::platform_actions::send(&backend, message(first, sequencer)).await;
    folder
}

/// A worker is interrupted before one of its port calls while another processes the second version, which must be the result.
async fn race(folder: &Path, call: usize, second: &Photo, message: Value, expected: &Snapshot) -> Result<(), String> {
    let (backend, other) = (open(folder), open(folder));
    let another = Worker::start(&other, &FaultPlan::without_faults()).await.unwrap();
    let later = second.clone();
    let plan = FaultPlan::interrupting_call_number(call, async move {
        store_original(&other, &later).await;
        sparks_tests::platform_actions::send(&other, message).await;
        while another.next().await.unwrap() {}
        drop(other);
    });
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    let state = backend.store.photo(&image_of(second)).await.unwrap().unwrap();
    let found = Snapshot::take(folder, &backend).await;
    let name = plan.calls().get(call - 1).cloned();
    if state.version != FileObjects::version(&second.jpeg) {
        return Err(format!("before call {call} ({name:?}): the log has the first version"));
    }
    if variants(&found) != variants(expected) {
        return Err(format!("before call {call} ({name:?}): the bucket has variants of the first version"));
    }
    let is_clean = (found.dead.len(), found.drift.len()) == (0, 0);
    is_clean.then_some(()).ok_or_else(|| format!("before call {call} ({name:?}): {found:#?}"))
}

/// Processes two versions of a photo, the second at every moment of the first.
async fn check_races(sequencers: [Option<&str>; 2]) {
    let folders = Arc::new(DataFolders::new());
    let first = photo(0, &[0]);
    let second = version_of(&first, 70, &[1, 2]);
    let alone = with_first_version(&folders, &second, sequencers[1]).await;
    let backend = open(&alone);
    drain(&backend).await;
    let expected = Arc::new(Snapshot::take(&alone, &backend).await);
    let before = with_first_version(&folders, &first, sequencers[0]).await;
    let plan = FaultPlan::without_faults();
    let backend = open(&copy_folder(&before, &folders.fresh()));
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    let (mut trials, mut failures) = (JoinSet::new(), Vec::new());
    for call in 1..=plan.calls().len() {
        while trials.len() >= 4 {
            failures.extend(trials.join_next().await.and_then(|trial: Result<Option<String>, _>| trial.unwrap()));
        }
        let (folder, second) = (copy_folder(&before, &folders.fresh()), second.clone());
        let (message, expected) = (message(&second, sequencers[1]), Arc::clone(&expected));
        trials.spawn(async move { race(&folder, call, &second, message, &expected).await.err() });
    }
    failures.extend(trials.join_all().await.into_iter().flatten());
    assert!(failures.is_empty(), "{} interleavings fail:\n{}", failures.len(), failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slow_worker_never_overwrites_a_newer_version() {
    check_races([None, None]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slow_worker_never_overwrites_a_version_with_a_later_sequencer() {
    check_races([Some("01"), Some("02")]).await;
}

/// A worker that died may have left variants that are not those of the committed version.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivery_renders_variants_that_differ_from_the_log() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    let clean = Snapshot::take(&folder, &backend).await;
    let [large, medium] = sparks_domain::object_keys::variants(&image_of(&photos[0]));
    let mut other = backend.objects.get(&large, 1 << 20).await.unwrap().bytes;
    *other.last_mut().unwrap() ^= 1;
    let content = sparks_engine::Content::image("image/webp");
    backend.objects.put(&large, other, content, sparks_engine::PutMode::Replace).await.unwrap();
    backend.objects.delete(&medium).await.unwrap();
    upload_again(&backend, &photos[0]).await;
    drain(&backend).await;
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&clean), None);
}
