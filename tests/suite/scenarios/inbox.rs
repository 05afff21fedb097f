//! A folder into which photos are copied, in whatever way.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    thread::sleep,
    time::Duration,
};

use crate::platform::{Platform, eventually};

#[test]
fn files_are_taken_once_complete_however_they_come() {
    let platform = Platform::new(4, 2);
    let _worker = platform.worker(&[]);
    let inbox = platform.sparks.data().join("inbox");

    // Copied at once; moved into place; written slowly by a process that keeps it open; written in pieces with pauses.
    fs::write(inbox.join("at once.jpg"), platform.picture(0)).unwrap();
    let aside = platform.sparks.path("aside.jpg");
    fs::write(&aside, platform.picture(1)).unwrap();
    fs::create_dir(inbox.join("holiday")).unwrap();
    fs::rename(&aside, inbox.join("holiday/moved.jpg")).unwrap();
    let (slow, pieces) = (platform.picture(2), platform.picture(3));
    let mut open = File::create(inbox.join("slow.jpg")).unwrap();
    for n in 0..4 {
        open.write_all(&slow[slow.len() * n / 4..slow.len() * (n + 1) / 4]).unwrap();
        let mut piece = OpenOptions::new().create(true).append(true).open(inbox.join("pieces.jpg")).unwrap();
        piece.write_all(&pieces[pieces.len() * n / 4..pieces.len() * (n + 1) / 4]).unwrap();
        drop(piece);
        sleep(Duration::from_secs(4));
    }
    drop(open);
    fs::write(inbox.join("not a picture.jpg"), "words").unwrap();

    for done in ["at once.jpg", "holiday/moved.jpg", "slow.jpg", "pieces.jpg"] {
        eventually(done, || inbox.join("done").join(done).is_file());
    }
    eventually("what is no picture is rejected", || inbox.join("rejected/not a picture.jpg").is_file());
    let reason = fs::read_to_string(inbox.join("rejected/not a picture.jpg.reason.txt")).unwrap();
    assert!(reason.contains("not a picture"), "{reason}");
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 4);
    assert_eq!(platform.sparks.events_of("PhotoRejected").len(), 0, "nothing was taken half");
    assert_eq!(platform.letters().len(), 0);
}
