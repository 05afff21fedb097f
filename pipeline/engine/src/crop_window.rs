//! The part of a photo around one face.

use sparks_domain::FaceBox;

use crate::{Pixels, Probe};

/// A face with some padding. Other faces in it are painted grey, so that a service detects only this one.
#[derive(Debug, Clone, PartialEq)]
pub struct CropWindow {
    /// The pixels of the window.
    pub pixels: Pixels,
    /// The bounds of the face within the window.
    pub bounds: FaceBox,
}

/// A rectangle in whole pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    left: u32,
    top: u32,
    right: u32,
    bottom: u32,
}

const GREY: u8 = 128;

impl Probe {
    /// Returns the face with padding on each side as a share of its size, at least `min_side` pixels wide and high. `None` if the
    /// photo is smaller than that.
    pub fn window(&self, padding: f32, min_side: u32) -> Option<CropWindow> {
        let Pixels { width, height, rgb } = self.pixels.as_ref();
        if *width < min_side.max(1)
            || *height < min_side.max(1)
            || rgb.len() as u64 != u64::from(*width) * u64::from(*height) * 3
        {
            return None;
        }
        let face = Area::of(self.bounds, *width, *height);
        let (left, right) = span((face.left, face.right), padding, min_side, *width);
        let (top, bottom) = span((face.top, face.bottom), padding, min_side, *height);
        let area = Area { left, top, right, bottom };
        let mut pixels = crop(&self.pixels, area);
        for other in &self.others {
            paint_grey(&mut pixels, area, Area::of(*other, *width, *height), face);
        }
        let (width, height) = ((right - left) as f32, (bottom - top) as f32);
        let bounds = FaceBox {
            x: (face.left - left) as f32 / width,
            y: (face.top - top) as f32 / height,
            width: (face.right - face.left) as f32 / width,
            height: (face.bottom - face.top) as f32 / height,
        };
        Some(CropWindow { pixels, bounds })
    }
}

impl Area {
    /// Rounds the bounds to whole pixels within the photo, at least one, for any fractions.
    fn of(bounds: FaceBox, width: u32, height: u32) -> Self {
        // The cast saturates: a negative or NaN fraction becomes 0, one that is too large the maximum.
        let edge = |fraction: f32, side: u32| ((f64::from(fraction) * f64::from(side)).round() as u32).min(side);
        let left = edge(bounds.x, width).min(width - 1);
        let top = edge(bounds.y, height).min(height - 1);
        let right = edge(bounds.x + bounds.width, width).max(left + 1);
        let bottom = edge(bounds.y + bounds.height, height).max(top + 1);
        Self { left, top, right, bottom }
    }

    fn contains(self, x: u32, y: u32) -> bool {
        (self.left..self.right).contains(&x) && (self.top..self.bottom).contains(&y)
    }
}

/// Extends a span by padding to at least `min_length`, within the side.
fn span((start, end): (u32, u32), padding: f32, min_length: u32, side: u32) -> (u32, u32) {
    let margin = ((end - start) as f32 * padding.max(0.0)).round() as u32;
    let (first, last) = (start.saturating_sub(margin), end.saturating_add(margin).min(side));
    let missing = min_length.saturating_sub(last - first);
    let first = first.saturating_sub(missing.div_ceil(2));
    let last = last.max((first + min_length).min(side));
    (first.min(last.saturating_sub(min_length)), last)
}

fn crop(pixels: &Pixels, area: Area) -> Pixels {
    let (row, part) = (pixels.width as usize * 3, area.left as usize * 3..area.right as usize * 3);
    let rows = pixels.rgb.chunks_exact(row).skip(area.top as usize).take((area.bottom - area.top) as usize);
    Pixels {
        width: area.right - area.left,
        height: area.bottom - area.top,
        rgb: rows.flat_map(|row| &row[part.clone()]).copied().collect(),
    }
}

/// Paints `other` grey, except where it overlaps `face`.
fn paint_grey(pixels: &mut Pixels, area: Area, other: Area, face: Area) {
    for y in other.top.max(area.top)..other.bottom.min(area.bottom) {
        for x in other.left.max(area.left)..other.right.min(area.right) {
            if !face.contains(x, y) {
                let at = ((y - area.top) as usize * pixels.width as usize + (x - area.left) as usize) * 3;
                pixels.rgb[at..at + 3].fill(GREY);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn probe(size: (u32, u32), bounds: [f32; 4], others: &[[f32; 4]]) -> Probe {
        let pixels = Pixels { width: size.0, height: size.1, rgb: vec![7; (size.0 * size.1 * 3) as usize] };
        let others = others.iter().map(|other| (*other).into()).collect();
        Probe { pixels: Arc::new(pixels), bounds: bounds.into(), others, model: "m".into(), signature: None }
    }

    #[test]
    fn a_window_has_padding_within_the_photo() {
        let window = probe((1000, 500), [0.4, 0.4, 0.2, 0.4], &[]).window(0.25, 80).expect("a window");
        assert_eq!((window.pixels.width, window.pixels.height), (300, 300));
        assert_eq!(<[f32; 4]>::from(window.bounds), [0.16667, 0.16667, 0.66667, 0.66667]);
        let window = probe((1000, 500), [0.0, 0.8, 0.2, 0.4], &[]).window(0.25, 80).expect("a window");
        assert_eq!((window.pixels.width, window.pixels.height), (250, 125));
    }

    #[test]
    fn the_window_of_a_small_face_has_the_minimum_size() {
        for at in [0.0, 0.33, 0.5, 0.97, 0.99] {
            let window = probe((200, 90), [at, at, 0.02, 0.02], &[]).window(0.5, 80).expect("a window");
            assert!(window.pixels.width >= 80 && window.pixels.height >= 80, "{at}: {:?}", window.pixels);
            assert_eq!(window.pixels.rgb.len() as u32, window.pixels.width * window.pixels.height * 3);
        }
        assert_eq!(probe((200, 79), [0.5, 0.5, 0.1, 0.1], &[]).window(0.5, 80), None, "the photo is too small");
    }

    #[test]
    fn other_faces_are_painted_grey_and_the_face_is_not() {
        let window = probe((100, 100), [0.4, 0.4, 0.2, 0.2], &[[0.5, 0.0, 0.5, 1.0]]).window(1.0, 1).expect("a window");
        assert_eq!((window.pixels.width, window.pixels.height), (60, 60));
        let at = |x: usize, y: usize| window.pixels.rgb[(y * 60 + x) * 3];
        assert_eq!((at(0, 0), at(25, 25), at(35, 30), at(45, 30), at(35, 5)), (7, 7, 7, GREY, GREY));
    }

    #[test]
    fn invalid_bounds_give_a_window_within_the_photo() {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 0.0, 0.5, 1.0, 2.0, f32::MAX];
        for (x, width) in values.iter().flat_map(|x| values.map(|width| (*x, width))) {
            let probe = probe((90, 100), [x, x, width, width], &[[width, x, x, width]]);
            let window = probe.window(0.3, 80).expect("a window");
            assert!((80..=90).contains(&window.pixels.width) && (80..=100).contains(&window.pixels.height));
        }
    }
}
