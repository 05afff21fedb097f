//! A marker face: a magenta frame, a white ring, and a grid of grey cells, one a dimension.

use image::{Rgb, RgbImage};

use super::identity::{DIMENSIONS, standardised};

/// A marker is this many modules wide: one of frame and one of ring on each side, and the cells between.
pub(super) const MODULES: usize = 16;

/// Where the cells begin, in modules.
pub(super) const MARGIN: usize = 2;

/// Cells in a row, and rows of them.
pub(super) const CELLS: usize = MODULES - 2 * MARGIN;

const _: () = assert!(CELLS * CELLS == DIMENSIONS);

const FRAME: Rgb<u8> = Rgb([255, 0, 255]);
const RING: Rgb<u8> = Rgb([255, 255, 255]);

/// Steps of grey per unit of a component. Three deviations fit between black and white.
const CONTRAST: f32 = 40.0;

/// Draws a face with this look at a place, `side` pixels wide; what is outside the canvas is cut off. Only the direction
/// of the vector counts; dimensions it lacks are mid-grey.
pub fn draw_marker(canvas: &mut RgbImage, x: u32, y: u32, side: u32, vector: &[f32]) {
    let cells = standardised(vector.iter().copied().take(DIMENSIONS).collect());
    let colours: [[Rgb<u8>; MODULES]; MODULES] =
        std::array::from_fn(|row| std::array::from_fn(|column| colour(column, row, &cells)));
    let columns: Vec<usize> = (0..side.min(canvas.width().saturating_sub(x))).map(|n| module(n, side)).collect();
    for row in 0..side.min(canvas.height().saturating_sub(y)) {
        let colours = colours[module(row, side)];
        for (across, column) in (x..).zip(&columns) {
            canvas.put_pixel(across, y + row, colours[*column]);
        }
    }
}

/// The module that holds the middle of a pixel.
fn module(pixel: u32, side: u32) -> usize {
    let middle = (2 * u64::from(pixel) + 1) * MODULES as u64 / (2 * u64::from(side));
    middle as usize
}

fn colour(column: usize, row: usize, cells: &[f32]) -> Rgb<u8> {
    let from_edge = [column, row].into_iter().map(|m| m.min(MODULES - 1 - m)).min();
    match from_edge {
        Some(0) => FRAME,
        Some(1) => RING,
        _ => {
            let component = cells.get((row - MARGIN) * CELLS + column - MARGIN).copied().unwrap_or_default();
            let grey = (128.0 + CONTRAST * component).clamp(8.0, 248.0) as u8;
            Rgb([grey; 3])
        }
    }
}
