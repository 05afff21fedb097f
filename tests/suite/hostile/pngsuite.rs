//! PngSuite: valid files are decoded to the pixels of an independent decoder, invalid ones are rejected.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use sparks_engine::ImageProcessor;
use sparks_media::LocalImageProcessor;

use super::{crate_path, data, files};

/// Returns size and digest of each valid file, computed by `fixtures/pngsuite.py` with a decoder of its own.
fn expected() -> BTreeMap<String, String> {
    let table = std::fs::read_to_string(crate_path("fixtures/pngsuite.txt")).unwrap();
    let entry = |line: &str| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.to_owned())).unwrap();
    table.lines().map(entry).collect()
}

#[test]
fn valid_files_have_the_expected_pixels_and_invalid_are_rejected() {
    let Some(folder) = data("images/pngsuite") else { return };
    let expected = expected();
    let (mut good, mut bad) = (0, 0);
    for (name, file) in files(folder) {
        if !name.ends_with(".png") {
            continue;
        }
        match (LocalImageProcessor::default().render(&file), expected.get(&name)) {
            (Ok(rendered), Some(expected)) => {
                let digest: String = Sha256::digest(&rendered.pixels.rgb).iter().map(|b| format!("{b:02x}")).collect();
                let found = format!("{} {} {digest}", rendered.width, rendered.height);
                assert_eq!(&found, expected, "{name}");
                good += 1;
            }
            (Err(rejected), None) => {
                println!("{name}: {rejected}");
                assert!(name.starts_with('x') && !rejected.to_string().is_empty(), "{name}: {rejected}");
                bad += 1;
            }
            (outcome, _) => panic!("{name}: {:?}", outcome.map(|_| "rendered")),
        }
    }
    assert_eq!(good, expected.len());
    assert!(bad >= 14, "{bad}");
}
