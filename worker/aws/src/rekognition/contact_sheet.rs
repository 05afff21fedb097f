//! A contact sheet: many faces in one image, so that one `CompareFaces` call compares a face with all of them.

use std::sync::Arc;

use sparks_domain::{FaceBox, PersonId};
use sparks_engine::Pixels;

/// Width and height of a cell in pixels.
const CELL_PX: u32 = 256;

/// Faces in a square grid of cells.
pub(super) struct ContactSheet {
    pub pixels: Arc<Pixels>,
    cells: Vec<PersonId>,
    columns: u32,
}

impl ContactSheet {
    /// Faces per sheet.
    pub const MAX_FACES: usize = 25;

    /// Draws these faces, at most [`Self::MAX_FACES`].
    pub fn new(faces: &[(PersonId, Pixels)]) -> Self {
        let columns = (1..).find(|columns: &u32| (columns * columns) as usize >= faces.len()).unwrap_or(1);
        let rows = u32::try_from(faces.len()).unwrap_or(u32::MAX).div_ceil(columns).max(1);
        let (width, height) = (columns * CELL_PX, rows * CELL_PX);
        let mut pixels = Pixels { width, height, rgb: vec![255; (width * height * 3) as usize] };
        for (n, (_, face)) in (0..).zip(faces) {
            paste(&mut pixels, &downscale(face), (n % columns * CELL_PX, n / columns * CELL_PX));
        }
        Self { pixels: Arc::new(pixels), cells: faces.iter().map(|(person, _)| *person).collect(), columns }
    }

    /// Returns the person whose cell contains the centre of the box.
    pub fn person_at(&self, bounds: FaceBox) -> Option<PersonId> {
        let cell = |centre: f32, side: u32| (centre * side as f32) as u32 / CELL_PX;
        let column = cell(bounds.x + bounds.width / 2.0, self.pixels.width);
        let row = cell(bounds.y + bounds.height / 2.0, self.pixels.height);
        self.cells.get((row * self.columns + column.min(self.columns - 1)) as usize).copied()
    }
}

/// Scales the image down to fit into a cell, with a box filter.
fn downscale(pixels: &Pixels) -> Pixels {
    let by = pixels.width.max(pixels.height).div_ceil(CELL_PX).max(1);
    let (width, height) = (pixels.width / by, pixels.height / by);
    let mut rgb = Vec::with_capacity((width * height * 3) as usize);
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        for channel in 0..3 {
            let square = (0..by).flat_map(|dy| (0..by).map(move |dx| (y * by + dy, x * by + dx)));
            let sum: u32 =
                square.map(|(y, x)| u32::from(pixels.rgb[((y * pixels.width + x) * 3 + channel) as usize])).sum();
            rgb.push((sum / (by * by)) as u8);
        }
    }
    Pixels { width, height, rgb }
}

fn paste(sheet: &mut Pixels, face: &Pixels, (left, top): (u32, u32)) {
    for (y, row) in (0..).zip(face.rgb.chunks_exact(face.width.max(1) as usize * 3)) {
        let at = (((top + y) * sheet.width + left) * 3) as usize;
        sheet.rgb[at..at + row.len()].copy_from_slice(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_face_has_a_cell_and_is_found_there() {
        let person = |number: usize| PersonId::new(number as u32).expect("a number");
        for count in [1, 2, 3, 4, 5, 9, 10, ContactSheet::MAX_FACES] {
            let face = |n: usize| Pixels { width: 700, height: 300, rgb: vec![n as u8; 700 * 300 * 3] };
            let faces: Vec<_> = (1..=count).map(|n| (person(n), face(n))).collect();
            let sheet = ContactSheet::new(&faces);
            assert_eq!(sheet.pixels.rgb.len() as u32, sheet.pixels.width * sheet.pixels.height * 3);
            for n in 1..=count {
                // The first pixel of this colour is the top left corner of the cell.
                let at = sheet.pixels.rgb.iter().position(|byte| *byte == n as u8).expect("a pixel") as u32 / 3;
                let (x, y) = (at % sheet.pixels.width, at / sheet.pixels.width);
                let (across, down) = (sheet.pixels.width as f32, sheet.pixels.height as f32);
                let bounds = [x as f32 / across, y as f32 / down, 200.0 / across, 90.0 / down];
                assert_eq!(sheet.person_at(bounds.into()), Some(person(n)), "{n} of {count}");
            }
        }
    }
}
