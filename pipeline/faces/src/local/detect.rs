//! Finding the faces of a photo: one look at the whole, and a closer one where small faces may be.

use super::centerface::{CenterFace, Sighting};
use super::closer::{self, Tile};
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
/// A hint from this score where somebody near is the subject: what is behind them must be clearer to be worth a look.
const HINT_BEHIND: f32 = 0.2;
/// Somebody is near from this size in the first look, in pixels of it.
const NEAR: f32 = 64.0;
/// Faces with fewer pixels across or down cannot be told apart by anybody.
const LEAST: f32 = 12.0;

/// The faces of a picture, from top to bottom and left to right.
pub fn detect(centerface: &CenterFace, picture: &Picture<'_>, lane: &Lane<'_>) -> Vec<Sighting> {
    let scale = (WHOLE / picture.width.max(picture.height) as f32).min(ENLARGED);
    let whole = picture.whole();
    let hints = distinct(centerface.look(picture, whole, scaled(whole, scale), HINT, lane));
    let (settled, mut unsettled): (Vec<_>, Vec<_>) = hints.into_iter().partition(|hint| !closer::wanted(hint, scale));
    if settled.iter().any(|face| face.score >= FACE && face.shorter_side() * scale >= NEAR) {
        unsettled.retain(|hint| hint.score >= HINT_BEHIND);
    }
    let look_closer = |tiles: Vec<Tile>| {
        let looks = tiles.into_iter().flat_map(|tile| {
            let seen = centerface.look(picture, tile.part, scaled(tile.part, tile.scale), FACE, lane);
            seen.into_iter().filter(move |sighting| tile.shows(picture, sighting))
        });
        looks.collect::<Vec<_>>()
    };
    let mut found = settled;
    found.extend(look_closer(closer::tiles(picture, &unsettled, scale)));
    let mut faces = faces(picture, found);
    let crowd = closer::crowd(picture, &faces, scale);
    if !crowd.is_empty() {
        faces.extend(look_closer(crowd));
        faces = self::faces(picture, faces);
    }
    faces.sort_by(|a, b| a.from[1].total_cmp(&b.from[1]).then(a.from[0].total_cmp(&b.from[0])));
    faces
}

/// What is surely a face, each once, within the picture.
fn faces(picture: &Picture<'_>, mut found: Vec<Sighting>) -> Vec<Sighting> {
    found.retain(|sighting| sighting.score >= FACE && plausible(sighting));
    found.iter_mut().for_each(|sighting| *sighting = sighting.within(picture));
    found.retain(|sighting| sighting.shorter_side() >= LEAST);
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    distinct(found)
}

/// The size of a part at this scale.
fn scaled(part: Region, scale: f32) -> [usize; 2] {
    [part.width, part.height].map(|side| ((side as f32 * scale).round() as usize).max(1))
}
