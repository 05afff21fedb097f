//! What happens to a photo between the camera and the analyzer.

use image::imageops::{FilterType, resize};
use image::{Rgb, RgbImage};
use sparks_faces::jpeg;

use super::open;

/// A JPEG of quality 85 with one colour for every four pixels, as cameras write it.
pub fn camera(picture: &RgbImage) -> RgbImage {
    open(&jpeg(&shared_colour(picture)))
}

/// At most 1920 pixels wide and high.
pub fn downscaled(picture: &RgbImage) -> RgbImage {
    let longer = picture.width().max(picture.height());
    let scaled = |side: u32| (f64::from(side) * 1920.0 / f64::from(longer)).round() as u32;
    resize(picture, scaled(picture.width()), scaled(picture.height()), FilterType::Lanczos3)
}

/// There and back as a WebP of quality 95.
pub fn webp(picture: &RgbImage) -> RgbImage {
    open(&webp::Encoder::from_rgb(picture.as_raw(), picture.width(), picture.height()).encode(95.0))
}

/// The encoder at hand keeps all colour, so it is thrown away before: two by two pixels get one colour and keep their luma.
fn shared_colour(picture: &RgbImage) -> RgbImage {
    let mut shared = picture.clone();
    let (width, height) = (picture.width() & !1, picture.height() & !1);
    for (x, y) in (0..height).step_by(2).flat_map(|y| (0..width).step_by(2).map(move |x| (x, y))) {
        let block = [(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)];
        let pixels = block.map(|(x, y)| picture.get_pixel(x, y).0.map(f32::from));
        let mean: [f32; 3] = std::array::from_fn(|c| pixels.iter().map(|pixel| pixel[c]).sum::<f32>() / 4.0);
        for ((x, y), pixel) in block.into_iter().zip(pixels) {
            let shift = luma(pixel) - luma(mean);
            shared.put_pixel(x, y, Rgb(mean.map(|channel| (channel + shift).round() as u8)));
        }
    }
    shared
}

fn luma(pixel: [f32; 3]) -> f32 {
    0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]
}
