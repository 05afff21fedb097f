//! A crash or an outage at any port call of a deletion, of a new version of a photo or of a profile picture; the next worker must reach the same result.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use sparks_domain::{Email, Event};
use sparks_engine::Notification;
use sparks_tests::{
    album::{Photo, album, photo},
    fault_injection::{Fault, FaultKind, FaultPlan, FaultTiming},
    platform_actions::{
        deletion_message, removal_message, send, set_upload_limit, sign_up, upload_again, upload_limit,
        upload_profile_picture,
    },
    snapshot::{Snapshot, count, read_log},
    worker::{Worker, drain, open, upload},
};
use tokio::task::JoinSet;

use super::data_folders::{DataFolders, copy_folder};

fn email(name: &str) -> Email {
    format!("{name}@example.org").parse().unwrap()
}

/// The result, the port calls and the published notifications of a run without faults.
struct CleanRun {
    snapshot: Snapshot,
    calls: Vec<String>,
    published: BTreeSet<String>,
}

fn names(notifications: Vec<Notification>) -> BTreeSet<String> {
    let name = |notification: Notification| format!("{} {}", notification.event_type, notification.deduplication);
    notifications.into_iter().map(name).collect()
}

async fn clean_run(folders: &DataFolders, before: &Path) -> CleanRun {
    let folder = copy_folder(before, &folders.fresh());
    let (backend, plan) = (open(&folder), FaultPlan::without_faults());
    let worker = Worker::start(&backend, &plan).await.unwrap();
    worker.drain(&backend).await.unwrap();
    let snapshot = Snapshot::take(&folder, &backend).await;
    assert_eq!((snapshot.dead.len(), snapshot.drift.len(), snapshot.unsettled), (0, 0, 0), "{snapshot:#?}");
    CleanRun { snapshot, calls: plan.calls(), published: names(worker.publisher.notifications()) }
}

/// Returns the notifications about photos and profile pictures. Those about persons are published only by the worker that decided them.
fn about_photos(published: &BTreeSet<String>) -> BTreeSet<&String> {
    published.iter().filter(|name| !name.starts_with("Persons") && !name.starts_with("PersonPictured")).collect()
}

/// Injects a fault before and after every port call, lets another worker finish, and compares the result with the clean run.
async fn check_faults(folders: Arc<DataFolders>, before: &Path, kind: FaultKind) -> CleanRun {
    let clean = Arc::new(clean_run(&folders, before).await);
    let timings = [FaultTiming::BeforeCall, FaultTiming::AfterCall].into_iter();
    let faults = timings.flat_map(|timing| (1..=clean.calls.len()).map(move |call| Fault { call, timing, kind }));
    let mut trials: JoinSet<Option<String>> = JoinSet::new();
    let mut failures = Vec::new();
    for fault in faults {
        while trials.len() >= 6 {
            failures.extend(trials.join_next().await.unwrap().unwrap());
        }
        let (folder, clean) = (copy_folder(before, &folders.fresh()), Arc::clone(&clean));
        trials.spawn(async move {
            let failure = trial(fault, &folder, &clean).await?;
            Some(format!("{fault:?} ({}): {failure}", clean.calls[fault.call - 1]))
        });
    }
    failures.extend(trials.join_all().await.into_iter().flatten());
    println!("2 faults at each of {} calls", clean.calls.len());
    assert!(failures.is_empty(), "{} faults changed the result:\n{}", failures.len(), failures.join("\n"));
    Arc::into_inner(clean).unwrap()
}

async fn trial(fault: Fault, folder: &Path, clean: &CleanRun) -> Option<String> {
    let mut published = BTreeSet::new();
    {
        let (backend, plan) = (open(folder), FaultPlan::at(fault));
        let stopped = match Worker::start(&backend, &plan).await {
            Ok(worker) => {
                let stopped = worker.drain(&backend).await;
                published.extend(names(worker.publisher.notifications()));
                stopped
            }
            Err(stopped) => Err(stopped),
        };
        if !plan.has_fired() {
            return Some("the fault never happened".into());
        }
        if stopped.is_ok() && fault.kind == FaultKind::Crash {
            return Some("the worker finished despite the crash".into());
        }
    }
    let backend = open(folder);
    let worker = Worker::start(&backend, &FaultPlan::without_faults()).await.unwrap();
    worker.drain(&backend).await.unwrap();
    published.extend(names(worker.publisher.notifications()));
    let found = Snapshot::take(folder, &backend).await;
    let expected = match fault.kind {
        FaultKind::Crash => clean.snapshot.clone(),
        // A retried message loses its place in the queue, so events may be recorded in another order.
        FaultKind::Outage => Snapshot { log: found.log.clone(), ..clean.snapshot.clone() },
    };
    let missing: Vec<_> =
        about_photos(&clean.published).into_iter().filter(|name| !published.contains(*name)).cloned().collect();
    let is_complete = missing.is_empty() || fault.kind == FaultKind::Outage;
    found
        .difference(&expected)
        .or_else(|| (!is_complete).then(|| format!("notifications were not published: {missing:?}")))
}

/// Prepares a folder with three deletion messages: one person gets another crop, and two persons are forgotten, one of them with the
/// last deletion.
async fn before_deletions(folders: &DataFolders) -> std::path::PathBuf {
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[1], &[0, 2], &[1, 3]]));
    set_upload_limit(&backend, 497).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    for photo in [0, 3, 1] {
        send(&backend, deletion_message(&photos[photo])).await;
    }
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_after_any_crash_has_the_same_result() {
    let folders = Arc::new(DataFolders::new());
    let before = before_deletions(&folders).await;
    let clean = check_faults(Arc::clone(&folders), &before, FaultKind::Crash).await;
    for call in
        ["store.faces_of", "objects.delete_version originals/", "objects.delete persons/", "objects.put persons/"]
    {
        assert!(clean.calls.iter().any(|made| made.starts_with(call)), "no {call} in {:#?}", clean.calls);
    }
    let folder = copy_folder(&before, &folders.fresh());
    let backend = open(&folder);
    drain(&backend).await;
    assert_eq!(upload_limit(&backend).await, 500, "one credit per deleted photo");
    let log = read_log(&backend).await;
    let counts =
        ["PhotoDeleted", "PersonsForgotten", "PersonPictured", "PersonReinstated"].map(|name| count(&log, name));
    assert_eq!(counts, [3, 2, 1, 0], "{log:#?}");
    let objects: Vec<_> = clean.snapshot.objects.keys().collect();
    assert_eq!(objects.len(), 5, "objects of one photo and two crops: {objects:?}");
    assert_eq!(clean.snapshot.faces.len(), 2, "{:?}", clean.snapshot.faces);
    assert!(clean.published.iter().any(|name| name.starts_with("PersonsForgotten")), "{:?}", clean.published);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_after_any_outage_has_the_same_result() {
    let folders = Arc::new(DataFolders::new());
    let before = before_deletions(&folders).await;
    check_faults(folders, &before, FaultKind::Outage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cleanup_after_any_crash_has_the_same_result() {
    let folders = Arc::new(DataFolders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0, 1], &[0]]));
    set_upload_limit(&backend, 500).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    sparks_engine::Objects::delete(backend.objects.as_ref(), &sparks_tests::platform_actions::original_key(&photos[0]))
        .await
        .unwrap();
    send(&backend, removal_message(&photos[0])).await;
    drop(backend);
    let clean = check_faults(folders, &folder, FaultKind::Crash).await;
    let image = sparks_tests::worker::image_of(&photos[0]).to_string();
    let row = clean.snapshot.rows.iter().find(|row| row.contains("UPLOADED_BY") && row.contains(&image));
    assert!(row.is_some(), "the IMAGE row, which belongs to the platform, was deleted");
    assert!(
        clean.snapshot.rows.iter().any(|row| row.contains("\"limit\":500")),
        "the upload limit, which belongs to the platform, was changed"
    );
    assert!(!clean.snapshot.objects.keys().any(|key| key.contains(&image)), "{:?}", clean.snapshot.objects);
}

/// The new version shows one person less, one again, and a new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_version_after_any_crash_has_the_same_result() {
    let folders = Arc::new(DataFolders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0, 1, 2], &[1]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    upload_again(&backend, &Photo { number: photos[0].number, ..photo(70, &[2, 3]) }).await;
    drop(backend);
    let clean = check_faults(folders, &folder, FaultKind::Crash).await;
    assert_eq!(
        clean.snapshot.faces.len(),
        3,
        "faces of the new version and of the other photo: {:?}",
        clean.snapshot.faces
    );
    assert!(!clean.snapshot.objects.contains_key("persons/person1.jpg"), "{:?}", clean.snapshot.objects);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_profile_picture_after_any_crash_has_the_same_result() {
    let folders = Arc::new(DataFolders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[0], &[5], &[]]));
    upload(&backend, &photos[..1]).await;
    drain(&backend).await;
    for (name, photo) in [("ann", &photos[1]), ("bob", &photos[2]), ("eve", &photos[3])] {
        sign_up(&backend, &email(name)).await;
        upload_profile_picture(&backend, &email(name), photo).await;
    }
    drop(backend);
    let clean = check_faults(Arc::clone(&folders), &folder, FaultKind::Crash).await;
    let backend = open(&copy_folder(&folder, &folders.fresh()));
    drain(&backend).await;
    let persons = read_log(&backend).await.into_iter().filter_map(|recorded| match recorded.event {
        Event::ProfileProcessed(profile) => {
            Some((profile.email.clone(), profile.person().map(|person| person.number())))
        }
        _ => None,
    });
    let expected = [("ann", Some(1)), ("bob", Some(2)), ("eve", None)].map(|(name, person)| (email(name), person));
    assert_eq!(persons.collect::<Vec<_>>(), expected);
    assert!(clean.snapshot.objects.contains_key("persons/person2.jpg"), "{:?}", clean.snapshot.objects.keys());
    assert!(!clean.snapshot.rows.iter().any(|row| row.contains("TAGGING#person2")), "a profile picture tags a person");
    let types: Vec<_> = clean.published.iter().filter_map(|name| name.split(' ').next()).collect();
    assert_eq!(types, ["PersonAllocated", "ProfileProcessed", "ProfileProcessed", "ProfileProcessed"]);
}
