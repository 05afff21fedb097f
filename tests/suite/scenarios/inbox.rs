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

    // Not an image, so that it is given up only after 30 s without a change; written first, to wait meanwhile.
    fs::write(inbox.join("not an image.jpg"), "text").unwrap();
    // Written at once; moved into place; written slowly by a process that keeps it open; appended in parts with pauses.
    fs::write(inbox.join("whole.jpg"), platform.photo(0)).unwrap();
    let aside = platform.sparks.path("aside.jpg");
    fs::write(&aside, platform.photo(1)).unwrap();
    fs::create_dir(inbox.join("holiday")).unwrap();
    fs::rename(&aside, inbox.join("holiday/moved.jpg")).unwrap();
    let (slow, parts) = (platform.photo(2), platform.photo(3));
    let mut open = File::create(inbox.join("slow.jpg")).unwrap();
    for n in 0..4 {
        open.write_all(&slow[slow.len() * n / 4..slow.len() * (n + 1) / 4]).unwrap();
        let mut part = OpenOptions::new().create(true).append(true).open(inbox.join("parts.jpg")).unwrap();
        part.write_all(&parts[parts.len() * n / 4..parts.len() * (n + 1) / 4]).unwrap();
        drop(part);
        sleep(Duration::from_secs(3));
    }
    drop(open);

    for done in ["whole.jpg", "holiday/moved.jpg", "slow.jpg", "parts.jpg"] {
        eventually(done, || inbox.join("done").join(done).is_file());
    }
    eventually("the file that is not an image is rejected", || inbox.join("rejected/not an image.jpg").is_file());
    let reason = fs::read_to_string(inbox.join("rejected/not an image.jpg.reason.txt")).unwrap();
    assert!(reason.contains("not a jpeg, png, webp or gif image"), "{reason}");
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 4);
    assert_eq!(platform.sparks.events_of("PhotoRejected").len(), 0, "no incomplete file was uploaded");
    assert_eq!(platform.dead_letters().len(), 0);
}
