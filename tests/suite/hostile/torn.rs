//! Real photos of which a part was lost, and real photos with a few wrong bits.

use fastrand::Rng;
use sparks_domain::RejectCode;
use sparks_engine::{Darkroom, DarkroomError};
use sparks_media::{CropSpec, Fit, Lab, Limits, VariantSpec};

use super::{data, files, own};

fn lab() -> Lab {
    let variant = |fit, side| VariantSpec { fit, width: side, height: side, quality: 50.0, method: 4, sharp_yuv: true };
    Lab::new(Limits::default(), variant(Fit::Inside, 64), variant(Fit::Cover, 16), CropSpec::default())
}

/// The photos of the project, and those of the test data where they are there.
fn photos() -> Vec<(String, Vec<u8>)> {
    let mut photos = files(own("photos"));
    photos.extend(data("photos").map(files).unwrap_or_default());
    photos.retain(|(name, _)| name.ends_with(".jpg"));
    photos
}

#[test]
fn a_jpeg_that_lost_a_considerable_part_is_refused() {
    for (name, whole) in photos() {
        assert!(lab().develop(&whole).is_ok(), "{name}");
        let length = whole.len();
        let (from, to) = (length / 2, length / 2 + length / 5);
        let removed = [&whole[..from], &whole[to..]].concat();
        let blank = [&whole[..from], &vec![0; to - from], &whole[to..]].concat();
        let ended = [&whole[..from], b"\xff\xd9"].concat();
        for (what, torn) in [("removed", removed), ("blank", blank), ("ended", ended)] {
            let Err(DarkroomError::Rejected(rejection)) = lab().develop(&torn) else { panic!("{name}: {what}") };
            assert_eq!(rejection.code, RejectCode::Damaged, "{name}: {what}");
            assert!(rejection.message.starts_with("the JPEG"), "{name}: {what}: {}", rejection.message);
        }
    }
}

#[test]
fn wrong_bits_are_never_a_panic() {
    let mut rng = Rng::with_seed(11);
    for (name, whole) in files(own("photos")) {
        for _ in 0..60 {
            let mut changed = whole.clone();
            // The header more often than its share: there a bit does most.
            let most = if rng.bool() { changed.len() } else { 700.min(changed.len()) };
            for _ in 0..rng.usize(1..=8) {
                changed[rng.usize(..most)] ^= 1 << rng.u8(..8);
            }
            if let Err(refused) = lab().develop(&changed) {
                assert!(refused.to_string().split_whitespace().count() > 2, "{name}: {refused}");
            }
        }
    }
}
