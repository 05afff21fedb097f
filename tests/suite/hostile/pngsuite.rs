//! PngSuite: good files have the pixels an independent decoder finds, bad ones are refused.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use sparks_engine::Darkroom;
use sparks_media::Lab;

use super::{data, files, own};

/// Made by `fixtures/pngsuite.py`, which decodes for itself.
fn expected() -> BTreeMap<String, String> {
    let table = std::fs::read_to_string(own("fixtures/pngsuite.txt")).unwrap();
    let entry = |line: &str| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.to_owned())).unwrap();
    table.lines().map(entry).collect()
}

#[test]
fn good_files_have_the_right_pixels_and_bad_ones_are_refused() {
    let Some(folder) = data("images/pngsuite") else { return };
    let expected = expected();
    let (mut good, mut bad) = (0, 0);
    for (name, file) in files(folder) {
        if !name.ends_with(".png") {
            continue;
        }
        match (Lab::default().develop(&file), expected.get(&name)) {
            (Ok(developed), Some(expected)) => {
                let digest: String = Sha256::digest(&developed.pixels.rgb).iter().map(|b| format!("{b:02x}")).collect();
                let found = format!("{} {} {digest}", developed.width, developed.height);
                assert_eq!(&found, expected, "{name}");
                good += 1;
            }
            (Err(refused), None) => {
                println!("{name}: {refused}");
                assert!(name.starts_with('x') && !refused.to_string().is_empty(), "{name}: {refused}");
                bad += 1;
            }
            (outcome, _) => panic!("{name}: {:?}", outcome.map(|_| "developed")),
        }
    }
    assert_eq!(good, expected.len());
    assert!(bad >= 14, "{bad}");
}
