//! A small photo on its way: decoded, shrunk, encoded, and looked at.

use std::{io::Cursor, sync::Arc};

use image::{ImageFormat, Rgb, RgbImage};
use sparks_config::{Analyzer, Settings};
use sparks_engine::Finding;
use sparks_engine::{Darkroom, DarkroomError, Developed, FaceEngine, Pixels};

use crate::wiring;

const WIDTH: u32 = 96;
const HEIGHT: u32 = 64;
/// What the photo shows.
const COLOUR: [u8; 3] = [200, 120, 40];
/// By how much JPEG may change a colour that is everywhere the same.
const NEAR: u8 = 6;

/// Has the photo developed as a worker would, and hands its pixels on.
pub fn darkroom(settings: &Settings, findings: &mut Vec<Finding>) -> Option<Pixels> {
    let room: Arc<dyn Darkroom> = wiring::darkroom(settings);
    let what = match settings.darkroom.isolate {
        true => "decoding JPEG and encoding WebP, in a process of its own",
        false => "decoding JPEG and encoding WebP",
    };
    let developed = photo().map_err(|error| error.to_string()).and_then(|jpeg| {
        room.develop(&jpeg).map_err(|error| match error {
            DarkroomError::Rejected(rejection) => rejection.message,
            DarkroomError::Unavailable(why) => why,
        })
    });
    match developed.and_then(judge) {
        Ok(pixels) => {
            findings.push(Finding::ok(what, format!("{WIDTH} x {HEIGHT} pixels, as they should be")));
            Some(pixels)
        }
        Err(why) => {
            let remedy = "a worker starts processes of this binary: let it (limits on processes and memory, noexec, \
                          seccomp), or set darkroom.isolate = false";
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

/// Whether the pictures are what they should be.
fn judge(made: Developed) -> Result<Pixels, String> {
    let pixels = made.pixels;
    for picture in [&made.large.webp, &made.medium.webp] {
        if !(picture.starts_with(b"RIFF") && picture.get(8..12) == Some(b"WEBP")) {
            return Err("what was encoded is no WebP".into());
        }
    }
    if (pixels.width, pixels.height) != (WIDTH, HEIGHT) {
        return Err(format!("{} x {} pixels, not {WIDTH} x {HEIGHT}", pixels.width, pixels.height));
    }
    let is_near = |pixel: &[u8]| pixel.iter().zip(COLOUR).all(|(found, wanted)| found.abs_diff(wanted) <= NEAR);
    match pixels.rgb.chunks_exact(3).find(|pixel| !is_near(pixel)) {
        Some(other) => Err(format!("a pixel is {other:?}, not {COLOUR:?}")),
        None => Ok(pixels),
    }
}

/// The models of the settings, on those pixels.
pub fn faces(settings: &Settings, pixels: Option<Pixels>, findings: &mut Vec<Finding>) {
    const WHAT: &str = "face models";
    if settings.faces.analyzer != Analyzer::Local {
        return findings.push(Finding::ok(WHAT, "not asked for by faces.analyzer"));
    }
    if let Some(model) = sparks_faces::models().iter().find(|model| !model.is_whole()) {
        let seen = format!("{} is not what was shipped", model.name);
        return findings.push(Finding::fail(WHAT, seen, "the binary is damaged: copy it anew"));
    }
    let engine = match wiring::local_engine(settings) {
        Ok(engine) => engine,
        Err(error) => return findings.push(Finding::fail(WHAT, format!("{error:#}"), "give the worker more memory")),
    };
    let pixels = pixels.unwrap_or_else(|| Pixels { width: 2, height: 2, rgb: vec![128; 12] });
    match engine.look(&pixels).len() {
        0 => findings.push(Finding::ok(WHAT, "whole, loaded, and no face seen where there is none")),
        faces => {
            let seen = format!("{faces} faces seen where there is none");
            findings.push(Finding::fail(WHAT, seen, "this machine computes wrongly: use another"));
        }
    }
}
