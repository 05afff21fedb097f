//! Degradations of a photo between the camera and the analyzer.

use image::imageops::{FilterType, resize};
use image::{Rgb, RgbImage};
use sparks_faces::jpeg;

use super::open;

/// Encodes as a JPEG of quality 85 with 4:2:0 chroma subsampling, as cameras do, and decodes.
pub fn camera_jpeg(image: &RgbImage) -> RgbImage {
    open(&jpeg(&subsample_chroma(image)))
}

/// Downscales to at most 1920 pixels wide and high.
pub fn downscaled(image: &RgbImage) -> RgbImage {
    let longer = image.width().max(image.height());
    let scaled = |side: u32| (f64::from(side) * 1920.0 / f64::from(longer)).round() as u32;
    resize(image, scaled(image.width()), scaled(image.height()), FilterType::Lanczos3)
}

/// Encodes as a WebP of quality 95 and decodes.
pub fn webp(image: &RgbImage) -> RgbImage {
    open(&webp::Encoder::from_rgb(image.as_raw(), image.width(), image.height()).encode(95.0))
}

/// Averages the chroma of two by two pixels and keeps their luma, because the JPEG encoder does not subsample.
fn subsample_chroma(image: &RgbImage) -> RgbImage {
    let mut shared = image.clone();
    let (width, height) = (image.width() & !1, image.height() & !1);
    for (x, y) in (0..height).step_by(2).flat_map(|y| (0..width).step_by(2).map(move |x| (x, y))) {
        let block = [(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)];
        let pixels = block.map(|(x, y)| image.get_pixel(x, y).0.map(f32::from));
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
