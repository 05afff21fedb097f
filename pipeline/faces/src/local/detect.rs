//! Face detection in a photo: one pass over the whole image, and a second one on tiles where small faces may be.

use super::centerface::{CenterFace, Detection};
use super::image_view::{ImageView, Region};
use super::nms::suppress_overlaps;
use super::plausibility::is_plausible;
use super::thread_pools::PooledThread;
use super::tiling::{self, Tile};

/// Longer side of the detector's input for the whole photo.
const FULL_SIDE: f32 = 640.0;
/// Largest enlargement of small photos.
const MAX_UPSCALE: f32 = 4.0;
/// Lowest score of a face.
const FACE_SCORE: f32 = 0.5;
/// Lowest score of a candidate.
const CANDIDATE_SCORE: f32 = 0.05;
/// Lowest score of a candidate if there is a foreground face: background faces must be clearer to be worth a tile.
const BACKGROUND_CANDIDATE_SCORE: f32 = 0.2;
/// Smallest foreground face, in pixels of the first pass.
const FOREGROUND_SIDE: f32 = 64.0;
/// Smallest face, in pixels of the photo: smaller ones cannot be recognised.
const MIN_SIDE: f32 = 12.0;

/// Detects the faces of an image, sorted from top to bottom and left to right.
pub fn detect(centerface: &CenterFace, image: &ImageView<'_>, thread: &PooledThread<'_>) -> Vec<Detection> {
    let scale = (FULL_SIDE / image.width.max(image.height) as f32).min(MAX_UPSCALE);
    let full = image.full_region();
    let candidates = suppress_overlaps(centerface.detect(image, full, scaled(full, scale), CANDIDATE_SCORE, thread));
    let (mut found, mut uncertain): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| !tiling::needs_tile(candidate, scale));
    if found.iter().any(|face| face.score >= FACE_SCORE && face.shorter_side() * scale >= FOREGROUND_SIDE) {
        uncertain.retain(|candidate| candidate.score >= BACKGROUND_CANDIDATE_SCORE);
    }
    let detect_in_tiles = |tiles: Vec<Tile>| {
        let detections = tiles.into_iter().flat_map(|tile| {
            let detections = centerface.detect(image, tile.region, scaled(tile.region, tile.scale), FACE_SCORE, thread);
            detections.into_iter().filter(move |detection| tile.contains(image, detection))
        });
        detections.collect::<Vec<_>>()
    };
    found.extend(detect_in_tiles(tiling::tiles_for_candidates(image, &uncertain, scale)));
    let mut faces = select_faces(image, found);
    let crowd = tiling::tiles_for_crowd(image, &faces, scale);
    if !crowd.is_empty() {
        faces.extend(detect_in_tiles(crowd));
        faces = select_faces(image, faces);
    }
    faces.sort_by(|a, b| a.top_left[1].total_cmp(&b.top_left[1]).then(a.top_left[0].total_cmp(&b.top_left[0])));
    faces
}

/// Returns the plausible faces, clipped to the image, after non-maximum suppression.
fn select_faces(image: &ImageView<'_>, mut found: Vec<Detection>) -> Vec<Detection> {
    found.retain(|detection| detection.score >= FACE_SCORE && is_plausible(detection));
    found.iter_mut().for_each(|detection| *detection = detection.clipped(image));
    found.retain(|detection| detection.shorter_side() >= MIN_SIDE);
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    suppress_overlaps(found)
}

/// Returns the size of a region at this scale.
fn scaled(region: Region, scale: f32) -> [usize; 2] {
    [region.width, region.height].map(|side| ((side as f32 * scale).round() as usize).max(1))
}
