//! Whatever call a deletion or a look at a user's picture dies at, the next worker ends as if nothing had happened.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use sparks_domain::{Email, Event};
use sparks_engine::Notice;
use sparks_tests::{
    album::album,
    faults::{Aftermath, Fault, Fuse, Moment},
    platform::{allow, allowed, deletion, removal, send, show_oneself, sign_up},
    snapshot::{Snapshot, count, read_log},
    worker::{Worker, drain, open, upload},
};
use tokio::task::JoinSet;

use super::{embedded::Folders, joined_crash::copied};

fn email(name: &str) -> Email {
    format!("{name}@example.org").parse().unwrap()
}

/// What a run without faults leaves behind, the calls it makes, and what it tells others.
struct Clean {
    snapshot: Snapshot,
    calls: Vec<String>,
    told: BTreeSet<String>,
}

fn names(notices: Vec<Notice>) -> BTreeSet<String> {
    notices.into_iter().map(|notice| format!("{} {}", notice.event_type, notice.deduplication)).collect()
}

async fn clean(folders: &Folders, before: &Path) -> Clean {
    let folder = copied(before, &folders.fresh());
    let (backend, fuse) = (open(&folder), Fuse::counting());
    let worker = Worker::start(&backend, &fuse).await.unwrap();
    worker.drain(&backend).await.unwrap();
    let snapshot = Snapshot::take(&folder, &backend).await;
    assert_eq!((snapshot.dead.len(), snapshot.drift.len(), snapshot.unsettled), (0, 0, 0), "{snapshot:#?}");
    Clean { snapshot, calls: fuse.calls(), told: names(worker.notices.all()) }
}

/// What the messages of photos and pictures say; what follows for persons is told once, by whoever decided it.
fn of_photos(told: &BTreeSet<String>) -> BTreeSet<&String> {
    told.iter().filter(|name| !name.starts_with("Persons") && !name.starts_with("PersonPictured")).collect()
}

/// Works into every fault, then on, and says how each end differs from the clean one.
async fn check(folders: Arc<Folders>, before: &Path, aftermath: Aftermath) -> Clean {
    let clean = Arc::new(clean(&folders, before).await);
    let moments = [Moment::Before, Moment::After].into_iter();
    let faults = moments.flat_map(|moment| (1..=clean.calls.len()).map(move |call| Fault { call, moment, aftermath }));
    let mut trials: JoinSet<Option<String>> = JoinSet::new();
    let mut wrong = Vec::new();
    for fault in faults {
        while trials.len() >= 6 {
            wrong.extend(trials.join_next().await.unwrap().unwrap());
        }
        let (folder, clean) = (copied(before, &folders.fresh()), Arc::clone(&clean));
        trials.spawn(async move {
            let wrong = trial(fault, &folder, &clean).await?;
            Some(format!("{fault:?} ({}): {wrong}", clean.calls[fault.call - 1]))
        });
    }
    wrong.extend(trials.join_all().await.into_iter().flatten());
    println!("2 faults at each of {} calls", clean.calls.len());
    assert!(wrong.is_empty(), "{} faults left a trace:\n{}", wrong.len(), wrong.join("\n"));
    Arc::into_inner(clean).unwrap()
}

async fn trial(fault: Fault, folder: &Path, clean: &Clean) -> Option<String> {
    let mut told = BTreeSet::new();
    {
        let (backend, fuse) = (open(folder), Fuse::at(fault));
        let stopped = match Worker::start(&backend, &fuse).await {
            Ok(worker) => {
                let stopped = worker.drain(&backend).await;
                told.extend(names(worker.notices.all()));
                stopped
            }
            Err(stopped) => Err(stopped),
        };
        if !fuse.has_blown() {
            return Some("the fault never happened".into());
        }
        if stopped.is_ok() && fault.aftermath == Aftermath::Gone {
            return Some("the worker survived its own end".into());
        }
    }
    let backend = open(folder);
    let worker = Worker::start(&backend, &Fuse::counting()).await.unwrap();
    worker.drain(&backend).await.unwrap();
    told.extend(names(worker.notices.all()));
    let found = Snapshot::take(folder, &backend).await;
    let expected = match fault.aftermath {
        Aftermath::Gone => clean.snapshot.clone(),
        // A message that is tried again later loses its place: what is said is said in another order.
        Aftermath::GoesOn => Snapshot { log: found.log.clone(), ..clean.snapshot.clone() },
    };
    let untold: Vec<_> = of_photos(&clean.told).into_iter().filter(|name| !told.contains(*name)).cloned().collect();
    let is_told = untold.is_empty() || fault.aftermath == Aftermath::GoesOn;
    found.difference(&expected).or_else(|| (!is_told).then(|| format!("nobody was told {untold:?}")))
}

/// Three photos to be deleted: somebody is shown anew, two are forgotten, and one of them only with the last photo.
async fn before_deletions(folders: &Folders) -> std::path::PathBuf {
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[1], &[0, 2], &[1, 3]]));
    allow(&backend, 497).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    for photo in [0, 3, 1] {
        send(&backend, deletion(&photos[photo])).await;
    }
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_at_any_call_of_a_deletion_leaves_no_trace() {
    let folders = Arc::new(Folders::new());
    let before = before_deletions(&folders).await;
    let clean = check(Arc::clone(&folders), &before, Aftermath::Gone).await;
    for call in ["store.faces_of", "objects.delete originals/", "objects.delete persons/", "objects.put persons/"] {
        assert!(clean.calls.iter().any(|made| made.starts_with(call)), "no {call} in {:#?}", clean.calls);
    }
    let folder = copied(&before, &folders.fresh());
    let backend = open(&folder);
    drain(&backend).await;
    assert_eq!(allowed(&backend).await, 500, "an upload for each photo");
    let log = read_log(&backend).await;
    let counts =
        ["PhotoDeleted", "PersonsForgotten", "PersonPictured", "PersonReinstated"].map(|name| count(&log, name));
    assert_eq!(counts, [3, 2, 1, 0], "{log:#?}");
    let objects: Vec<_> = clean.snapshot.objects.keys().collect();
    assert_eq!(objects.len(), 5, "one photo in three sizes and the crops of two: {objects:?}");
    assert_eq!(clean.snapshot.faces.len(), 2, "{:?}", clean.snapshot.faces);
    assert!(clean.told.iter().any(|name| name.starts_with("PersonsForgotten")), "{:?}", clean.told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_outage_at_any_call_of_a_deletion_leaves_no_trace() {
    let folders = Arc::new(Folders::new());
    let before = before_deletions(&folders).await;
    check(folders, &before, Aftermath::GoesOn).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_at_any_call_of_cleaning_up_leaves_no_trace() {
    let folders = Arc::new(Folders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0, 1], &[0]]));
    allow(&backend, 500).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    sparks_engine::Objects::delete(backend.objects.as_ref(), &sparks_tests::platform::original(&photos[0]))
        .await
        .unwrap();
    send(&backend, removal(&photos[0])).await;
    drop(backend);
    let clean = check(folders, &folder, Aftermath::Gone).await;
    let image = sparks_tests::worker::image_of(&photos[0]).to_string();
    let row = clean.snapshot.rows.iter().find(|row| row.contains("UPLOADED_BY") && row.contains(&image));
    assert!(row.is_some(), "the row is the platform's");
    assert!(clean.snapshot.rows.iter().any(|row| row.contains("\"limit\":500")), "and so is the limit");
    assert!(!clean.snapshot.objects.keys().any(|key| key.contains(&image)), "{:?}", clean.snapshot.objects);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_at_any_call_of_a_look_at_a_users_picture_leaves_no_trace() {
    let folders = Arc::new(Folders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[0], &[5], &[]]));
    upload(&backend, &photos[..1]).await;
    drain(&backend).await;
    for (name, photo) in [("ann", &photos[1]), ("bob", &photos[2]), ("eve", &photos[3])] {
        sign_up(&backend, &email(name)).await;
        show_oneself(&backend, &email(name), photo).await;
    }
    drop(backend);
    let clean = check(Arc::clone(&folders), &folder, Aftermath::Gone).await;
    let backend = open(&copied(&folder, &folders.fresh()));
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
    assert!(!clean.snapshot.rows.iter().any(|row| row.contains("TAGGING#person2")), "nobody is tagged");
    let types: Vec<_> = clean.told.iter().filter_map(|name| name.split(' ').next()).collect();
    assert_eq!(types, ["PersonAllocated", "ProfileProcessed", "ProfileProcessed", "ProfileProcessed"]);
}
