//! The background of synthetic photos: a soft gradient with a little grain.

use fastrand::Rng;
use image::RgbImage;

/// Amplitude of the grain: enough to make JPEG compression realistic, little enough to keep files small.
const GRAIN: u8 = 3;

/// Draws a background that cannot be mistaken for a marker: no mix of its corner colours is magenta.
pub(super) fn backdrop(width: u32, height: u32, rng: &mut Rng) -> RgbImage {
    let corners: [[f32; 3]; 4] = std::array::from_fn(|_| colour(rng));
    // Generated once and read from another offset in every row: a random number per pixel would take as long as the JPEG.
    let grain: Vec<i32> =
        (0..width as usize + 4096).map(|_| i32::from(rng.u8(0..=2 * GRAIN)) - i32::from(GRAIN)).collect();
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    for y in 0..height {
        let down = y as f32 / height as f32;
        let left = mix(corners[0], corners[1], down);
        let right = mix(corners[2], corners[3], down);
        let step: [i32; 3] = std::array::from_fn(|c| fixed((right[c] - left[c]) / width as f32));
        let mut at = left.map(fixed);
        let from = rng.usize(0..4096);
        for grain in &grain[from..from + width as usize] {
            rgb.extend_from_slice(&at.map(|channel| ((channel >> 16) + grain) as u8));
            at = std::array::from_fn(|c| at[c] + step[c]);
        }
    }
    RgbImage::from_raw(width, height, rgb).unwrap_or_default()
}

/// Returns a muted colour, so that grain never overflows, with green at least the mean of red and blue: that holds for every mix
/// of two such colours too, and excludes magenta.
fn colour(rng: &mut Rng) -> [f32; 3] {
    let [red, blue]: [f32; 2] = std::array::from_fn(|_| 60.0 + 120.0 * rng.f32());
    let green = f32::midpoint(red, blue) + 40.0 * rng.f32();
    [red, green, blue]
}

fn mix(a: [f32; 3], b: [f32; 3], share: f32) -> [f32; 3] {
    std::array::from_fn(|c| a[c] + (b[c] - a[c]) * share)
}

fn fixed(value: f32) -> i32 {
    (value * 65536.0) as i32
}
