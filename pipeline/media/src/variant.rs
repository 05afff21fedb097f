//! The variants of a photo: their size, and the rectangle of the photo they show.

use sparks_domain::{RejectCode, Rejection};
use sparks_engine::EncodedVariant;
use sparks_resize::{Filter, Layout};
use sparks_webp::Settings;

use crate::{
    encode,
    orientation::Orientation,
    raster::{ColourModel, Raster},
    reject,
    srgb_image::SrgbImage,
};

/// How a photo of another aspect ratio is fitted to the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The whole photo, within the size.
    Inside,
    /// The centre of the photo, filling the size.
    Cover,
}

/// The specification of a variant. Nothing is ever enlarged: a smaller original gives a smaller variant.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantSpec {
    /// How a photo of another aspect ratio is fitted to the size.
    pub fit: Fit,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// WebP quality, 0 to 100.
    pub quality: f32,
    /// WebP method (effort), 0 to 6.
    pub method: u8,
    /// Whether chroma is subsampled by the sharp YUV conversion of libwebp.
    pub sharp_yuv: bool,
}

impl VariantSpec {
    /// Returns the default for full-screen display.
    pub fn large() -> Self {
        Self { fit: Fit::Inside, width: 1920, height: 1920, quality: 95.0, method: 4, sharp_yuv: true }
    }

    /// Returns the default for the photo grid.
    pub fn medium() -> Self {
        Self { fit: Fit::Cover, width: 400, height: 400, quality: 85.0, method: 4, sharp_yuv: true }
    }

    /// Plans the resize of a photo of this stored size and orientation.
    pub(crate) fn plan(&self, (width, height): (u32, u32), orientation: Orientation) -> ResizePlan {
        let (wanted_width, wanted_height) = orientation.upright_size(self.width.max(1), self.height.max(1));
        match self.fit {
            Fit::Inside => ResizePlan::inside(width, height, wanted_width, wanted_height),
            Fit::Cover => ResizePlan::cover(width, height, wanted_width, wanted_height),
        }
    }

    pub(crate) fn encode(&self, image: &SrgbImage) -> Result<EncodedVariant, Rejection> {
        let webp = encode::webp(image, Settings { quality: self.quality, sharp_yuv: self.sharp_yuv }, self.method)?;
        Ok(EncodedVariant { width: image.width, height: image.height, webp })
    }
}

/// A resize: a source rectangle (left, top, width, height) and the output size.
#[derive(Debug, PartialEq)]
pub(crate) struct ResizePlan {
    pub(crate) source: [f64; 4],
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl ResizePlan {
    /// Returns the factor by which a pixel grows, the larger of both axes.
    pub(crate) fn scale(&self) -> f64 {
        let [.., source_width, source_height] = self.source;
        (f64::from(self.width) / source_width).max(f64::from(self.height) / source_height)
    }

    /// Returns the same plan for a source that is `x` times as wide and `y` times as high.
    pub(crate) fn scaled(&self, [x, y]: [f64; 2]) -> Self {
        let [left, top, width, height] = self.source;
        Self { source: [left * x, top * y, width * x, height * y], ..*self }
    }

    /// Returns the bytes of the output, with the largest possible number of channels.
    pub(crate) fn output_bytes(&self) -> u64 {
        const CHANNELS: u64 = 4;
        self.pixels() * CHANNELS
    }

    /// Returns the bytes of the intermediate image between the horizontal and the vertical pass.
    pub(crate) fn intermediate_bytes(&self) -> u64 {
        self.output_bytes() / u64::from(self.height) * self.source[3].ceil() as u64
    }

    /// Returns the bytes that an encoder needs: planes, file and tokens. Tokens are counted as for noise at the highest
    /// quality, since the content is unknown; photos need a fifth of that.
    pub(crate) fn encoder_bytes(&self) -> u64 {
        const PLANES_AND_FILE: u64 = 8;
        const TOKENS: u64 = 36;
        self.pixels() * (PLANES_AND_FILE + TOKENS)
    }

    fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Returns the numerator of the scaled IDCT, in eighths, 1 to 8: one fifth more resolution than the output makes the
    /// difference invisible.
    pub(crate) fn scale_num(&self) -> u32 {
        ((self.scale() * 1.2 * 8.0).ceil() as u32).clamp(1, 8)
    }

    /// Returns whether a variant may be resized from the output of `larger`, which shows the whole photo: at twice the resolution
    /// there is no visible difference.
    pub(crate) fn can_derive_from(&self, larger: &Self) -> bool {
        larger.scale() >= 2.0 * self.scale()
    }

    pub(crate) fn inside(width: u32, height: u32, max_width: u32, max_height: u32) -> Self {
        let [w, h] = [width, height].map(f64::from);
        let scale = (f64::from(max_width) / w).min(f64::from(max_height) / h).min(1.0);
        let scaled = |side: f64| ((side * scale).round() as u32).max(1);
        Self { source: [0.0, 0.0, w, h], width: scaled(w), height: scaled(h) }
    }

    fn cover(width: u32, height: u32, wanted_width: u32, wanted_height: u32) -> Self {
        let (out_width, out_height) = (wanted_width.min(width), wanted_height.min(height));
        let [w, h, wanted_w, wanted_h] = [width, height, wanted_width, wanted_height].map(f64::from);
        let scale = (wanted_w / w).max(wanted_h / h);
        if scale < 1.0 {
            let (source_w, source_h) = ((wanted_w / scale).min(w), (wanted_h / scale).min(h));
            let source = [(w - source_w) / 2.0, (h - source_h) / 2.0, source_w, source_h];
            return Self { source, width: out_width, height: out_height };
        }
        // Not scaled: an integer offset copies the pixels unchanged.
        let source = [(width - out_width) / 2, (height - out_height) / 2, out_width, out_height];
        Self { source: source.map(f64::from), width: out_width, height: out_height }
    }
}

impl Raster {
    /// Resamples by Lanczos, with colours premultiplied by their alpha.
    pub(crate) fn resample(&self, plan: &ResizePlan) -> Result<Self, Rejection> {
        let size = (self.width, self.height);
        let samples = resample(&self.samples, size, self.model, plan, Filter::Lanczos3)?;
        Ok(Self { width: plan.width, height: plan.height, model: self.model, samples })
    }
}

pub(crate) fn resample(
    samples: &[u8],
    size: (u32, u32),
    model: ColourModel,
    plan: &ResizePlan,
    filter: Filter,
) -> Result<Vec<u8>, Rejection> {
    let failed = |reason: String| reject(RejectCode::Damaged, format!("failed to resize image: {reason}"));
    let layout = Layout { channels: model.channels(), has_alpha: model.has_alpha() };
    let new_size = (plan.width, plan.height);
    sparks_resize::resample(samples, size, layout, plan.source, new_size, filter).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_keeps_the_shape_and_never_enlarges() {
        let size = |w, h| {
            let plan = ResizePlan::inside(w, h, 1920, 1920);
            (plan.width, plan.height)
        };
        assert_eq!(size(4000, 3000), (1920, 1440));
        assert_eq!(size(3000, 4000), (1440, 1920));
        assert_eq!(size(800, 600), (800, 600));
        assert_eq!(size(1920, 1920), (1920, 1920));
        assert_eq!(size(16_000, 10), (1920, 1));
        assert_eq!(size(16_000, 1), (1920, 1));
    }

    #[test]
    fn cover_takes_the_middle() {
        let plan = |w, h| ResizePlan::cover(w, h, 400, 400);
        assert_eq!(plan(4000, 3000), ResizePlan { source: [500.0, 0.0, 3000.0, 3000.0], width: 400, height: 400 });
        assert_eq!(plan(1000, 4000), ResizePlan { source: [0.0, 1500.0, 1000.0, 1000.0], width: 400, height: 400 });
        assert_eq!(plan(300, 5000), ResizePlan { source: [0.0, 2300.0, 300.0, 400.0], width: 300, height: 400 });
        assert_eq!(plan(100, 50), ResizePlan { source: [0.0, 0.0, 100.0, 50.0], width: 100, height: 50 });
        assert_eq!(plan(16_000, 10), ResizePlan { source: [7800.0, 0.0, 400.0, 10.0], width: 400, height: 10 });
    }

    #[test]
    fn the_source_never_leaves_the_photo() {
        for width in 395..460 {
            for height in 395..460 {
                let ResizePlan { source: [left, top, w, h], .. } = ResizePlan::cover(width, height, 400, 397);
                assert!(left >= 0.0 && top >= 0.0 && left + w <= width.into() && top + h <= height.into());
            }
        }
    }

    #[test]
    fn the_idct_scale_keeps_a_fifth_more_than_the_output() {
        let scale_num = |w, h| ResizePlan::inside(w, h, 2048, 2048).scale_num();
        assert_eq!(
            [scale_num(6000, 4000), scale_num(4000, 3000), scale_num(2800, 2100), scale_num(200, 100)],
            [4, 5, 8, 8]
        );
        assert_eq!(scale_num(20_000, 10), 1);
        let plan = ResizePlan::cover(4000, 3000, 400, 400);
        assert_eq!(plan.scale_num(), 2);
        assert_eq!(plan.scaled([0.25, 0.5]).source, [125.0, 0.0, 750.0, 1500.0]);
        assert!(plan.can_derive_from(&ResizePlan::inside(4000, 3000, 1068, 1068)));
        assert!(!plan.can_derive_from(&ResizePlan::inside(4000, 3000, 1064, 1064)));
    }

    #[test]
    fn an_unscaled_source_keeps_its_pixels() {
        let full: Vec<u8> = (0..7 * 5 * 3).map(|n| (n * 37 % 251) as u8).collect();
        let plan = ResizePlan::cover(7, 5, 4, 9);
        let picked = resample(&full, (7, 5), ColourModel::Rgb, &plan, Filter::Lanczos3).expect("resampled");
        let expected: Vec<u8> = full.chunks(7 * 3).flat_map(|row| row[3..5 * 3].to_vec()).collect();
        assert_eq!(picked, expected);
    }

    #[test]
    fn transparent_colours_do_not_bleed() {
        // Red beside fully transparent green.
        let full = [[255, 0, 0, 255], [0, 255, 0, 0]].concat().repeat(64);
        let plan = ResizePlan::inside(128, 1, 16, 1);
        let small = resample(&full, (128, 1), ColourModel::Rgba, &plan, Filter::Lanczos3).expect("resampled");
        assert!(small.chunks(4).all(|pixel| pixel[0] > 250 && pixel[1] == 0), "{small:?}");
        let grey = resample(
            &[[90, 255], [0, 0]].concat().repeat(64),
            (128, 1),
            ColourModel::GreyAlpha,
            &plan,
            Filter::Lanczos3,
        );
        assert!(grey.expect("resampled").chunks(2).all(|pixel| pixel[0].abs_diff(90) < 3));
        // The black channel of CMYK is not alpha.
        let inks = resample(&full, (128, 1), ColourModel::Cmyk, &plan, Filter::Lanczos3).expect("resampled");
        assert!(inks.chunks(4).all(|pixel| pixel[1].abs_diff(128) < 30), "{inks:?}");
    }
}
