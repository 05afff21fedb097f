//! Finding the faces of a photo: one look at the whole, and a closer one where small faces may be.

use super::centerface::{CenterFace, Sighting};
use super::closer;
use super::lanes::Lane;
use super::overlap::distinct;
use super::picture::{Picture, Region};
use super::plausible::plausible;

/// The longer side of what the detector sees of a whole photo.
const WHOLE: f32 = 640.0;
/// Small photos are enlarged at most this much.
const ENLARGED: f32 = 4.0;
/// A face from this score.
const FACE: f32 = 0.5;
/// A hint of a face from this score.
const HINT: f32 = 0.05;
/// Faces with fewer pixels across or down cannot be told apart by anybody.
const LEAST: f32 = 12.0;

/// The faces of a picture, from top to bottom and left to right.
pub fn detect(centerface: &CenterFace, picture: &Picture<'_>, lane: &Lane<'_>) -> Vec<Sighting> {
    let scale = (WHOLE / picture.width.max(picture.height) as f32).min(ENLARGED);
    let whole = picture.whole();
    let hints = distinct(centerface.look(picture, whole, scaled(whole, scale), HINT, lane));
    let (settled, unsettled): (Vec<_>, Vec<_>) = hints.into_iter().partition(|hint| !closer::wanted(hint, scale));
    let mut found = settled;
    for tile in closer::tiles(picture, &unsettled, scale) {
        let seen = centerface.look(picture, tile.part, scaled(tile.part, tile.scale), HINT, lane);
        found.extend(seen.into_iter().filter(|sighting| tile.shows(picture, sighting)));
    }
    found.retain(|sighting| sighting.score >= FACE && plausible(sighting));
    found.iter_mut().for_each(|sighting| *sighting = sighting.within(picture));
    found.retain(|sighting| sighting.shorter_side() >= LEAST);
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut faces = distinct(found);
    faces.sort_by(|a, b| a.from[1].total_cmp(&b.from[1]).then(a.from[0].total_cmp(&b.from[0])));
    faces
}

/// The size of a part at this scale.
fn scaled(part: Region, scale: f32) -> [usize; 2] {
    [part.width, part.height].map(|side| ((side as f32 * scale).round() as usize).max(1))
}
