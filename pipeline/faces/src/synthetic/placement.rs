//! Placement of the faces of a synthetic photo.

use fastrand::Rng;

/// A square in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) side: u32,
}

/// Range of a face's side in pixels; only crowds have smaller faces.
const SIDES: (u32, u32) = (90, 260);

/// Margin around each face in pixels.
const GAP: u32 = 8;

/// Minimum vertical distance of two faces' upper edges, so that their order survives any resize.
const MIN_VERTICAL_STEP: u32 = 4;

/// Returns placements without overlap, in reading order: the image is divided into slots, and a face lies anywhere in its slot.
pub(super) fn place_faces(width: u32, height: u32, count: u32, rng: &mut Rng) -> Vec<Placement> {
    let count = count.max(1);
    let columns = (count as f32 * width as f32 / height as f32).sqrt().ceil() as u32;
    let rows = count.div_ceil(columns);
    let (slot_width, slot_height) = (width / columns, height / rows);
    let room = slot_width.min(slot_height) - 2 * GAP - MIN_VERTICAL_STEP * columns;
    let mut slots: Vec<u32> = (0..columns * rows).collect();
    rng.shuffle(&mut slots);
    let mut placements: Vec<Placement> = slots[..count as usize]
        .iter()
        .map(|slot| {
            let side = rng.u32(SIDES.0.min(room)..=SIDES.1.min(room));
            let x = slot % columns * slot_width + GAP + rng.u32(0..=slot_width - 2 * GAP - side);
            let y = slot / columns * slot_height
                + GAP
                + rng.u32(0..=slot_height - 2 * GAP - MIN_VERTICAL_STEP * columns - side);
            Placement { x, y, side }
        })
        .collect();
    placements.sort_unstable_by_key(|placement| (placement.y, placement.x));
    // Each slot reserves the space by which the faces before it in its row can push it down.
    for n in 1..placements.len() {
        placements[n].y = placements[n].y.max(placements[n - 1].y + MIN_VERTICAL_STEP);
    }
    placements
}
