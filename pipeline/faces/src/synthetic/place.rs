//! Where the faces of a photo are.

use fastrand::Rng;

/// A square in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) side: u32,
}

/// Smaller faces come only in a crowd; larger ones never.
const SIDES: (u32, u32) = (90, 260);

/// Free pixels around each face.
const GAP: u32 = 8;

/// No two faces begin within so many pixels of height, so that their order can be measured after any resize.
const DROP: u32 = 4;

/// Places that do not overlap, in reading order: the picture is divided into slots, and a face lies anywhere in its slot.
pub(super) fn places(width: u32, height: u32, count: u32, rng: &mut Rng) -> Vec<Place> {
    let count = count.max(1);
    let columns = (count as f32 * width as f32 / height as f32).sqrt().ceil() as u32;
    let rows = count.div_ceil(columns);
    let (slot_width, slot_height) = (width / columns, height / rows);
    let room = slot_width.min(slot_height) - 2 * GAP - DROP * columns;
    let mut slots: Vec<u32> = (0..columns * rows).collect();
    rng.shuffle(&mut slots);
    let mut places: Vec<Place> = slots[..count as usize]
        .iter()
        .map(|slot| {
            let side = rng.u32(SIDES.0.min(room)..=SIDES.1.min(room));
            let x = slot % columns * slot_width + GAP + rng.u32(0..=slot_width - 2 * GAP - side);
            let y = slot / columns * slot_height + GAP + rng.u32(0..=slot_height - 2 * GAP - DROP * columns - side);
            Place { x, y, side }
        })
        .collect();
    places.sort_unstable_by_key(|place| (place.y, place.x));
    // Each slot has kept free what the faces before it in its row can push it down by.
    for n in 1..places.len() {
        places[n].y = places[n].y.max(places[n - 1].y + DROP);
    }
    places
}
