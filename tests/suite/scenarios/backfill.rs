//! `sparks backfill`: originals without a message.

use std::fs;

use serde_json::json;

use crate::sparks::Sparks;

const IMAGE: &str = "02df423f-0d45-4d59-b987-2ade841d0fbf";

#[test]
fn originals_missing_from_the_log_are_sent_once() {
    let sparks = Sparks::new();
    let album = sparks.synth(3, 2, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let counts = |args: &[&str]| {
        let report = sparks.json(["backfill"].iter().chain(args));
        ["originals", "known", "sent", "strange"].map(|key| report[key].as_u64().unwrap())
    };
    assert_eq!(counts(&["--dry-run"]), [3, 3, 0, 0]);

    let originals = sparks.data().join("objects/originals");
    let photo = fs::read_dir(&originals).unwrap().next().unwrap().unwrap().path();
    fs::copy(photo, originals.join(format!("{IMAGE}.jpg"))).unwrap();
    fs::write(originals.join("holiday.jpg"), "?").unwrap();
    assert_eq!(counts(&["--since", "2999-01-01"]), [0, 0, 0, 0]);
    assert_eq!(counts(&["--since", "1d", "--dry-run"]), [4, 3, 1, 1]);
    let queued =
        || sparks.database().query_row("SELECT count(*) FROM messages", [], |row| row.get::<_, u32>(0)).unwrap();
    assert_eq!(queued(), 0, "a dry run sends nothing");
    assert_eq!(counts(&[]), [4, 3, 1, 1]);
    counts(&[]);
    assert_eq!(queued(), 1, "a message that is still queued is not sent twice");

    let row = json!({ "entityType": "IMAGE", "imageId": IMAGE, "uploadedBy": "ann@example.com" }).to_string();
    let insert = "INSERT INTO items (PK, SK, item) VALUES (?, 'UPLOADED_BY#ann@example.com', ?)";
    sparks.database().execute(insert, [IMAGE, &row]).unwrap();
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]); // drains the queue
    assert_eq!(counts(&[]), [4, 4, 0, 1]);
    assert!(sparks.data().join(format!("objects/processed/{IMAGE}_large.webp")).is_file());
    sparks.json(["photo", "delete", IMAGE]);
    assert_eq!(counts(&[]), [3, 3, 0, 1]);
}
