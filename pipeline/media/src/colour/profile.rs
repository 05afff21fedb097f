//! An ICC profile, as the way from its colours to sRGB.

use std::sync::Arc;

use moxcms::{
    ColorProfile, DataColorSpace, Layout, ProfileClass, RenderingIntent, Transform8BitExecutor, TransformOptions,
};

use crate::raster::Model;

/// Profiles have ten to forty. A hostile one could name one large table a hundred thousand times.
const MAX_TAGS: u32 = 100;

/// The table of tags, which begins with their count, follows a header of this size.
const HEADER: usize = 128;

/// What looks halfway to white is never made black.
const LIGHTEST_BLACK: f32 = 0.184_187;

#[derive(Clone)]
pub(crate) struct Profile {
    transform: Arc<Transform8BitExecutor>,
    /// What sRGB becomes when the darkest of these colours is black, unless it is already.
    blacker: Option<Box<[[u8; 256]; 3]>>,
}

impl Profile {
    /// None if it is no profile for such pixels, or nobody can use it.
    pub(crate) fn read(model: Model, icc: &[u8]) -> Option<Self> {
        let tags = u32::from_be_bytes(*icc.get(HEADER..)?.first_chunk()?);
        if tags > MAX_TAGS {
            return None;
        }
        let profile = ColorProfile::new_from_slice(icc).ok()?;
        let (space, from, to) = match model {
            // One channel: alpha is seen to beside it.
            Model::Grey | Model::GreyAlpha => (DataColorSpace::Gray, Layout::Gray, Layout::Rgb),
            Model::Rgb => (DataColorSpace::Rgb, Layout::Rgb, Layout::Rgb),
            Model::Rgba => (DataColorSpace::Rgb, Layout::Rgba, Layout::Rgba),
            Model::Cmyk => (DataColorSpace::Cmyk, Layout::Rgba, Layout::Rgb),
        };
        let is_of_a_device =
            !matches!(profile.profile_class, ProfileClass::DeviceLink | ProfileClass::Abstract | ProfileClass::Named);
        if profile.color_space != space || !is_of_a_device {
            return None;
        }
        let srgb = ColorProfile::new_srgb();
        // Not every profile has tables for the first.
        let intents = [RenderingIntent::Perceptual, RenderingIntent::RelativeColorimetric];
        let transform = intents.into_iter().find_map(|rendering_intent| {
            // Whole numbers are close enough for a matrix; dark inks they make visibly different.
            let prefer_fixed_point = model != Model::Cmyk;
            let options = TransformOptions { rendering_intent, prefer_fixed_point, ..TransformOptions::default() };
            profile.create_transform_8bit(from, &srgb, to, options).ok()
        })?;
        let black = match model {
            Model::Grey | Model::GreyAlpha => &[0][..],
            Model::Rgb => &[0; 3],
            Model::Rgba => &[0, 0, 0, 255],
            Model::Cmyk => &[255; 4],
        };
        let mut seen = vec![0; to.channels()];
        transform.transform(black, &mut seen).ok()?;
        Some(Self { transform, blacker: blacker(&seen) })
    }

    /// None if it cannot be followed.
    pub(crate) fn to_srgb(&self, samples: &[u8], model: Model) -> Option<Vec<u8>> {
        let (from, to) = match model {
            // Of grey itself, without alpha.
            Model::Grey | Model::GreyAlpha => (1, 3),
            Model::Rgb => (3, 3),
            Model::Rgba => (4, 4),
            Model::Cmyk => (4, 3),
        };
        let mut seen = vec![0; samples.len() / from * to];
        self.transform.transform(samples, &mut seen).ok()?;
        if let Some(blacker) = &self.blacker {
            for pixel in seen.chunks_exact_mut(to) {
                pixel.iter_mut().zip(blacker.iter()).for_each(|(light, table)| *light = table[usize::from(*light)]);
            }
        }
        Some(seen)
    }
}

/// Black point compensation as Little CMS has it, which moxcms lacks for inks: as much light as the darkest colour still
/// has is taken from all colours, and white stays white.
fn blacker(darkest: &[u8]) -> Option<Box<[[u8; 256]; 3]>> {
    if darkest.iter().take(3).all(|light| *light == 0) {
        return None;
    }
    let channel = |darkest: u8| {
        let black = linear(darkest).min(LIGHTEST_BLACK);
        std::array::from_fn(|light| encoded((linear(light as u8) - black) / (1.0 - black)))
    };
    Some(Box::new([channel(darkest[0]), channel(darkest[1]), channel(darkest[2])]))
}

/// From sRGB's curve to light.
fn linear(value: u8) -> f32 {
    let value = f32::from(value) / 255.0;
    if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

fn encoded(light: f32) -> u8 {
    let value = if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
    (value * 255.0).round() as u8
}
