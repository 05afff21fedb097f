//! A crash at any port call of a merge or an unmerge; repeating it must give the same result.

use std::{path::Path, sync::Arc};

use sparks_domain::EventId;
use sparks_embedded::Embedded;
use sparks_engine::MergeError;
use sparks_tests::{
    album::album,
    fault_injection::{Fault, FaultKind, FaultPlan, FaultTiming},
    samples::person,
    snapshot::Snapshot,
    worker::{consolidator, open},
};
use tokio::task::JoinSet;

use super::{
    data_folders::{DataFolders, copy_folder},
    processed_album::ProcessedAlbum,
};

/// The operation under test.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Merge,
    Unmerge(EventId),
}

/// Performs the operation; a repetition finds what an earlier attempt has recorded.
async fn perform(operation: Operation, backend: &Embedded, plan: &Arc<FaultPlan>) -> Result<(), MergeError> {
    let consolidator = consolidator(backend, plan).await?;
    match operation {
        Operation::Merge => match consolidator.merge(person(1), person(2), false).await {
            Ok(_) | Err(MergeError::AlreadyMerged(..)) => {}
            Err(error) => return Err(error),
        },
        Operation::Unmerge(merge) => drop(consolidator.unmerge(merge).await?),
    }
    consolidator.apply_merges(|_| ()).await?;
    Ok(())
}

/// Performs the operation without faults, then with a crash before and after every port call, and compares the results.
async fn check_crashes(folders: Arc<DataFolders>, before: &Path, operation: Operation) -> Snapshot {
    let clean = copy_folder(before, &folders.fresh());
    let (backend, plan) = (open(&clean), FaultPlan::without_faults());
    perform(operation, &backend, &plan).await.unwrap();
    let (clean, calls) = (Arc::new(Snapshot::take(&clean, &backend).await), plan.calls());
    assert_eq!(clean.drift, [""; 0]);
    for call in ["store.commit", "objects.delete", "store.set_checkpoint"] {
        assert!(calls.iter().any(|made| made.starts_with(call)), "no {call} in {calls:#?}");
    }
    let timings = [FaultTiming::BeforeCall, FaultTiming::AfterCall].into_iter();
    let faults =
        timings.flat_map(|timing| (1..=calls.len()).map(move |call| Fault { call, timing, kind: FaultKind::Crash }));
    let mut trials: JoinSet<Option<String>> = JoinSet::new();
    let mut failures = Vec::new();
    for fault in faults {
        while trials.len() >= 6 {
            failures.extend(trials.join_next().await.unwrap().unwrap());
        }
        let (folder, expected, call) =
            (copy_folder(before, &folders.fresh()), Arc::clone(&clean), calls[fault.call - 1].clone());
        trials.spawn(async move {
            let (backend, plan) = (open(&folder), FaultPlan::at(fault));
            let stopped = perform(operation, &backend, &plan).await;
            let survived = stopped.is_ok().then(|| "the operation succeeded despite the crash".to_owned());
            drop(backend);
            let backend = open(&folder);
            let again =
                perform(operation, &backend, &FaultPlan::without_faults()).await.err().map(|error| error.to_string());
            let difference = Snapshot::take(&folder, &backend).await.difference(&expected);
            let failure = survived.or(again).or(difference)?;
            Some(format!("{fault:?} ({call}): {failure}"))
        });
    }
    failures.extend(trials.join_all().await.into_iter().flatten());
    println!("{operation:?}: 2 faults at each of {} calls", calls.len());
    assert!(
        failures.is_empty(),
        "{operation:?}: {} faults changed the result:\n{}",
        failures.len(),
        failures.join("\n")
    );
    Arc::into_inner(clean).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_merge_or_unmerge_after_any_crash_has_the_same_result() {
    let folders = Arc::new(DataFolders::new());
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1], &[0, 2], &[1, 2], &[1]])).await;
    fixture.execute_sql(
        r#"INSERT INTO items (PK, SK, item)
           VALUES ('ann@example.org', 'ann@example.org', '{"entityType":"USER","personId":"person2"}')"#,
    );
    fixture.execute_sql("UPDATE items SET item = json_set(item, '$.displayName', 'Ann') WHERE PK = 'PERSON#person2'");
    // Records the new display name as an event before the merge.
    sparks_tests::worker::rebuilder(&fixture.backend).run(true, |_| ()).await.unwrap();
    let unmerged = Snapshot::take(&fixture.folder, &fixture.backend).await;
    let folder = fixture.folder.clone();
    drop(fixture);
    check_crashes(Arc::clone(&folders), &folder, Operation::Merge).await;

    let merged = copy_folder(&folder, &folders.fresh());
    let backend = open(&merged);
    perform(Operation::Merge, &backend, &FaultPlan::without_faults()).await.unwrap();
    let log = sparks_tests::snapshot::read_log(&backend).await;
    let merge = log.iter().find(|recorded| recorded.event.event_type() == "PersonsMerged").unwrap().id;
    drop(backend);
    let again = check_crashes(folders, &merged, Operation::Unmerge(merge)).await;
    assert_eq!(again.rows, unmerged.rows, "rows after the unmerge");
    assert_eq!(again.objects, unmerged.objects, "objects after the unmerge");
}
