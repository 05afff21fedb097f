//! No face twice.

use super::centerface::Sighting;

/// Two boxes that share more than this part of what both cover are one face.
const SHARED: f32 = 0.3;
/// A box of which more than this part lies in another is the same face.
const CONTAINED: f32 = 0.6;

/// The sightings without those of a face that an earlier one shows.
pub fn distinct(sightings: impl IntoIterator<Item = Sighting>) -> Vec<Sighting> {
    let mut kept: Vec<Sighting> = Vec::new();
    for sighting in sightings {
        if !kept.iter().any(|other| same(other, &sighting)) {
            kept.push(sighting);
        }
    }
    kept
}

/// Whether two sightings are of one face.
pub fn same(a: &Sighting, b: &Sighting) -> bool {
    let shared = |axis: usize| (a.to[axis].min(b.to[axis]) - a.from[axis].max(b.from[axis])).max(0.0);
    let area = |s: &Sighting| s.size()[0] * s.size()[1];
    let both = shared(0) * shared(1);
    both > SHARED * (area(a) + area(b) - both) || both > CONTAINED * area(a).min(area(b))
}
