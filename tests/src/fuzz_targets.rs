//! Fuzz target bodies: no input may cause a panic, and every error message must be readable.
//!
//! The targets in `tests/fuzz` include this file; `tests/suite/hostile` calls the same functions with a fixed corpus.

use sparks_engine::{ImageProcessor, Request, parse_message};
use sparks_media::{CropSpec, Fit, Limits, LocalImageProcessor, VariantSpec, fuzzing};

const BUCKET: &str = "sparks-photos";

/// Parses a message body.
pub fn message(body: &[u8]) {
    let Ok(body) = std::str::from_utf8(body) else { return };
    match parse_message(body, BUCKET) {
        Ok(requests) => requests.iter().for_each(check_request),
        Err(malformed) => assert_readable(&malformed.to_string()),
    }
}

fn check_request(request: &Request) {
    if let Request::Ignored { reason } = request {
        assert_readable(reason);
    }
}

/// Validates a file up to, and without, decoding its pixels.
pub fn header(file: &[u8]) {
    let processor = image_processor(file);
    let description = processor.inspect(file);
    assert_eq!(description.mime_type.is_some(), description.extension.is_some());
    match fuzzing::validate(&processor, file) {
        Ok(memory) => assert!(memory <= limits().max_memory && processor.dimensions(file).is_some()),
        Err(rejection) => assert_readable(&rejection.message),
    }
}

/// Decodes a file and renders its variants.
pub fn photo(file: &[u8]) {
    match image_processor(file).render(file) {
        Ok(rendered) => {
            let pixels = &rendered.pixels;
            assert_eq!(pixels.rgb.len(), pixels.width as usize * pixels.height as usize * 3);
            assert!(!rendered.large.webp.is_empty() && !rendered.medium.webp.is_empty());
        }
        Err(error) => assert_readable(&error.to_string()),
    }
}

/// Reads EXIF fields from a TIFF structure.
pub fn exif(tiff: &[u8]) {
    fuzzing::exif(tiff);
}

/// Asserts that a message is one line of several words and not too long.
fn assert_readable(text: &str) {
    assert!(text.split_whitespace().count() > 2, "error message {text:?} is too short");
    assert!(!text.contains('\n') && text.len() < 2_000, "error message {text:?} is too long or has several lines");
}

/// Returns limits small enough for many runs per second.
fn limits() -> Limits {
    Limits { max_bytes: 1 << 20, max_pixels: 250_000, max_side: 2_000, max_memory: 64 << 20, ..Limits::default() }
}

/// Returns an image processor that encodes half of all files with `sparks-webp` and the others with libwebp.
fn image_processor(file: &[u8]) -> LocalImageProcessor {
    let is_own_encoder = file.len().is_multiple_of(2);
    let (method, quality) = if is_own_encoder { (4, 90.0) } else { (0, 50.0) };
    let variant =
        |fit, side| VariantSpec { fit, width: side, height: side, quality, method, sharp_yuv: is_own_encoder };
    LocalImageProcessor::new(limits(), variant(Fit::Inside, 64), variant(Fit::Cover, 16), CropSpec::default())
}
