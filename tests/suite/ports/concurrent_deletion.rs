//! Deletions that race with other messages about the same person: a person with a photo stays enrolled, and one without is forgotten.
//!
//! A second worker runs before each port call of the first, so that every interleaving of two messages is tried.

use std::{path::Path, sync::Arc};

use serde_json::json;
use sparks_domain::{Email, Key, PersonId, Seq};
use sparks_embedded::Embedded;
use sparks_engine::{GalleryIndex, Objects, Store};
use sparks_tests::{
    album::{Photo, album, photo},
    fault_injection::FaultPlan,
    platform_actions::{
        deletion_message, send, set_upload_limit, sign_up, store_original, upload_limit, upload_message,
        upload_profile_picture, write_row,
    },
    samples::{person, uploader},
    snapshot::{Snapshot, count, read_log},
    worker::{Worker, drain, image_of, open, persons_in, rebuilder, upload},
};
use tokio::task::JoinSet;

use super::data_folders::{DataFolders, copy_folder};

/// Returns the number of port calls of a single worker that processes all messages of a folder.
async fn count_calls(folders: &DataFolders, folder: &Path) -> usize {
    let backend = open(&copy_folder(folder, &folders.fresh()));
    let plan = FaultPlan::without_faults();
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    plan.calls().len()
}

/// Runs one trial per port call of a worker: right before that call, a second worker processes the other messages. Then the first
/// worker finishes, and `check` runs.
async fn check_interleavings<Fut>(folders: &Arc<DataFolders>, folder: &Path, check: impl Fn(std::path::PathBuf) -> Fut)
where
    Fut: Future<Output = Result<(), String>> + Send + 'static,
{
    let calls = count_calls(folders, folder).await;
    let (mut trials, mut failures) = (JoinSet::new(), Vec::new());
    for call in 1..=calls {
        while trials.len() >= 4 {
            failures.extend(trials.join_next().await.and_then(|trial: Result<Option<String>, _>| trial.unwrap()));
        }
        let folder = copy_folder(folder, &folders.fresh());
        let checked = check(folder.clone());
        trials.spawn(async move {
            // The second worker starts first, so its gallery is as old as the first worker's.
            let (backend, other) = (open(&folder), open(&folder));
            let another = Worker::start(&other, &FaultPlan::without_faults()).await.unwrap();
            let plan = FaultPlan::interrupting_call_number(call, async move {
                while another.next().await.unwrap() {}
                drop(other);
            });
            Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
            let name = plan.calls().get(call - 1).cloned();
            drop(backend);
            checked.await.err().map(|error| format!("before call {call} ({name:?}): {error}"))
        });
    }
    failures.extend(trials.join_all().await.into_iter().flatten());
    println!("interrupted before each of {calls} calls");
    assert!(failures.is_empty(), "{} of {calls} interleavings fail:\n{}", failures.len(), failures.join("\n"));
}

async fn exists(backend: &Embedded, key: &str) -> bool {
    backend.objects.head(key).await.unwrap().is_some()
}

/// Fails unless exactly the persons named in these photos are enrolled. Returns them.
async fn check_enrolled_as_named(backend: &Embedded, photos: &[Photo]) -> Result<Vec<PersonId>, String> {
    let mut named: Vec<PersonId> = Vec::new();
    for photo in photos {
        named.extend(persons_in(backend, photo).await);
    }
    named.sort_unstable();
    named.dedup();
    check_enrolled(backend, &named).await?;
    Ok(named)
}

/// Fails unless exactly these persons have a row, a crop, a stored face and a template.
async fn check_enrolled(backend: &Embedded, expected: &[PersonId]) -> Result<(), String> {
    let highest = backend.store.identity(Seq(0)).await.unwrap().counter;
    for number in 1..=highest {
        let id = person(number);
        let row = backend.store.get(&Key::person(id)).await.unwrap().is_some();
        let crop = exists(backend, &format!("persons/{id}.jpg")).await;
        let faces = backend.store.faces_of(&[id]).await.unwrap();
        let (face, template) = (!faces.is_empty(), faces.iter().any(|face| face.kept.template));
        let is_expected = expected.contains(&id);
        if [row, crop, face, template] != [is_expected; 4] {
            return Err(format!(
                "{id} is expected: {is_expected}, row: {row}, crop: {crop}, stored face: {face}, template: {template}"
            ));
        }
    }
    let drift = rebuilder(backend).run(false, |_| ()).await.unwrap();
    if drift.total != 0 {
        return Err(format!("{:?}", drift.differences));
    }
    Ok(())
}

/// Fails unless the next photo of an identity is identified as these persons.
async fn check_identified_next(backend: &Embedded, identity: usize, expected: &[PersonId]) -> Result<(), String> {
    let next = [photo(90, &[identity])];
    upload(backend, &next).await;
    drain(backend).await;
    let found = persons_in(backend, &next[0]).await;
    if found == expected { Ok(()) } else { Err(format!("the next photo shows {found:?} instead of {expected:?}")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_deletions_of_the_last_photos_forget_the_person() {
    let folders = Arc::new(DataFolders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[0], &[1]]));
    set_upload_limit(&backend, 10).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    for photo in &photos[..2] {
        send(&backend, deletion_message(photo)).await;
    }
    drop(backend);
    let left = photos[2].clone();
    check_interleavings(&folders, &folder, |folder| {
        let left = left.clone();
        async move {
            let backend = open(&folder);
            let named = check_enrolled_as_named(&backend, &[left]).await?;
            let log = read_log(&backend).await;
            let (deleted, forgotten) = (count(&log, "PhotoDeleted"), count(&log, "PersonsForgotten"));
            if (named.as_slice(), deleted, forgotten) != (&[person(2)], 2, 1) {
                return Err(format!(
                    "{named:?} are named after {deleted} deletions and {forgotten} PersonsForgotten events"
                ));
            }
            let limit = upload_limit(&backend).await;
            (limit == 12).then_some(()).ok_or(format!("the upload limit is {limit}"))
        }
    })
    .await;
}

/// Deletes a person's last photo while another photo of the person is processed.
async fn delete_while_processing(is_deletion_first: bool) {
    let folders = Arc::new(DataFolders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[1]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    let new = photo(50, &[0]);
    if is_deletion_first {
        send(&backend, deletion_message(&photos[0])).await;
        upload(&backend, std::slice::from_ref(&new)).await;
    } else {
        upload(&backend, std::slice::from_ref(&new)).await;
        send(&backend, deletion_message(&photos[0])).await;
    }
    drop(backend);
    let left = vec![photos[1].clone(), new];
    check_interleavings(&folders, &folder, |folder| {
        let left = left.clone();
        async move {
            let backend = open(&folder);
            check_enrolled_as_named(&backend, &left).await?;
            let persons = persons_in(&backend, &left[1]).await;
            check_identified_next(&backend, 0, &persons).await
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_processed_during_a_deletion_keeps_the_person_enrolled() {
    delete_while_processing(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_during_processing_keeps_the_person_enrolled() {
    delete_while_processing(false).await;
}

/// Deletes a person's last photo while a profile picture of the person is processed.
async fn delete_while_processing_profile(is_deletion_first: bool) {
    let folders = Arc::new(DataFolders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[1]]));
    let ann: Email = "ann@example.org".parse().unwrap();
    sign_up(&backend, &ann).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    if is_deletion_first {
        send(&backend, deletion_message(&photos[0])).await;
    }
    upload_profile_picture(&backend, &ann, &photo(50, &[0])).await;
    if !is_deletion_first {
        send(&backend, deletion_message(&photos[0])).await;
    }
    drop(backend);
    check_interleavings(&folders, &folder, |folder| {
        let (key, left) = (Key::user(&ann), photos[1].clone());
        async move {
            let backend = open(&folder);
            let user = backend.store.get(&key).await.unwrap().unwrap();
            let person: PersonId = user.text("personId").unwrap().parse().unwrap();
            check_enrolled(&backend, &[person, persons_in(&backend, &left).await[0]]).await?;
            check_identified_next(&backend, 0, &[person]).await
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_profile_picture_during_a_deletion_keeps_the_person_enrolled() {
    delete_while_processing_profile(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_during_a_profile_picture_keeps_the_person_enrolled() {
    delete_while_processing_profile(false).await;
}

/// Deletes a photo while it is processed, in either order of messages; nothing of it may remain.
async fn delete_while_in_flight(is_deletion_first: bool) {
    let folders = Arc::new(DataFolders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[1]]));
    set_upload_limit(&backend, 10).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    let before = Arc::new(Snapshot::take(&folder, &backend).await);
    let new = photo(50, &[0, 1]);
    if is_deletion_first {
        // The message about the upload is late; a deletion that is older than the original is ignored.
        write_row(&backend, &Key::image(&image_of(&new), &uploader()), json!({ "entityType": "IMAGE" })).await;
        store_original(&backend, &new).await;
        send(&backend, deletion_message(&new)).await;
        send(&backend, upload_message(&new)).await;
    } else {
        upload(&backend, std::slice::from_ref(&new)).await;
        send(&backend, deletion_message(&new)).await;
    }
    drop(backend);
    check_interleavings(&folders, &folder, |folder| {
        let (left, before, image) = (photos.clone(), Arc::clone(&before), image_of(&new).to_string());
        async move {
            let backend = open(&folder);
            check_enrolled_as_named(&backend, &left).await?;
            let after = Snapshot::take(&folder, &backend).await;
            if after.dead != [""; 0] || after.unsettled != 0 {
                return Err(format!("dead letters: {:?}, unsettled messages: {}", after.dead, after.unsettled));
            }
            let traces =
                after.objects.keys().chain(&after.rows).chain(&after.faces).filter(|name| name.contains(&image));
            let traces: Vec<_> = traces.cloned().collect();
            if !traces.is_empty() {
                return Err(format!("rows, objects or faces of the photo remain: {traces:?}"));
            }
            let objects = |snapshot: &Snapshot| snapshot.objects.keys().cloned().collect::<Vec<_>>();
            if objects(&after) != objects(&before) {
                return Err(format!("remaining objects: {:?}", objects(&after)));
            }
            let limit = upload_limit(&backend).await;
            (limit == 11).then_some(()).ok_or(format!("the upload limit is {limit}"))
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_deleted_during_processing_leaves_nothing() {
    delete_while_in_flight(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_processed_during_its_deletion_leaves_nothing() {
    delete_while_in_flight(true).await;
}

/// A gallery that followed the log and one loaded from it hold the same persons and templates.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_followed_gallery_equals_a_loaded_one() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    let store = Arc::clone(&backend.store) as Arc<dyn Store>;
    let followed = GalleryIndex::load(Arc::clone(&store), 5).await.unwrap();
    let photos = album(&[&[0], &[1], &[0, 2], &[2], &[3]]);
    upload(&backend, &photos).await;
    drain(&backend).await;
    followed.catch_up().await.unwrap();
    // person1 keeps a template of another photo; person2 and person4 are forgotten; the identity of person4 returns as a new person.
    for n in [0, 1, 4] {
        send(&backend, deletion_message(&photos[n])).await;
        drain(&backend).await;
        followed.catch_up().await.unwrap();
    }
    let again = [photo(60, &[3])];
    upload(&backend, &again).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &again[0]).await, [person(5)], "person numbers are not reused");
    followed.catch_up().await.unwrap();
    let loaded = GalleryIndex::load(store, 5).await.unwrap();
    let persons = |index: &GalleryIndex| {
        let known = index.state();
        let models: Vec<String> = known.gallery.models().map(str::to_owned).collect();
        let known_by = models.iter().flat_map(|model| known.gallery.persons(model).into_keys().collect::<Vec<_>>());
        (known_by.collect::<Vec<_>>(), known.people.clone())
    };
    assert_eq!(persons(&followed), persons(&loaded));
    assert_eq!(persons(&loaded).0, [person(1), person(3), person(5)]);
    let next = [photo(61, &[0]), photo(62, &[1])];
    upload(&backend, &next).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &next[0]).await, [person(1)], "identified by the remaining photo");
    assert_eq!(persons_in(&backend, &next[1]).await, [person(6)], "a forgotten person is allocated again");
}
