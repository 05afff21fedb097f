//! Merges and unmerges that race with a photo, a profile picture or a review of the same persons: they run before each port call, so
//! that every interleaving is tried.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;
use sparks_domain::{Email, Event, Key, Merges, PersonId, RecordedEvent};
use sparks_embedded::Embedded;
use sparks_engine::Store;
use sparks_tests::{
    album::{Photo, album, photo, photo_between},
    fault_injection::{FaultPlan, Interruption},
    platform_actions::{original_key, send, sign_up, upload_profile_picture},
    samples::person,
    snapshot::read_log,
    worker::{BUCKET, Worker, consolidator, drain, image_of, open, rebuilder, upload},
};
use tokio::task::JoinSet;

use super::data_folders::{DataFolders, copy_folder};

/// What the other process does.
#[derive(Debug, Clone, Copy)]
enum Action {
    /// Merges person2 into person1.
    Merge,
    /// Undoes the last merge.
    Unmerge,
}

impl Action {
    async fn perform(self, folder: PathBuf) {
        let backend = open(&folder);
        let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
        match self {
            Self::Merge => drop(consolidator.merge(person(1), person(2), false).await.unwrap()),
            Self::Unmerge => {
                let log = read_log(&backend).await;
                let merge = log.iter().rfind(|recorded| matches!(recorded.event, Event::PersonsMerged(_)));
                consolidator.unmerge(merge.unwrap().id).await.unwrap();
            }
        }
        consolidator.apply_merges(|_| ()).await.unwrap();
    }
}

/// The process under test.
#[derive(Debug, Clone, Copy)]
enum Process {
    /// A worker that processes the waiting message.
    Worker,
    /// A review of unidentified faces.
    Review,
}

impl Process {
    async fn run(self, folder: &Path, plan: &Arc<FaultPlan>) {
        let backend = open(folder);
        match self {
            Self::Worker => Worker::start(&backend, plan).await.unwrap().drain(&backend).await.unwrap(),
            Self::Review => drop(consolidator(&backend, plan).await.unwrap().review().await.unwrap()),
        }
    }
}

/// The number of interleavings that are tried, evenly spread, unless all are asked for.
const SAMPLE: usize = 60;

/// Runs a process and, before each of its port calls and after the last, the actions: in all combinations of calls, in this order.
async fn check_interleavings(folders: &Arc<DataFolders>, folder: &Path, process: Process, actions: &[Action]) {
    let plan = FaultPlan::without_faults();
    process.run(&copy_folder(folder, &folders.fresh()), &plan).await;
    let last = plan.calls().len() + 1;
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in actions {
        let longer = |order: &Vec<usize>| {
            let from = order.last().copied().unwrap_or(1);
            (from..=last).map(|call| [order.as_slice(), &[call]].concat()).collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    if std::env::var_os("SPARKS_TEST_ALL_INTERLEAVINGS").is_none() {
        orders = orders.iter().step_by(orders.len().div_ceil(SAMPLE)).cloned().collect();
    }
    let (count, mut trials, mut failures) = (orders.len(), JoinSet::new(), Vec::new());
    for order in orders {
        while trials.len() >= 4 {
            failures.extend(trials.join_next().await.and_then(|trial: Result<Option<String>, _>| trial.unwrap()));
        }
        let (folder, actions) = (copy_folder(folder, &folders.fresh()), actions.to_vec());
        trials.spawn(async move {
            let action =
                |(call, action): (&usize, &Action)| (*call, Box::pin(action.perform(folder.clone())) as Interruption);
            let plan = FaultPlan::interrupting_calls(order.iter().zip(&actions).map(action).collect());
            process.run(&folder, &plan).await;
            for left in plan.left_interruptions() {
                left.await;
            }
            let calls = plan.calls();
            let names: Vec<_> = order.iter().map(|call| calls.get(call - 1)).collect();
            let error = check(&open(&folder)).await.err()?;
            std::fs::remove_dir_all(&folder).unwrap();
            Some(format!("{actions:?} before the calls {order:?} ({names:?}): {error}"))
        });
    }
    failures.extend(trials.join_all().await.into_iter().flatten());
    println!("{count} interleavings of {process:?} and {actions:?}");
    assert!(failures.is_empty(), "{} of {count} interleavings fail:\n{}", failures.len(), failures.join("\n"));
}

/// Fails if the table differs from the log, or if a decision applied a merge that was undone before it was recorded.
async fn check(backend: &Embedded) -> Result<(), String> {
    let drift = rebuilder(backend).run(false, |_| ()).await.unwrap();
    if drift.total != 0 {
        return Err(format!("{:?}", drift.differences));
    }
    let mut merges = Merges::default();
    for RecordedEvent { event, .. } in read_log(backend).await {
        merges.evolve(&event);
        let decided: Vec<PersonId> = match &event {
            Event::PhotoProcessed(photo) if photo.image_id == image_of(&new_photo()) => photo.persons(),
            Event::ProfileProcessed(profile) => profile.person().into_iter().collect(),
            Event::FacesReviewed(review) if !merges.is_absorbed(person(2)) => {
                return Err(format!("{:?} is recorded after the unmerge", review.faces));
            }
            _ => continue,
        };
        if !merges.is_absorbed(person(2)) && decided != [person(2)] {
            return Err(format!("{decided:?} is decided while the persons are not merged"));
        }
    }
    Ok(())
}

/// Returns a photo of person2.
fn new_photo() -> Photo {
    photo(50, &[1])
}

/// Creates a folder with person1 and person2, and lets `prepare` add to it.
async fn folder_of_two_persons(folders: &DataFolders, prepare: impl AsyncFnOnce(&Embedded)) -> PathBuf {
    let folder = folders.fresh();
    let backend = open(&folder);
    upload(&backend, &album(&[&[0], &[1]])).await;
    drain(&backend).await;
    prepare(&backend).await;
    folder
}

/// Tries all orders of one merge or unmerge, and of both, from separate and from merged persons.
async fn check_all(folders: &Arc<DataFolders>, separate: &Path, process: Process) {
    check_interleavings(folders, separate, process, &[Action::Merge]).await;
    check_interleavings(folders, separate, process, &[Action::Merge, Action::Unmerge]).await;
    let merged = copy_folder(separate, &folders.fresh());
    Action::Merge.perform(merged.clone()).await;
    check_interleavings(folders, &merged, process, &[Action::Unmerge]).await;
    check_interleavings(folders, &merged, process, &[Action::Unmerge, Action::Merge]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_during_merges_and_unmerges_is_tagged_correctly() {
    let folders = Arc::new(DataFolders::new());
    let upload_new = async |backend: &Embedded| upload(backend, &[new_photo()]).await;
    let folder = folder_of_two_persons(&folders, upload_new).await;
    check_all(&folders, &folder, Process::Worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivery_during_merges_and_unmerges_keeps_the_tags_correct() {
    let folders = Arc::new(DataFolders::new());
    let deliver_again = async |backend: &Embedded| {
        upload(backend, &[new_photo()]).await;
        drain(backend).await;
        let (bucket, object) = (json!({ "name": BUCKET }), json!({ "key": original_key(&new_photo()) }));
        send(backend, json!({ "Records": [{ "s3": { "bucket": bucket, "object": object } }] })).await;
    };
    let folder = folder_of_two_persons(&folders, deliver_again).await;
    check_all(&folders, &folder, Process::Worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_profile_picture_during_merges_and_unmerges_links_the_user_correctly() {
    let folders = Arc::new(DataFolders::new());
    let ann: Email = "ann@example.org".parse().unwrap();
    let upload_picture = async |backend: &Embedded| {
        sign_up(backend, &ann).await;
        upload_profile_picture(backend, &ann, &new_photo()).await;
    };
    let folder = folder_of_two_persons(&folders, upload_picture).await;
    assert!(open(&folder).store.get(&Key::user(&ann)).await.unwrap().is_some());
    check_all(&folders, &folder, Process::Worker).await;
}

/// The face is equally similar to both persons, so it is identified only while they are merged.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_during_merges_and_unmerges_tags_correctly() {
    let folders = Arc::new(DataFolders::new());
    let add_unclear = async |backend: &Embedded| {
        upload(backend, &[photo_between(9, 0, 1)]).await;
        drain(backend).await;
    };
    let folder = folder_of_two_persons(&folders, add_unclear).await;
    check_all(&folders, &folder, Process::Review).await;
}
