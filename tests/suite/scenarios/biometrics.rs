//! Signatures are stored apart from the event log, so that they can be erased.

use crate::sparks::Sparks;

#[test]
fn the_event_log_contains_no_signature() {
    let sparks = Sparks::new();
    let album = sparks.synth(6, 3, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let database = sparks.database();
    let mut select = database.prepare("SELECT signature FROM faces").unwrap();
    let signatures: Vec<Vec<u8>> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(signatures.len() >= 6);

    // The log as it is printed, and as it is stored.
    let mut select = database.prepare("SELECT * FROM log").unwrap();
    let columns = select.column_count();
    let mut rows = select.query([]).unwrap();
    let mut log = sparks.text(["events", "--json"]).into_bytes();
    while let Some(row) = rows.next().unwrap() {
        for column in 0..columns {
            log.extend(row.get_ref(column).unwrap().as_bytes().map(<[u8]>::to_vec).unwrap_or_default());
        }
    }
    for signature in &signatures {
        for form in forms(&signature[..8]) {
            assert!(
                !log.windows(form.len()).any(|part| part == form.as_slice()),
                "a part of a signature is in the log"
            );
        }
    }
    assert!(log.windows(13).any(|part| part == b"\"synthetic-1\""), "the search finds text that is in the log");
}

/// Returns the ways in which a part of a signature could be written.
fn forms(bytes: &[u8]) -> Vec<Vec<u8>> {
    let signed: Vec<String> = bytes.iter().map(|b| b.cast_signed().to_string()).collect();
    let unsigned: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    vec![bytes.to_vec(), signed.join(",").into(), unsigned.join(",").into(), hex.to_uppercase().into(), hex.into()]
}
