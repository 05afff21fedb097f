//! Photos with a missing part, and photos with flipped bits.

use fastrand::Rng;
use sparks_domain::RejectCode;
use sparks_engine::{ImageError, ImageProcessor};
use sparks_media::{CropSpec, Fit, Limits, LocalImageProcessor, VariantSpec};

use super::{crate_path, data, files};

fn small_image_processor() -> LocalImageProcessor {
    let variant = |fit, side| VariantSpec { fit, width: side, height: side, quality: 50.0, method: 4, sharp_yuv: true };
    LocalImageProcessor::new(Limits::default(), variant(Fit::Inside, 64), variant(Fit::Cover, 16), CropSpec::default())
}

/// Returns the photos of the repository and, if it exists, of the large data set.
fn photos() -> Vec<(String, Vec<u8>)> {
    let mut photos = files(crate_path("photos"));
    photos.extend(data("photos").map(files).unwrap_or_default());
    photos.retain(|(name, _)| name.ends_with(".jpg"));
    photos
}

#[test]
fn a_jpeg_with_a_missing_part_is_rejected_as_damaged() {
    for (name, whole) in photos() {
        assert!(small_image_processor().render(&whole).is_ok(), "{name}");
        let length = whole.len();
        let (from, to) = (length / 2, length / 2 + length / 5);
        let removed = [&whole[..from], &whole[to..]].concat();
        let blank = [&whole[..from], &vec![0; to - from], &whole[to..]].concat();
        let ended = [&whole[..from], b"\xff\xd9"].concat();
        for (damage, file) in [("removed", removed), ("blank", blank), ("ended", ended)] {
            let Err(ImageError::Rejected(rejection)) = small_image_processor().render(&file) else {
                panic!("{name}: {damage}")
            };
            assert_eq!(rejection.code, RejectCode::Damaged, "{name}: {damage}");
            assert!(rejection.message.starts_with("the JPEG"), "{name}: {damage}: {}", rejection.message);
        }
    }
}

#[test]
fn flipped_bits_cause_no_panic() {
    let mut rng = Rng::with_seed(11);
    for (name, whole) in files(crate_path("photos")) {
        for _ in 0..60 {
            let mut changed = whole.clone();
            // Headers more often, because their bits have the largest effect.
            let most = if rng.bool() { changed.len() } else { 700.min(changed.len()) };
            for _ in 0..rng.usize(1..=8) {
                changed[rng.usize(..most)] ^= 1 << rng.u8(..8);
            }
            if let Err(rejected) = small_image_processor().render(&changed) {
                assert!(rejected.to_string().split_whitespace().count() > 2, "{name}: {rejected}");
            }
        }
    }
}
