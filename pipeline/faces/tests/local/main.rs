//! The local engine on real faces, on images without faces, and on degenerate images.

mod attributes;
mod detection;
mod group;
mod large_sets;
mod no_faces;
mod quality;
mod signatures;

use std::path::PathBuf;
use std::sync::LazyLock;

use image::RgbImage;
use sparks_domain::DetectedFace;
use sparks_engine::{FaceEngine, Pixels};
use sparks_faces::{LocalEngine, LocalOptions};

/// The engine with default options.
static ENGINE: LazyLock<LocalEngine> = LazyLock::new(|| load(LocalOptions::default()));

const PORTRAITS: [&str; 5] = ["obama-1.jpg", "obama-2.jpg", "obama-3.jpg", "biden.jpg", "collins.png"];

fn load(options: LocalOptions) -> LocalEngine {
    LocalEngine::load(options).expect("models")
}

fn pixels(image: &RgbImage) -> Pixels {
    Pixels { width: image.width(), height: image.height(), rgb: image.as_raw().clone() }
}

fn analyze(image: &RgbImage) -> Vec<DetectedFace> {
    ENGINE.analyze(&pixels(image))
}

fn open(path: PathBuf) -> RgbImage {
    image::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into_rgb8()
}

/// Returns one of the repository's portraits.
fn portrait(name: &str) -> RgbImage {
    open(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/photos").join(name))
}

/// Returns the face with its surroundings: half as much again on each side.
fn head(name: &str) -> RgbImage {
    let image = portrait(name);
    let face = analyze(&image).remove(0).bounds;
    let (image_width, image_height) = (image.width() as f32, image.height() as f32);
    let left = ((face.x - face.width / 2.0) * image_width).max(0.0) as u32;
    let top = ((face.y - face.height / 3.0) * image_height).max(0.0) as u32;
    let width = ((face.width * 2.0 * image_width) as u32).min(image.width() - left);
    let height = ((face.height * 1.7 * image_height) as u32).min(image.height() - top);
    image::imageops::crop_imm(&image, left, top, width, height).to_image()
}

/// Returns a folder of data that is too large for the repository: below `../shared/data`, or below `SPARKS_TEST_DATA`.
///
/// # Panics
///
/// Panics if there is none.
fn shared(name: &str) -> PathBuf {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("SPARKS_TEST_DATA").map_or_else(default, PathBuf::from).join(name);
    assert!(
        folder.is_dir(),
        "{} does not exist; set SPARKS_TEST_DATA to the folder of the test data",
        folder.display()
    );
    folder
}

/// Returns every file below a folder, sorted by name.
fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Returns the centre of a face in pixels.
fn centre(image: &RgbImage, face: &DetectedFace) -> [f32; 2] {
    let bounds = face.bounds;
    let x = (bounds.x + bounds.width / 2.0) * image.width() as f32;
    [x, (bounds.y + bounds.height / 2.0) * image.height() as f32]
}

fn similarity(a: &DetectedFace, b: &DetectedFace) -> f32 {
    match (&a.signature, &b.signature) {
        (Some(a), Some(b)) => a.similarity(b),
        _ => panic!("a face without a signature"),
    }
}
