//! The local engine on real faces, on none, and on what is hardly a picture.

mod attributes;
mod collection;
mod finding;
mod group;
mod odd;
mod quality;
mod signatures;

use std::path::PathBuf;
use std::sync::LazyLock;

use image::RgbImage;
use sparks_domain::SeenFace;
use sparks_engine::{FaceEngine, Pixels};
use sparks_faces::{Local, LocalOptions};

/// As it is used by default.
static ENGINE: LazyLock<Local> = LazyLock::new(|| load(LocalOptions::default()));

const PORTRAITS: [&str; 5] = ["obama-1.jpg", "obama-2.jpg", "obama-3.jpg", "biden.jpg", "collins.png"];

fn load(options: LocalOptions) -> Local {
    Local::load(options).expect("models")
}

fn pixels(picture: &RgbImage) -> Pixels {
    Pixels { width: picture.width(), height: picture.height(), rgb: picture.as_raw().clone() }
}

fn look(picture: &RgbImage) -> Vec<SeenFace> {
    ENGINE.look(&pixels(picture))
}

fn open(path: PathBuf) -> RgbImage {
    image::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into_rgb8()
}

/// One of the project's portraits.
fn portrait(name: &str) -> RgbImage {
    open(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/photos").join(name))
}

/// The face and what is around it: half as much again on each side.
fn head(name: &str) -> RgbImage {
    let picture = portrait(name);
    let face = look(&picture).remove(0).bounds;
    let (across, down) = (picture.width() as f32, picture.height() as f32);
    let left = ((face.x - face.width / 2.0) * across).max(0.0) as u32;
    let top = ((face.y - face.height / 3.0) * down).max(0.0) as u32;
    let width = ((face.width * 2.0 * across) as u32).min(picture.width() - left);
    let height = ((face.height * 1.7 * down) as u32).min(picture.height() - top);
    image::imageops::crop_imm(&picture, left, top, width, height).to_image()
}

/// Data that is too large for the project: `../shared/data` beside it, or where `SPARKS_TEST_DATA` says.
fn shared(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("SPARKS_TEST_DATA").map_or_else(beside, PathBuf::from).join(name);
    if !folder.is_dir() {
        eprintln!("not tried: there is no {}; set SPARKS_TEST_DATA to where the data is", folder.display());
        return None;
    }
    Some(folder)
}

/// Every file below a folder, in the order of their names.
fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The middle of a face in pixels.
fn middle(picture: &RgbImage, face: &SeenFace) -> [f32; 2] {
    let bounds = face.bounds;
    let x = (bounds.x + bounds.width / 2.0) * picture.width() as f32;
    [x, (bounds.y + bounds.height / 2.0) * picture.height() as f32]
}

fn similarity(a: &SeenFace, b: &SeenFace) -> f32 {
    match (&a.signature, &b.signature) {
        (Some(a), Some(b)) => a.similarity(b),
        _ => panic!("a face without a signature"),
    }
}
