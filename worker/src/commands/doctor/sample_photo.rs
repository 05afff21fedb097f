//! Processes a small generated photo: decode, resize, encode, analyze.

use std::{io::Cursor, sync::Arc};

use image::{ImageFormat, Rgb, RgbImage};
use sparks_config::{Analyzer, Settings};
use sparks_engine::Finding;
use sparks_engine::{FaceEngine, ImageError, ImageProcessor, Pixels, RenderedImage};

use crate::wiring;

const WIDTH: u32 = 96;
const HEIGHT: u32 = 64;
/// The colour of every pixel.
const COLOUR: [u8; 3] = [200, 120, 40];
/// How far JPEG compression may change a uniform colour, per channel.
const TOLERANCE: u8 = 6;

/// Renders the photo as a worker would and returns its pixels.
pub fn check_image_processor(settings: &Settings, findings: &mut Vec<Finding>) -> Option<Pixels> {
    let processor: Arc<dyn ImageProcessor> = wiring::image_processor(settings);
    let what = match settings.decoder.isolate {
        true => "decode JPEG and encode WebP in a decoder process",
        false => "decode JPEG and encode WebP",
    };
    let rendered = photo().map_err(|error| error.to_string()).and_then(|jpeg| {
        processor.render(&jpeg).map_err(|error| match error {
            ImageError::Rejected(rejection) => rejection.message,
            ImageError::Unavailable(why) => why,
        })
    });
    match rendered.and_then(verify) {
        Ok(pixels) => {
            findings.push(Finding::ok(what, format!("{WIDTH} x {HEIGHT} pixels are correct")));
            Some(pixels)
        }
        Err(why) => {
            let remedy = "allow the worker to start processes of this binary (check process and memory limits, noexec, \
                          seccomp), or set decoder.isolate = false";
            findings.push(Finding::fail(what, why, remedy));
            None
        }
    }
}

fn photo() -> image::ImageResult<Vec<u8>> {
    let mut jpeg = Cursor::new(Vec::new());
    RgbImage::from_pixel(WIDTH, HEIGHT, Rgb(COLOUR)).write_to(&mut jpeg, ImageFormat::Jpeg)?;
    Ok(jpeg.into_inner())
}

/// Checks format, size and colours of the result.
fn verify(rendered: RenderedImage) -> Result<Pixels, String> {
    let pixels = rendered.pixels;
    for webp in [&rendered.large.webp, &rendered.medium.webp] {
        if !(webp.starts_with(b"RIFF") && webp.get(8..12) == Some(b"WEBP")) {
            return Err("the encoded variant is not WebP".into());
        }
    }
    if (pixels.width, pixels.height) != (WIDTH, HEIGHT) {
        return Err(format!("{} x {} pixels instead of {WIDTH} x {HEIGHT}", pixels.width, pixels.height));
    }
    let is_near = |pixel: &[u8]| pixel.iter().zip(COLOUR).all(|(found, wanted)| found.abs_diff(wanted) <= TOLERANCE);
    match pixels.rgb.chunks_exact(3).find(|pixel| !is_near(pixel)) {
        Some(other) => Err(format!("a pixel is {other:?} instead of {COLOUR:?}")),
        None => Ok(pixels),
    }
}

/// Checks the hashes of the face models, loads the configured ones and runs them on the pixels.
pub fn check_face_models(settings: &Settings, pixels: Option<Pixels>, findings: &mut Vec<Finding>) {
    const WHAT: &str = "face models";
    if settings.faces.analyzer != Analyzer::Local {
        return findings.push(Finding::ok(WHAT, "not used: faces.analyzer is not \"local\""));
    }
    if let Some(model) = sparks_faces::models().iter().find(|model| !model.is_intact()) {
        let seen = format!("model {} does not match its hash", model.name);
        return findings.push(Finding::fail(WHAT, seen, "the binary is damaged: install it again"));
    }
    let engine = match wiring::local_engine(settings) {
        Ok(engine) => engine,
        Err(error) => return findings.push(Finding::fail(WHAT, format!("{error:#}"), "give the worker more memory")),
    };
    let pixels = pixels.unwrap_or_else(|| Pixels { width: 2, height: 2, rgb: vec![128; 12] });
    match engine.analyze(&pixels).len() {
        0 => findings.push(Finding::ok(WHAT, "hashes match, models load, no false detection")),
        faces => {
            let seen = format!("{faces} faces detected in a photo without faces");
            findings.push(Finding::fail(WHAT, seen, "this machine computes wrong results: use another machine"));
        }
    }
}
