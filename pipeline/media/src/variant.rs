//! The pictures made of every photo: how large, and which part.

use sparks_domain::{RejectCode, Rejection};
use sparks_engine::Rendered;
use sparks_resize::{Filter, Layout};
use sparks_webp::Settings;

use crate::{
    encode,
    orientation::Orientation,
    picture::Picture,
    raster::{Model, Raster},
    reject,
};

/// How a picture of another shape gets its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// All of it, within the size.
    Inside,
    /// Its middle, filling the size.
    Cover,
}

/// A picture to make. No picture is ever enlarged; a smaller original gives a smaller picture.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantSpec {
    /// How a picture of another shape gets its size.
    pub fit: Fit,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// WebP's, 0 to 100.
    pub quality: f32,
    /// WebP's effort, 0 to 6.
    pub method: u8,
    /// Whether colour is stored so that it is sharp when a viewer has enlarged it.
    pub sharp_yuv: bool,
}

impl VariantSpec {
    /// For looking at.
    pub fn large() -> Self {
        Self { fit: Fit::Inside, width: 1920, height: 1920, quality: 95.0, method: 4, sharp_yuv: true }
    }

    /// For the grid.
    pub fn medium() -> Self {
        Self { fit: Fit::Cover, width: 400, height: 400, quality: 85.0, method: 4, sharp_yuv: true }
    }

    /// Of a picture of this size that is stored this way.
    pub(crate) fn plan(&self, (width, height): (u32, u32), orientation: Orientation) -> Plan {
        let (wanted_width, wanted_height) = orientation.upright_size(self.width.max(1), self.height.max(1));
        match self.fit {
            Fit::Inside => Plan::inside(width, height, wanted_width, wanted_height),
            Fit::Cover => Plan::cover(width, height, wanted_width, wanted_height),
        }
    }

    pub(crate) fn encode(&self, picture: &Picture) -> Result<Rendered, Rejection> {
        let webp = encode::webp(picture, Settings { quality: self.quality, sharp_yuv: self.sharp_yuv }, self.method)?;
        Ok(Rendered { width: picture.width, height: picture.height, webp })
    }
}

/// A part of a picture (left, top, width, height) and the size it gets.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) part: [f64; 4],
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Plan {
    /// How large it makes a pixel.
    pub(crate) fn scale(&self) -> f64 {
        let [.., part_width, part_height] = self.part;
        (f64::from(self.width) / part_width).max(f64::from(self.height) / part_height)
    }

    /// The same of a picture that has so many pixels for each of this one.
    pub(crate) fn scaled(&self, [across, down]: [f64; 2]) -> Self {
        let [left, top, width, height] = self.part;
        Self { part: [left * across, top * down, width * across, height * down], ..*self }
    }

    /// Bytes of the print itself, with as many channels as there can be.
    pub(crate) fn printed(&self) -> u64 {
        const CHANNELS: u64 = 4;
        self.pixels() * CHANNELS
    }

    /// Bytes of what is shrunk across but not yet down.
    pub(crate) fn strip(&self) -> u64 {
        self.printed() / u64::from(self.height) * self.part[3].ceil() as u64
    }

    /// Bytes that an encoder takes for it: planes and file, and codes as for noise at the highest quality. Photos have a fifth of
    /// those, but who knows what is in a file.
    pub(crate) fn encoding(&self) -> u64 {
        const PLANES_AND_FILE: u64 = 8;
        const CODES: u64 = 36;
        self.pixels() * (PLANES_AND_FILE + CODES)
    }

    fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// How many eighths of the picture are enough: a fifth more than is wanted, so that nobody sees a difference.
    pub(crate) fn eighths(&self) -> u32 {
        ((self.scale() * 1.2 * 8.0).ceil() as u32).clamp(1, 8)
    }

    /// Whether a smaller picture of the whole, made by `other`, does as well: twice the resolution shows no difference.
    pub(crate) fn can_follow(&self, other: &Self) -> bool {
        other.scale() >= 2.0 * self.scale()
    }

    pub(crate) fn inside(width: u32, height: u32, max_width: u32, max_height: u32) -> Self {
        let [w, h] = [width, height].map(f64::from);
        let scale = (f64::from(max_width) / w).min(f64::from(max_height) / h).min(1.0);
        let scaled = |side: f64| ((side * scale).round() as u32).max(1);
        Self { part: [0.0, 0.0, w, h], width: scaled(w), height: scaled(h) }
    }

    fn cover(width: u32, height: u32, wanted_width: u32, wanted_height: u32) -> Self {
        let (out_width, out_height) = (wanted_width.min(width), wanted_height.min(height));
        let [w, h, wanted_w, wanted_h] = [width, height, wanted_width, wanted_height].map(f64::from);
        let scale = (wanted_w / w).max(wanted_h / h);
        if scale < 1.0 {
            let (part_w, part_h) = ((wanted_w / scale).min(w), (wanted_h / scale).min(h));
            let part = [(w - part_w) / 2.0, (h - part_h) / 2.0, part_w, part_h];
            return Self { part, width: out_width, height: out_height };
        }
        // Unscaled: whole pixels, so that they stay as they are.
        let part = [(width - out_width) / 2, (height - out_height) / 2, out_width, out_height];
        Self { part: part.map(f64::from), width: out_width, height: out_height }
    }
}

impl Raster {
    /// The part of the picture, in its size, with colours weighed by their alpha.
    pub(crate) fn print(&self, plan: &Plan) -> Result<Self, Rejection> {
        let size = (self.width, self.height);
        let samples = resample(&self.samples, size, self.model, plan, Filter::Lanczos3)?;
        Ok(Self { width: plan.width, height: plan.height, model: self.model, samples })
    }
}

pub(crate) fn resample(
    samples: &[u8],
    size: (u32, u32),
    model: Model,
    plan: &Plan,
    filter: Filter,
) -> Result<Vec<u8>, Rejection> {
    let failed = |reason: String| reject(RejectCode::Damaged, format!("the picture cannot be resized: {reason}"));
    let layout = Layout { channels: model.channels(), alpha: model.has_alpha() };
    let new_size = (plan.width, plan.height);
    sparks_resize::resample(samples, size, layout, plan.part, new_size, filter).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_keeps_the_shape_and_never_enlarges() {
        let size = |w, h| {
            let plan = Plan::inside(w, h, 1920, 1920);
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
        let plan = |w, h| Plan::cover(w, h, 400, 400);
        assert_eq!(plan(4000, 3000), Plan { part: [500.0, 0.0, 3000.0, 3000.0], width: 400, height: 400 });
        assert_eq!(plan(1000, 4000), Plan { part: [0.0, 1500.0, 1000.0, 1000.0], width: 400, height: 400 });
        assert_eq!(plan(300, 5000), Plan { part: [0.0, 2300.0, 300.0, 400.0], width: 300, height: 400 });
        assert_eq!(plan(100, 50), Plan { part: [0.0, 0.0, 100.0, 50.0], width: 100, height: 50 });
        assert_eq!(plan(16_000, 10), Plan { part: [7800.0, 0.0, 400.0, 10.0], width: 400, height: 10 });
    }

    #[test]
    fn the_part_never_leaves_the_picture() {
        for width in 395..460 {
            for height in 395..460 {
                let Plan { part: [left, top, w, h], .. } = Plan::cover(width, height, 400, 397);
                assert!(left >= 0.0 && top >= 0.0 && left + w <= width.into() && top + h <= height.into());
            }
        }
    }

    #[test]
    fn a_fifth_more_than_wanted_is_enough() {
        let eighths = |w, h| Plan::inside(w, h, 2048, 2048).eighths();
        assert_eq!([eighths(6000, 4000), eighths(4000, 3000), eighths(2800, 2100), eighths(200, 100)], [4, 5, 8, 8]);
        assert_eq!(eighths(20_000, 10), 1);
        let plan = Plan::cover(4000, 3000, 400, 400);
        assert_eq!(plan.eighths(), 2);
        assert_eq!(plan.scaled([0.25, 0.5]).part, [125.0, 0.0, 750.0, 1500.0]);
        assert!(plan.can_follow(&Plan::inside(4000, 3000, 1068, 1068)));
        assert!(!plan.can_follow(&Plan::inside(4000, 3000, 1064, 1064)));
    }

    #[test]
    fn an_unscaled_part_keeps_its_pixels() {
        let full: Vec<u8> = (0..7 * 5 * 3).map(|n| (n * 37 % 251) as u8).collect();
        let plan = Plan::cover(7, 5, 4, 9);
        let picked = resample(&full, (7, 5), Model::Rgb, &plan, Filter::Lanczos3).expect("resampled");
        let expected: Vec<u8> = full.chunks(7 * 3).flat_map(|row| row[3..5 * 3].to_vec()).collect();
        assert_eq!(picked, expected);
    }

    #[test]
    fn transparent_colours_do_not_bleed() {
        // Red, beside green that nobody can see.
        let full = [[255, 0, 0, 255], [0, 255, 0, 0]].concat().repeat(64);
        let plan = Plan::inside(128, 1, 16, 1);
        let small = resample(&full, (128, 1), Model::Rgba, &plan, Filter::Lanczos3).expect("resampled");
        assert!(small.chunks(4).all(|pixel| pixel[0] > 250 && pixel[1] == 0), "{small:?}");
        let grey =
            resample(&[[90, 255], [0, 0]].concat().repeat(64), (128, 1), Model::GreyAlpha, &plan, Filter::Lanczos3);
        assert!(grey.expect("resampled").chunks(2).all(|pixel| pixel[0].abs_diff(90) < 3));
        // Black ink is no alpha: where there is none of it, there are others.
        let inks = resample(&full, (128, 1), Model::Cmyk, &plan, Filter::Lanczos3).expect("resampled");
        assert!(inks.chunks(4).all(|pixel| pixel[1].abs_diff(128) < 30), "{inks:?}");
    }
}
