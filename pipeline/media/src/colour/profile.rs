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

/// Not every profile has tables for the first.
const INTENTS: [RenderingIntent; 2] = [RenderingIntent::Perceptual, RenderingIntent::RelativeColorimetric];

/// What looks halfway to white is never made black.
const LIGHTEST_BLACK: f32 = 0.184_187;

#[derive(Clone)]
pub(crate) struct Profile {
    transform: Arc<Transform8BitExecutor>,
    /// Of its colours, and of sRGB's.
    channels: (usize, usize),
    /// What sRGB becomes when the darkest of these colours is black, unless it is already.
    blacker: Option<Box<[[u8; 256]; 3]>>,
}

impl Profile {
    /// None if it is no profile for such pixels, or nobody can use it.
    pub(crate) fn read(model: Model, icc: &[u8]) -> Option<Self> {
        let (space, from, to, black) = match model {
            Model::Grey | Model::GreyAlpha => return None,
            Model::Rgb => (DataColorSpace::Rgb, Layout::Rgb, Layout::Rgb, &[0; 3][..]),
            Model::Rgba => (DataColorSpace::Rgb, Layout::Rgba, Layout::Rgba, &[0, 0, 0, 255][..]),
            Model::Cmyk => (DataColorSpace::Cmyk, Layout::Rgba, Layout::Rgb, &[255; 4][..]),
        };
        let profile = of_a_device(space, icc)?;
        let srgb = ColorProfile::new_srgb();
        let transform = INTENTS.into_iter().find_map(|rendering_intent| {
            // Whole numbers are close enough for a matrix; dark inks they make visibly different.
            let prefer_fixed_point = model != Model::Cmyk;
            let options = TransformOptions { rendering_intent, prefer_fixed_point, ..TransformOptions::default() };
            profile.create_transform_8bit(from, &srgb, to, options).ok()
        })?;
        let mut darkest = vec![0; to.channels()];
        transform.transform(black, &mut darkest).ok()?;
        Some(Self { transform, channels: (from.channels(), to.channels()), blacker: blacker(&darkest) })
    }

    /// None if it cannot be followed.
    pub(crate) fn to_srgb(&self, samples: &[u8]) -> Option<Vec<u8>> {
        let (from, to) = self.channels;
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

/// How every grey looks by a profile of greys. Computed with sixteen bits: eight are too few for dark ones.
pub(crate) fn greys(icc: &[u8]) -> Option<Vec<[u8; 3]>> {
    let mut profile = of_a_device(DataColorSpace::Gray, icc)?;
    // moxcms takes the curve for one of light, whichever it is.
    let is_of_lightness = profile.pcs == DataColorSpace::Lab;
    profile.pcs = DataColorSpace::Xyz;
    let options = TransformOptions { rendering_intent: RenderingIntent::Perceptual, ..TransformOptions::default() };
    let srgb = ColorProfile::new_srgb();
    let transform = profile.create_transform_16bit(Layout::Gray, &srgb, Layout::Rgb, options).ok()?;
    let all: [u16; 256] = std::array::from_fn(|grey| grey as u16 * 257);
    let mut seen = [0; 256 * 3];
    transform.transform(&all, &mut seen).ok()?;

    let light = seen.chunks_exact(3).map(|grey| linear(f32::from(grey[0]) / 65_535.0));
    let mut light: Vec<f32> = light.map(|curve| if is_of_lightness { of_lightness(curve) } else { curve }).collect();
    let black = light[0].min(LIGHTEST_BLACK);
    light.iter_mut().for_each(|light| *light = (*light - black) / (1.0 - black));
    Some(light.into_iter().map(|light| [encoded(light); 3]).collect())
}

/// A profile of something that takes or shows colours of this kind.
fn of_a_device(space: DataColorSpace, icc: &[u8]) -> Option<ColorProfile> {
    let tags = u32::from_be_bytes(*icc.get(HEADER..)?.first_chunk()?);
    if tags > MAX_TAGS {
        return None;
    }
    let profile = ColorProfile::new_from_slice(icc).ok()?;
    let another =
        matches!(profile.profile_class, ProfileClass::DeviceLink | ProfileClass::Abstract | ProfileClass::Named);
    (profile.color_space == space && !another).then_some(profile)
}

/// Black point compensation as Little CMS has it, which moxcms lacks for inks: as much light as the darkest colour still
/// has is taken from all colours, and white stays white.
fn blacker(darkest: &[u8]) -> Option<Box<[[u8; 256]; 3]>> {
    if darkest.iter().take(3).all(|light| *light == 0) {
        return None;
    }
    let of_byte = |byte: u8| linear(f32::from(byte) / 255.0);
    let channel = |darkest: u8| {
        let black = of_byte(darkest).min(LIGHTEST_BLACK);
        std::array::from_fn(|light| encoded((of_byte(light as u8) - black) / (1.0 - black)))
    };
    Some(Box::new([channel(darkest[0]), channel(darkest[1]), channel(darkest[2])]))
}

/// From sRGB's curve to light.
fn linear(value: f32) -> f32 {
    if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

/// From CIE's L*, 0 to 1.
fn of_lightness(value: f32) -> f32 {
    if value <= 0.08 { value * 2_700.0 / 24_389.0 } else { ((value + 0.16) / 1.16).powi(3) }
}

fn encoded(light: f32) -> u8 {
    let value = if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
    (value * 255.0).round() as u8
}
