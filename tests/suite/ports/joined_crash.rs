//! Whatever call a merge or its end dies at, doing it again ends as if nothing had happened.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use sparks_domain::EventId;
use sparks_embedded::Embedded;
use sparks_engine::RegisterError;
use sparks_tests::{
    album::album,
    faults::{Aftermath, Fault, Fuse, Moment},
    samples::person,
    snapshot::Snapshot,
    worker::{open, register},
};
use tokio::task::JoinSet;

use super::{embedded::Folders, joined::Known};

/// What is done with two persons.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Join,
    Part(EventId),
}

/// Does it, as often as it takes: whoever does it again finds what was done before.
async fn perform(deed: Deed, backend: &Embedded, fuse: &Arc<Fuse>) -> Result<(), RegisterError> {
    let register = register(backend, fuse).await?;
    match deed {
        Deed::Join => match register.join(person(1), person(2), false).await {
            Ok(_) | Err(RegisterError::Already(..)) => {}
            Err(error) => return Err(error),
        },
        Deed::Part(merge) => drop(register.undo(merge).await?),
    }
    register.follow(|_| ()).await?;
    Ok(())
}

/// A copy of a folder that nobody has open.
pub fn copied(from: &Path, to: &Path) -> PathBuf {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copied(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
    to.to_owned()
}

/// Does it without faults, then with one before and after every call, and compares.
async fn check(folders: Arc<Folders>, before: &Path, deed: Deed) -> Snapshot {
    let clean = copied(before, &folders.fresh());
    let (backend, fuse) = (open(&clean), Fuse::counting());
    perform(deed, &backend, &fuse).await.unwrap();
    let (clean, calls) = (Arc::new(Snapshot::take(&clean, &backend).await), fuse.calls());
    assert_eq!(clean.drift, [""; 0]);
    for call in ["store.commit", "objects.delete", "store.set_mark"] {
        assert!(calls.iter().any(|made| made.starts_with(call)), "no {call} in {calls:#?}");
    }
    let moments = [Moment::Before, Moment::After].into_iter();
    let faults = moments
        .flat_map(|moment| (1..=calls.len()).map(move |call| Fault { call, moment, aftermath: Aftermath::Gone }));
    let mut trials: JoinSet<Option<String>> = JoinSet::new();
    let mut wrong = Vec::new();
    for fault in faults {
        while trials.len() >= 6 {
            wrong.extend(trials.join_next().await.unwrap().unwrap());
        }
        let (folder, expected, call) =
            (copied(before, &folders.fresh()), Arc::clone(&clean), calls[fault.call - 1].clone());
        trials.spawn(async move {
            let (backend, fuse) = (open(&folder), Fuse::at(fault));
            let stopped = perform(deed, &backend, &fuse).await;
            let survived = stopped.is_ok().then(|| "it survived its own end".to_owned());
            drop(backend);
            let backend = open(&folder);
            let again = perform(deed, &backend, &Fuse::counting()).await.err().map(|error| error.to_string());
            let difference = Snapshot::take(&folder, &backend).await.difference(&expected);
            let wrong = survived.or(again).or(difference)?;
            Some(format!("{fault:?} ({call}): {wrong}"))
        });
    }
    wrong.extend(trials.join_all().await.into_iter().flatten());
    println!("{deed:?}: 2 faults at each of {} calls", calls.len());
    assert!(wrong.is_empty(), "{deed:?}: {} faults left a trace:\n{}", wrong.len(), wrong.join("\n"));
    Arc::into_inner(clean).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_at_any_call_of_a_merge_or_its_end_leaves_no_trace() {
    let folders = Arc::new(Folders::new());
    let known = Known::of(&folders, album(&[&[0], &[1], &[0, 2], &[1, 2], &[1]])).await;
    known.by_hand(
        r#"INSERT INTO items (PK, SK, item)
           VALUES ('ann@example.org', 'ann@example.org', '{"entityType":"USER","personId":"person2"}')"#,
    );
    known.by_hand("UPDATE items SET item = json_set(item, '$.displayName', 'Ann') WHERE PK = 'PERSON#person2'");
    // The name is an event before anything else is done.
    sparks_tests::worker::rebuilder(&known.backend).run(true, |_| ()).await.unwrap();
    let parted = Snapshot::take(&known.folder, &known.backend).await;
    let folder = known.folder.clone();
    drop(known);
    check(Arc::clone(&folders), &folder, Deed::Join).await;

    let joined = copied(&folder, &folders.fresh());
    let backend = open(&joined);
    perform(Deed::Join, &backend, &Fuse::counting()).await.unwrap();
    let log = sparks_tests::snapshot::read_log(&backend).await;
    let merge = log.iter().find(|recorded| recorded.event.event_type() == "PersonsMerged").unwrap().id;
    drop(backend);
    let again = check(folders, &joined, Deed::Part(merge)).await;
    assert_eq!(again.rows, parted.rows, "what was there before");
    assert_eq!(again.objects, parted.objects);
}
