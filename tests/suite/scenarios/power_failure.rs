//! What survives a power failure: a file or folder that got a new name is durable only once the folder of that name is synced.
//!
//! The calls of the binary are recorded by a library that is preloaded into it (`record_syncs.c`): a power failure cannot be
//! simulated without a file system of its own.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    harness::{Platform, created, eventually},
    sparks::root,
};

/// Compiles the library that records calls.
fn recorder(folder: &Path) -> PathBuf {
    let library = folder.join("record_syncs.so");
    let source = root().join("tests/suite/scenarios/record_syncs.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").status();
    assert!(compiled.expect("a C compiler, `cc`, as the build needs").success());
    library
}

#[test]
fn the_folder_of_every_new_name_is_synced() {
    let platform = Platform::new(3, 2);
    let record = platform.sparks.path("record");
    let library = recorder(platform.sparks.path("").as_path());
    let preload: [(&str, &OsStr); 2] = [("LD_PRELOAD", library.as_os_str()), ("RECORD_SYNCS", record.as_os_str())];
    fs::remove_dir_all(platform.sparks.data()).unwrap(); // so that all folders are new

    let worker = platform.worker_by(&[], |mut command| {
        command.envs(preload);
        command
    });
    let inbox = platform.sparks.data().join("inbox");
    fs::create_dir(inbox.join("holiday")).unwrap();
    fs::write(inbox.join("holiday/photo.jpg"), platform.photo(0)).unwrap();
    platform.send(&[created(&platform.upload(1)), "not JSON".into()]);
    let done = inbox.join("done/holiday/photo.jpg");
    eventually("both photos are processed", || platform.unsettled() == 0 && done.exists());
    drop(worker);
    let exported = platform.sparks.path("exported");
    let mut export = platform.command(["dlq", "export", "-o", exported.to_str().unwrap()]);
    assert!(export.envs(preload).output().unwrap().status.success());

    let calls = fs::read_to_string(&record).unwrap();
    let calls: Vec<(&str, &Path)> =
        calls.lines().map(|line| line.split_once(' ').unwrap()).map(|(call, path)| (call, Path::new(path))).collect();
    let named = |path: &Path| calls.contains(&("name", path));
    let data = platform.sparks.data();
    let expected = ["objects", "objects/processed", "inbox/done/holiday", "inbox/done/holiday/photo.jpg"];
    assert!(expected.iter().all(|path| named(&data.join(path))) && named(&exported), "{calls:#?}");
    let below = |folder: &str| calls.iter().filter(|(_, path)| path.parent() == Some(&data.join(folder))).count();
    assert!(below("objects/originals") > 0 && below("objects/processed") >= 4 && below("objects/persons") > 0);

    let is_synced = |n: usize, path: &Path| calls[n..].contains(&("sync", path.parent().unwrap()));
    // The lock of a process ends with it.
    let is_durable = |path: &Path| path.parent() != Some(&data.join("owners"));
    let mut unsynced: Vec<&Path> = Vec::new();
    for (n, (_, path)) in calls.iter().enumerate().filter(|(_, (call, path))| *call == "name" && is_durable(path)) {
        if !is_synced(n, path) {
            unsynced.push(path);
        }
    }
    assert!(unsynced.is_empty(), "folders are not synced after new names in them: {unsynced:#?}");
}
