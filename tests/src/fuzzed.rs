//! Whatever bytes come: nobody falls over them, and each refusal is a sentence.
//!
//! The targets in `tests/fuzz` include this very file; `tests/suite/hostile` calls the same functions with a fixed corpus.

use sparks_engine::{Darkroom, Request, understand};
use sparks_media::{CropSpec, Fit, Lab, Limits, VariantSpec, fuzzing};

const BUCKET: &str = "sparks-photos";

/// A message's body.
pub fn message(body: &[u8]) {
    let Ok(body) = std::str::from_utf8(body) else { return };
    match understand(body, BUCKET) {
        Ok(requests) => requests.iter().for_each(check_request),
        Err(malformed) => check_sentence(&malformed.to_string()),
    }
}

fn check_request(request: &Request) {
    if let Request::Ignored { why } = request {
        check_sentence(why);
    }
}

/// A file up to its first pixel.
pub fn header(file: &[u8]) {
    let lab = lab(file);
    let description = lab.describe(file);
    assert_eq!(description.mime_type.is_some(), description.extension.is_some());
    match fuzzing::admit(&lab, file) {
        Ok(memory) => assert!(memory <= limits().max_memory && lab.measure(file).is_some()),
        Err(rejection) => check_sentence(&rejection.message),
    }
}

/// A file from its first byte to its variants.
pub fn photo(file: &[u8]) {
    match lab(file).develop(file) {
        Ok(developed) => {
            let pixels = &developed.pixels;
            assert_eq!(pixels.rgb.len(), pixels.width as usize * pixels.height as usize * 3);
            assert!(!developed.large.webp.is_empty() && !developed.medium.webp.is_empty());
        }
        Err(error) => check_sentence(&error.to_string()),
    }
}

/// A TIFF structure.
pub fn exif(tiff: &[u8]) {
    fuzzing::exif(tiff);
}

/// Something a person can read: words, on one line, and not too many.
fn check_sentence(text: &str) {
    assert!(text.split_whitespace().count() > 2, "{text:?} says nothing");
    assert!(!text.contains('\n') && text.len() < 2_000, "{text:?} is no sentence");
}

/// So small that a run tries much.
fn limits() -> Limits {
    Limits { max_bytes: 1 << 20, max_pixels: 250_000, max_side: 2_000, max_memory: 64 << 20, ..Limits::default() }
}

/// Half of all files are written by our own encoder, the others by libwebp.
fn lab(file: &[u8]) -> Lab {
    let ours = file.len().is_multiple_of(2);
    let (method, quality) = if ours { (4, 90.0) } else { (0, 50.0) };
    let variant = |fit, side| VariantSpec { fit, width: side, height: side, quality, method, sharp_yuv: ours };
    Lab::new(limits(), variant(Fit::Inside, 64), variant(Fit::Cover, 16), CropSpec::default())
}
