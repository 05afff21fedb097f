//! A marker face: a magenta frame, a white ring, and a grid of grey cells, one per dimension.

use image::{Rgb, RgbImage};

use super::identity::{DIMENSIONS, standardised};

/// Width of a marker in modules: one of frame and one of ring on each side, and the cells between.
pub(super) const MODULES: usize = 16;

/// Offset of the cells in modules.
pub(super) const MARGIN: usize = 2;

/// Cells per row, and rows.
pub(super) const CELLS: usize = MODULES - 2 * MARGIN;

const _: () = assert!(CELLS * CELLS == DIMENSIONS);

const FRAME: Rgb<u8> = Rgb([255, 0, 255]);
const RING: Rgb<u8> = Rgb([255, 255, 255]);

/// Grey levels per unit of a component. Three standard deviations fit between black and white.
const CONTRAST: f32 = 40.0;

/// Draws a marker of this vector, `side` pixels wide, clipped to the canvas. Only the direction of the vector counts; missing
/// dimensions are mid-grey.
pub fn draw_marker(canvas: &mut RgbImage, x: u32, y: u32, side: u32, vector: &[f32]) {
    let cells = standardised(vector.iter().copied().take(DIMENSIONS).collect());
    let colours: [[Rgb<u8>; MODULES]; MODULES] =
        std::array::from_fn(|row| std::array::from_fn(|column| colour(column, row, &cells)));
    let columns: Vec<usize> = (0..side.min(canvas.width().saturating_sub(x))).map(|n| module(n, side)).collect();
    for row in 0..side.min(canvas.height().saturating_sub(y)) {
        let colours = colours[module(row, side)];
        for (column_x, column) in (x..).zip(&columns) {
            canvas.put_pixel(column_x, y + row, colours[*column]);
        }
    }
}

/// Returns the module that contains the centre of a pixel.
fn module(pixel: u32, side: u32) -> usize {
    let centre = (2 * u64::from(pixel) + 1) * MODULES as u64 / (2 * u64::from(side));
    centre as usize
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
