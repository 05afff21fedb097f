//! A crash or an outage at any port call of a worker that processes photos; the next worker must reach the same result.

use std::{path::Path, sync::Arc};

use sparks_embedded::Embedded;
use sparks_engine::{Objects, Queue};
use sparks_tests::{
    album::{Photo, album},
    fault_injection::{Fault, FaultKind, FaultPlan, FaultTiming},
    snapshot::{Snapshot, count, expected_groups, photo_groups, read_log},
    worker::{Worker, drain, open, upload},
};
use tokio::task::JoinSet;

use super::data_folders::DataFolders;

/// One new identity, two new ones, two known ones, one known one.
const IDENTITIES: [&[usize]; 4] = [&[0], &[1, 2], &[0, 2], &[1]];

/// The result and the port calls of a run without faults.
struct CleanRun {
    photos: Vec<Photo>,
    snapshot: Snapshot,
    calls: Vec<String>,
}

async fn clean_run(folders: &DataFolders) -> CleanRun {
    let photos = album(&IDENTITIES);
    let folder = folders.fresh();
    let backend = open(&folder);
    upload(&backend, &photos).await;
    let plan = FaultPlan::without_faults();
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    let snapshot = Snapshot::take(&folder, &backend).await;

    let log = read_log(&backend).await;
    assert_eq!((count(&log, "PhotoProcessed"), count(&log, "PersonsAllocated")), (4, 2), "{log:#?}");
    assert_eq!(photo_groups(&log), expected_groups(&photos), "the persons of the clean run");
    assert_eq!((snapshot.dead.len(), snapshot.drift.len(), snapshot.unsettled), (0, 0, 0), "{snapshot:#?}");
    for key in ["persons/person1.jpg", "persons/person2.jpg", "persons/person3.jpg"] {
        assert!(snapshot.objects.get(key).is_some_and(|crop| crop.ends_with("pixels")), "{key} is not a crop");
    }
    CleanRun { photos, snapshot, calls: plan.calls() }
}

/// Uploads photos into a fresh folder and processes them with a fault. All handles are closed when it returns.
async fn upload_and_run_with(fault: Fault, folder: &Path, photos: &[Photo]) -> Result<(), String> {
    upload(&open(folder), photos).await;
    run_with(fault, folder).await
}

/// Processes the remaining messages of a folder with a fault.
async fn run_with(fault: Fault, folder: &Path) -> Result<(), String> {
    let backend = open(folder);
    let plan = FaultPlan::at(fault);
    let stopped = match Worker::start(&backend, &plan).await {
        Ok(worker) => worker.drain(&backend).await,
        Err(stopped) => Err(stopped),
    };
    match (stopped, fault.kind) {
        _ if !plan.has_fired() => Err("the fault never happened".into()),
        (Ok(()), FaultKind::Crash) => Err("the worker finished despite the crash".into()),
        _ => Ok(()),
    }
}

/// Runs a trial for every fault, six at a time, and asserts that all succeed.
async fn check_faults<Fut>(faults: Vec<Fault>, calls: &[String], trial: impl Fn(Fault) -> Fut)
where
    Fut: Future<Output = Result<(), String>> + Send + 'static,
{
    let mut running: JoinSet<Result<(), String>> = JoinSet::new();
    let mut failures = Vec::new();
    let total = faults.len();
    for fault in faults {
        while running.len() >= 6 {
            failures.extend(running.join_next().await.and_then(|trial| trial.unwrap().err()));
        }
        let (trial, call) = (trial(fault), calls[fault.call - 1].clone());
        running.spawn(async move { trial.await.map_err(|error| format!("{fault:?} ({call}): {error}")) });
    }
    failures.extend(running.join_all().await.into_iter().filter_map(Result::err));
    println!("{total} faults at {} calls", calls.len());
    assert!(failures.is_empty(), "{} of {total} faults changed the result:\n{}", failures.len(), failures.join("\n"));
}

fn faults(calls: &[String], kind: FaultKind) -> Vec<Fault> {
    let timings = [FaultTiming::BeforeCall, FaultTiming::AfterCall].into_iter();
    timings.flat_map(|timing| (1..=calls.len()).map(move |call| Fault { call, timing, kind })).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processing_after_any_crash_has_the_same_result() {
    let folders = Arc::new(DataFolders::new());
    let clean = Arc::new(clean_run(&folders).await);
    assert!(clean.calls.len() > 30, "only {} calls: {:#?}", clean.calls.len(), clean.calls);
    check_faults(faults(&clean.calls, FaultKind::Crash), &clean.calls, |fault| {
        let (folder, clean) = (folders.fresh(), Arc::clone(&clean));
        async move {
            upload_and_run_with(fault, &folder, &clean.photos).await?;
            let backend = open(&folder);
            drain(&backend).await;
            let log = read_log(&backend).await;
            if count(&log, "PhotoProcessed") != clean.photos.len() {
                return Err(format!("{} events for {} photos", count(&log, "PhotoProcessed"), clean.photos.len()));
            }
            Snapshot::take(&folder, &backend).await.difference(&clean.snapshot).map_or(Ok(()), Err)
        }
    })
    .await;
}

/// A retried message loses its place in the queue, so person numbers may differ; everything else is the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processing_after_any_outage_has_the_same_groups() {
    let folders = Arc::new(DataFolders::new());
    let clean = Arc::new(clean_run(&folders).await);
    check_faults(faults(&clean.calls, FaultKind::Outage), &clean.calls, |fault| {
        let (folder, clean) = (folders.fresh(), Arc::clone(&clean));
        async move {
            upload_and_run_with(fault, &folder, &clean.photos).await?;
            let backend = open(&folder);
            drain(&backend).await;
            let (log, found) = (read_log(&backend).await, Snapshot::take(&folder, &backend).await);
            let keys = |snapshot: &Snapshot| snapshot.objects.keys().cloned().collect::<Vec<_>>();
            let same = photo_groups(&log) == expected_groups(&clean.photos)
                && count(&log, "PhotoProcessed") == clean.photos.len()
                && found.rows.len() == clean.snapshot.rows.len()
                && keys(&found) == keys(&clean.snapshot)
                && found.dead.is_empty()
                && found.drift.is_empty()
                && found.unsettled == 0;
            if same { Ok(()) } else { Err(found.difference(&clean.snapshot).unwrap_or_else(|| format!("{log:#?}"))) }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crop_lost_in_a_crash_after_the_commit_is_stored_later() {
    let folders = DataFolders::new();
    let clean = clean_run(&folders).await;
    let crops = (1..).zip(&clean.calls).filter_map(|(call, what)| {
        let key = what.strip_prefix("objects.put ").filter(|key| key.starts_with("persons/"))?;
        Some((call, key.to_owned()))
    });
    let crops: Vec<(usize, String)> = crops.collect();
    assert_eq!(crops.len(), 3, "crops stored: {:#?}", clean.calls);
    for (call, key) in crops {
        let folder = folders.fresh();
        let fault = Fault { call, timing: FaultTiming::BeforeCall, kind: FaultKind::Crash };
        upload_and_run_with(fault, &folder, &clean.photos).await.unwrap();
        let backend = open(&folder);
        assert!(is_committed(&backend, &key).await, "the worker crashed before the commit of {key}");
        assert_eq!(backend.objects.head(&key).await.unwrap(), None, "{key} exists before it was stored");
        drain(&backend).await;
        let crop = Snapshot::take(&folder, &backend).await.objects.remove(&key);
        assert_eq!(crop.as_ref(), clean.snapshot.objects.get(&key), "{key} after the second worker");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn recovery_after_a_crash_during_recovery_has_the_same_result() {
    let folders = Arc::new(DataFolders::new());
    let clean = Arc::new(clean_run(&folders).await);
    let crop = clean.calls.iter().position(|call| call == "objects.put persons/person2.jpg").unwrap() + 1;
    let first = Fault { call: crop, timing: FaultTiming::BeforeCall, kind: FaultKind::Crash };

    let folder = folders.fresh();
    upload_and_run_with(first, &folder, &clean.photos).await.unwrap();
    let (backend, plan) = (open(&folder), FaultPlan::without_faults());
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    let calls = plan.calls();
    assert!(
        calls.iter().any(|call| call.starts_with("objects.get processed/")),
        "the crop was not restored: {calls:#?}"
    );
    check_faults(faults(&calls, FaultKind::Crash), &calls, |second| {
        let (folder, clean) = (folders.fresh(), Arc::clone(&clean));
        async move {
            upload_and_run_with(first, &folder, &clean.photos).await?;
            run_with(second, &folder).await?;
            let backend = open(&folder);
            drain(&backend).await;
            Snapshot::take(&folder, &backend).await.difference(&clean.snapshot).map_or(Ok(()), Err)
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_before_the_acknowledgement_repeats_no_write() {
    let folders = DataFolders::new();
    let clean = clean_run(&folders).await;
    let last = clean.calls.iter().rposition(|call| call == "queue.settle acknowledge").unwrap() + 1;
    let folder = folders.fresh();
    let fault = Fault { call: last, timing: FaultTiming::BeforeCall, kind: FaultKind::Crash };
    upload_and_run_with(fault, &folder, &clean.photos).await.unwrap();
    let backend = open(&folder);
    let before = std::fs::metadata(folder.join("objects/persons/person1.jpg")).unwrap().modified().unwrap();
    let depth = backend.queue.depth().await.unwrap();
    assert_eq!(depth.waiting + depth.leased, 1, "unacknowledged messages");
    let plan = FaultPlan::without_faults();
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    let calls = plan.calls();
    assert!(!calls.iter().any(|call| call.contains("put")), "objects were stored again: {calls:#?}");
    let after = std::fs::metadata(folder.join("objects/persons/person1.jpg")).unwrap().modified().unwrap();
    assert_eq!(before, after, "the crop was written again");
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&clean.snapshot), None);
}

/// Returns whether the log holds the allocation of this crop's person.
async fn is_committed(backend: &Embedded, crop: &str) -> bool {
    let person = crop.trim_start_matches("persons/").trim_end_matches(".jpg");
    read_log(backend).await.iter().any(|recorded| {
        recorded.event.event_type() == "PersonsAllocated"
            && recorded.event.to_data().contains(&format!("\"person\":\"{person}\""))
    })
}
