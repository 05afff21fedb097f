//! Rebuilds and comparisons beside deletions and merges: the other process runs before each port call, so that every interleaving is
//! tried.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::Connection;
use sparks_domain::{EventId, Key, Projection};
use sparks_engine::{Drift, Maintenance, Objects, Rebuilder, Store, StoreError, SystemClock};
use sparks_tests::{
    album::album,
    fault_injection::FaultPlan,
    platform_actions::{deletion_message, original_key, removal_message, send, set_upload_limit},
    samples::person,
    worker::{consolidator, drain, open, rebuilder},
};
use tokio::task::JoinSet;

use super::{
    data_folders::{DataFolders, copy_folder},
    processed_album::ProcessedAlbum,
};

/// What the other process does.
#[derive(Debug, Clone, Copy)]
enum Action {
    /// Processes the waiting messages.
    Drain,
    Merge(u32, u32),
    Unmerge(EventId),
    Rename(&'static str),
}

impl Action {
    async fn perform(self, folder: PathBuf) {
        let backend = open(&folder);
        match self {
            Self::Drain => drain(&backend).await,
            Self::Merge(a, b) => {
                let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
                consolidator.merge(person(a), person(b), false).await.unwrap();
                consolidator.apply_merges(|_| ()).await.unwrap();
            }
            Self::Unmerge(merge) => {
                let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
                consolidator.unmerge(merge).await.unwrap();
                consolidator.apply_merges(|_| ()).await.unwrap();
            }
            Self::Rename(name) => {
                let update = "UPDATE items SET item = json_set(item, '$.displayName', ?) WHERE PK = 'PERSON#person3'";
                connect(&folder).execute(update, [name]).unwrap();
            }
        }
    }
}

fn connect(folder: &Path) -> Connection {
    Connection::open(folder.join("sparks.db")).unwrap()
}

async fn run(folder: &Path, write: bool, plan: &Arc<FaultPlan>) -> Result<Drift, StoreError> {
    let store = plan.wrap(open(folder).store as Arc<dyn Maintenance>);
    Rebuilder::new(store, Arc::new(SystemClock), Projection::default(), "tests".into()).run(write, |_| ()).await
}

/// Runs a rebuild (`write`) or a comparison, and the action before each of its port calls and after the last. Afterwards the table
/// must not differ from the log, and these persons must have no row. A comparison must report no difference.
async fn check_interleavings(folders: &DataFolders, folder: &Path, write: bool, action: Action, without_row: &[u32]) {
    let plan = FaultPlan::without_faults();
    run(&copy_folder(folder, &folders.fresh()), write, &plan).await.unwrap();
    let calls = plan.calls().len();
    let (mut trials, mut failures) = (JoinSet::new(), Vec::new());
    for call in 1..=calls + 1 {
        while trials.len() >= 4 {
            failures.extend(trials.join_next().await.and_then(|trial: Result<Option<String>, _>| trial.unwrap()));
        }
        let (folder, without_row) = (copy_folder(folder, &folders.fresh()), without_row.to_vec());
        trials.spawn(async move {
            let plan = FaultPlan::interrupting_call_number(call, action.perform(folder.clone()));
            let done = run(&folder, write, &plan).await;
            if !plan.has_interruption_run() {
                action.perform(folder.clone()).await;
            }
            let name = plan.calls().get(call - 1).cloned();
            let error = check(&folder, done, write, &without_row).await.err()?;
            Some(format!("{action:?} before call {call} ({name:?}): {error}"))
        });
    }
    failures.extend(trials.join_all().await.into_iter().flatten());
    println!("{action:?} before each of {calls} calls");
    assert!(failures.is_empty(), "{} of {calls} interleavings fail:\n{}", failures.len(), failures.join("\n"));
}

async fn check(folder: &Path, done: Result<Drift, StoreError>, write: bool, without_row: &[u32]) -> Result<(), String> {
    let drift = done.map_err(|error| error.to_string())?;
    if !write && drift.total != 0 {
        return Err(format!("the comparison reported {:?}", drift.differences));
    }
    let backend = open(folder);
    let left = rebuilder(&backend).run(false, |_| ()).await.unwrap();
    if left.total != 0 {
        return Err(format!("{:?}", left.differences));
    }
    for number in without_row {
        if backend.store.get(&Key::person(person(*number))).await.unwrap().is_some() {
            return Err(format!("person{number} has a row"));
        }
    }
    Ok(())
}

/// Processes photos of four identities. Messages to delete photos of identities 0 and 3 are waiting: person1 and person4 are forgotten
/// when they are processed.
async fn album_with_waiting_deletions(folders: &DataFolders) -> PathBuf {
    let fixture = ProcessedAlbum::create(folders, album(&[&[0], &[1], &[2, 1], &[3, 2]])).await;
    set_upload_limit(&fixture.backend, 10).await;
    send(&fixture.backend, deletion_message(&fixture.photos[0])).await;
    fixture.backend.objects.delete(&original_key(&fixture.photos[3])).await.unwrap();
    send(&fixture.backend, removal_message(&fixture.photos[3])).await;
    fixture.folder
}

/// Removes rows and attributes, so that a rebuild has something to write.
fn damage(folder: &Path) {
    let connection = connect(folder);
    for damage in [
        "DELETE FROM items WHERE entityType LIKE 'TAGGING#%' OR PK IN ('PERSON#person1', 'PERSON#person2')",
        "UPDATE items SET item = json_remove(item, '$.persons') WHERE SK LIKE 'UPLOADED_BY#%'",
        "UPDATE items SET item = json_remove(item, '$.s3Key') WHERE PK = 'PERSON#person4'",
    ] {
        assert!(connection.execute(damage, []).unwrap() > 0, "{damage}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rebuild_during_a_deletion_brings_nothing_back() {
    let folders = DataFolders::new();
    let folder = album_with_waiting_deletions(&folders).await;
    check_interleavings(&folders, &folder, true, Action::Drain, &[1, 4]).await;
    damage(&folder);
    check_interleavings(&folders, &folder, true, Action::Drain, &[1, 4]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rebuild_during_a_merge_or_unmerge_ends_without_drift() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1], &[1, 2], &[3]])).await;
    let folder = fixture.folder.clone();
    drop(fixture);
    damage(&folder);
    check_interleavings(&folders, &folder, true, Action::Merge(1, 2), &[2]).await;
    check_interleavings(&folders, &folder, true, Action::Rename("Ada"), &[]).await;

    let backend = open(&folder);
    rebuilder(&backend).run(true, |_| ()).await.unwrap();
    let merger = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
    let merged = merger.merge(person(1), person(2), false).await.unwrap();
    merger.apply_merges(|_| ()).await.unwrap();
    drop((merger, backend));
    connect(&folder).execute("DELETE FROM items WHERE SK IN ('PERSON#person1', 'person4')", []).unwrap();
    check_interleavings(&folders, &folder, true, Action::Unmerge(merged.event), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_comparison_during_changes_reports_no_difference() {
    let folders = DataFolders::new();
    let folder = album_with_waiting_deletions(&folders).await;
    check_interleavings(&folders, &folder, false, Action::Drain, &[1, 4]).await;
    check_interleavings(&folders, &folder, false, Action::Merge(1, 2), &[2]).await;
}
