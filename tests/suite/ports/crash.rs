//! Whatever call a worker dies at, the next one finishes as if nothing had happened.

use std::{path::Path, sync::Arc};

use sparks_embedded::Embedded;
use sparks_engine::{Objects, Queue};
use sparks_tests::{
    album::{Photo, album},
    faults::{Aftermath, Fault, Fuse, Moment},
    snapshot::{Snapshot, count, groups, read_log, truth},
    worker::{Worker, drain, open, upload},
};
use tokio::task::JoinSet;

use super::embedded::Folders;

/// One stranger, two strangers, two known persons, one known person.
const CASTS: [&[usize]; 4] = [&[0], &[1, 2], &[0, 2], &[1]];

/// A run without faults: what it leaves, and the calls it makes.
struct CleanRun {
    photos: Vec<Photo>,
    snapshot: Snapshot,
    calls: Vec<String>,
}

async fn clean_run(folders: &Folders) -> CleanRun {
    let photos = album(&CASTS);
    let folder = folders.fresh();
    let backend = open(&folder);
    upload(&backend, &photos).await;
    let fuse = Fuse::counting();
    Worker::start(&backend, &fuse).await.unwrap().drain(&backend).await.unwrap();
    let snapshot = Snapshot::take(&folder, &backend).await;

    let log = read_log(&backend).await;
    assert_eq!((count(&log, "PhotoProcessed"), count(&log, "PersonsAllocated")), (4, 2), "{log:#?}");
    assert_eq!(groups(&log), truth(&photos), "the persons of the clean run");
    assert_eq!((snapshot.dead.len(), snapshot.drift.len(), snapshot.unsettled), (0, 0, 0), "{snapshot:#?}");
    for key in ["persons/person1.jpg", "persons/person2.jpg", "persons/person3.jpg"] {
        assert!(snapshot.objects.get(key).is_some_and(|crop| crop.ends_with("pixels")), "{key} is no crop");
    }
    CleanRun { photos, snapshot, calls: fuse.calls() }
}

/// Works on a fresh folder until the fault stops it, if it does. Everything of this process is gone when it returns.
async fn run_into(fault: Fault, folder: &Path, photos: &[Photo]) -> Result<(), String> {
    upload(&open(folder), photos).await;
    work_into(fault, folder).await
}

/// Works on what is left in a folder until the fault stops it, if it does.
async fn work_into(fault: Fault, folder: &Path) -> Result<(), String> {
    let backend = open(folder);
    let fuse = Fuse::at(fault);
    let stopped = match Worker::start(&backend, &fuse).await {
        Ok(worker) => worker.drain(&backend).await,
        Err(stopped) => Err(stopped),
    };
    match (stopped, fault.aftermath) {
        _ if !fuse.has_blown() => Err("the fault never happened".into()),
        (Ok(()), Aftermath::Gone) => Err("the worker survived its own end".into()),
        _ => Ok(()),
    }
}

/// Tries a fault at every call, several at a time, and gathers what went wrong.
async fn at_every_call<Fut>(faults: Vec<Fault>, calls: &[String], trial: impl Fn(Fault) -> Fut)
where
    Fut: Future<Output = Result<(), String>> + Send + 'static,
{
    let mut running: JoinSet<Result<(), String>> = JoinSet::new();
    let mut wrong = Vec::new();
    let tried = faults.len();
    for fault in faults {
        while running.len() >= 6 {
            wrong.extend(running.join_next().await.and_then(|trial| trial.unwrap().err()));
        }
        let (trial, call) = (trial(fault), calls[fault.call - 1].clone());
        running.spawn(async move { trial.await.map_err(|wrong| format!("{fault:?} ({call}): {wrong}")) });
    }
    wrong.extend(running.join_all().await.into_iter().filter_map(Result::err));
    println!("{tried} faults at {} calls", calls.len());
    assert!(wrong.is_empty(), "{} of {tried} faults left a trace:\n{}", wrong.len(), wrong.join("\n"));
}

fn faults(calls: &[String], aftermath: Aftermath) -> Vec<Fault> {
    let moments = [Moment::Before, Moment::After].into_iter();
    moments.flat_map(|moment| (1..=calls.len()).map(move |call| Fault { call, moment, aftermath })).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_at_any_call_leaves_no_trace() {
    let folders = Arc::new(Folders::new());
    let clean = Arc::new(clean_run(&folders).await);
    assert!(clean.calls.len() > 30, "only {} calls: {:#?}", clean.calls.len(), clean.calls);
    at_every_call(faults(&clean.calls, Aftermath::Gone), &clean.calls, |fault| {
        let (folder, clean) = (folders.fresh(), Arc::clone(&clean));
        async move {
            run_into(fault, &folder, &clean.photos).await?;
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

/// A message that is tried again later loses its place, so persons may be numbered otherwise; all else is the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_outage_at_any_call_leaves_no_trace() {
    let folders = Arc::new(Folders::new());
    let clean = Arc::new(clean_run(&folders).await);
    at_every_call(faults(&clean.calls, Aftermath::GoesOn), &clean.calls, |fault| {
        let (folder, clean) = (folders.fresh(), Arc::clone(&clean));
        async move {
            run_into(fault, &folder, &clean.photos).await?;
            let backend = open(&folder);
            drain(&backend).await;
            let (log, found) = (read_log(&backend).await, Snapshot::take(&folder, &backend).await);
            let keys = |snapshot: &Snapshot| snapshot.objects.keys().cloned().collect::<Vec<_>>();
            let same = groups(&log) == truth(&clean.photos)
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
async fn a_crash_between_the_commit_and_a_crop_still_gives_the_crop() {
    let folders = Folders::new();
    let clean = clean_run(&folders).await;
    let crops = (1..).zip(&clean.calls).filter_map(|(call, what)| {
        let key = what.strip_prefix("objects.put ").filter(|key| key.starts_with("persons/"))?;
        Some((call, key.to_owned()))
    });
    let crops: Vec<(usize, String)> = crops.collect();
    assert_eq!(crops.len(), 3, "a crop for every person: {:#?}", clean.calls);
    for (call, key) in crops {
        let folder = folders.fresh();
        let fault = Fault { call, moment: Moment::Before, aftermath: Aftermath::Gone };
        run_into(fault, &folder, &clean.photos).await.unwrap();
        let backend = open(&folder);
        assert!(is_committed(&backend, &key).await, "the worker died before it committed {key}");
        assert_eq!(backend.objects.head(&key).await.unwrap(), None, "{key} is there before anybody made it");
        drain(&backend).await;
        let crop = Snapshot::take(&folder, &backend).await.objects.remove(&key);
        assert_eq!(crop.as_ref(), clean.snapshot.objects.get(&key), "{key} after the second worker");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_while_making_good_for_a_crash_leaves_no_trace() {
    let folders = Arc::new(Folders::new());
    let clean = Arc::new(clean_run(&folders).await);
    let crop = clean.calls.iter().position(|call| call == "objects.put persons/person2.jpg").unwrap() + 1;
    let first = Fault { call: crop, moment: Moment::Before, aftermath: Aftermath::Gone };

    let folder = folders.fresh();
    run_into(first, &folder, &clean.photos).await.unwrap();
    let (backend, fuse) = (open(&folder), Fuse::counting());
    Worker::start(&backend, &fuse).await.unwrap().drain(&backend).await.unwrap();
    let calls = fuse.calls();
    assert!(calls.iter().any(|call| call.starts_with("objects.get processed/")), "nothing was made good: {calls:#?}");
    at_every_call(faults(&calls, Aftermath::Gone), &calls, |second| {
        let (folder, clean) = (folders.fresh(), Arc::clone(&clean));
        async move {
            run_into(first, &folder, &clean.photos).await?;
            work_into(second, &folder).await?;
            let backend = open(&folder);
            drain(&backend).await;
            Snapshot::take(&folder, &backend).await.difference(&clean.snapshot).map_or(Ok(()), Err)
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_before_the_acknowledgement_does_nothing_twice() {
    let folders = Folders::new();
    let clean = clean_run(&folders).await;
    let last = clean.calls.iter().rposition(|call| call == "queue.settle done").unwrap() + 1;
    let folder = folders.fresh();
    let fault = Fault { call: last, moment: Moment::Before, aftermath: Aftermath::Gone };
    run_into(fault, &folder, &clean.photos).await.unwrap();
    let backend = open(&folder);
    let before = std::fs::metadata(folder.join("objects/persons/person1.jpg")).unwrap().modified().unwrap();
    let depth = backend.queue.depth().await.unwrap();
    assert_eq!(depth.waiting + depth.leased, 1, "the message that was never acknowledged");
    let fuse = Fuse::counting();
    Worker::start(&backend, &fuse).await.unwrap().drain(&backend).await.unwrap();
    let calls = fuse.calls();
    assert!(!calls.iter().any(|call| call.contains("put")), "drawn again: {calls:#?}");
    let after = std::fs::metadata(folder.join("objects/persons/person1.jpg")).unwrap().modified().unwrap();
    assert_eq!(before, after, "the crop was written again");
    assert_eq!(Snapshot::take(&folder, &backend).await.difference(&clean.snapshot), None);
}

/// Whether the person of this crop is in the log.
async fn is_committed(backend: &Embedded, crop: &str) -> bool {
    let person = crop.trim_start_matches("persons/").trim_end_matches(".jpg");
    read_log(backend).await.iter().any(|recorded| {
        recorded.event.event_type() == "PersonsAllocated"
            && recorded.event.to_data().contains(&format!("\"person\":\"{person}\""))
    })
}
