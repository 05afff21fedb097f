//! The inbox folder: photos that users copy, move or write into it.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    thread::sleep,
    time::Duration,
};

use crate::harness::{Platform, eventually};

#[test]
fn each_file_is_ingested_once_and_only_when_it_is_complete() {
    let platform = Platform::new(4, 2);
    let _worker = platform.worker(&[]);
    let inbox = platform.sparks.data().join("inbox");

    // Written at once; moved into place; written slowly by a process that keeps it open; appended in parts with pauses.
    fs::write(inbox.join("whole.jpg"), platform.photo(0)).unwrap();
    let aside = platform.sparks.path("aside.jpg");
    fs::write(&aside, platform.photo(1)).unwrap();
    fs::create_dir(inbox.join("holiday")).unwrap();
    fs::rename(&aside, inbox.join("holiday/moved.jpg")).unwrap();
    let (slow, parts) = (platform.photo(2), platform.photo(3));
    let mut open = File::create(inbox.join("slow.jpg")).unwrap();
    for n in 0..3 {
        open.write_all(&slow[slow.len() * n / 3..slow.len() * (n + 1) / 3]).unwrap();
        let mut part = OpenOptions::new().create(true).append(true).open(inbox.join("parts.jpg")).unwrap();
        part.write_all(&parts[parts.len() * n / 3..parts.len() * (n + 1) / 3]).unwrap();
        drop(part);
        sleep(Duration::from_secs(3)); // after 2 s without a change a file is checked
    }
    drop(open);

    for done in ["whole.jpg", "holiday/moved.jpg", "slow.jpg", "parts.jpg"] {
        eventually(done, || inbox.join("done").join(done).is_file());
    }
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 4);
    assert_eq!(platform.sparks.events_of("PhotoRejected").len(), 0, "no incomplete file was uploaded");
    assert_eq!(platform.dead_letters().len(), 0);
}
