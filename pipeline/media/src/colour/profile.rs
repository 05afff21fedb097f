//! An ICC profile as a transform to sRGB.

use std::sync::Arc;

use moxcms::{
    ColorProfile, DataColorSpace, Layout, ProfileClass, RenderingIntent, Transform8BitExecutor, TransformOptions,
};

use crate::raster::ColourModel;

/// Profiles have ten to forty tags. A hostile one could reference one large table a hundred thousand times.
const MAX_TAGS: u32 = 100;

/// Size of the profile header; the tag table, which begins with its count, follows.
const HEADER: usize = 128;

/// Rendering intents in order of preference: not every profile has tables for perceptual intent.
const INTENTS: [RenderingIntent; 2] = [RenderingIntent::Perceptual, RenderingIntent::RelativeColorimetric];

/// Linear light of L* = 50, the lightest black point that is compensated.
const LIGHTEST_BLACK: f32 = 0.184_187;

#[derive(Clone)]
pub(crate) struct Profile {
    transform: Arc<Transform8BitExecutor>,
    /// Channels of the source and of the output.
    channels: (usize, usize),
    /// Black point compensation per output channel, unless the darkest colour is black already.
    black_point: Option<Box<[[u8; 256]; 3]>>,
}

impl Profile {
    /// Reads a profile. Returns `None` if it does not apply to this colour model or is not supported.
    pub(crate) fn read(model: ColourModel, icc: &[u8]) -> Option<Self> {
        let (space, from, to, black) = match model {
            ColourModel::Grey | ColourModel::GreyAlpha => return None,
            ColourModel::Rgb => (DataColorSpace::Rgb, Layout::Rgb, Layout::Rgb, &[0; 3][..]),
            ColourModel::Rgba => (DataColorSpace::Rgb, Layout::Rgba, Layout::Rgba, &[0, 0, 0, 255][..]),
            ColourModel::Cmyk => (DataColorSpace::Cmyk, Layout::Rgba, Layout::Rgb, &[255; 4][..]),
        };
        let profile = read_device_profile(space, icc)?;
        let srgb = ColorProfile::new_srgb();
        let transform = INTENTS.into_iter().find_map(|rendering_intent| {
            // Fixed point is exact enough for a matrix profile, but visibly off for dark CMYK.
            let prefer_fixed_point = model != ColourModel::Cmyk;
            let options = TransformOptions { rendering_intent, prefer_fixed_point, ..TransformOptions::default() };
            profile.create_transform_8bit(from, &srgb, to, options).ok()
        })?;
        let mut darkest = vec![0; to.channels()];
        transform.transform(black, &mut darkest).ok()?;
        Some(Self { transform, channels: (from.channels(), to.channels()), black_point: black_point_tables(&darkest) })
    }

    /// Converts samples. Returns `None` if the transform fails.
    pub(crate) fn to_srgb(&self, samples: &[u8]) -> Option<Vec<u8>> {
        let (from, to) = self.channels;
        let mut converted = vec![0; samples.len() / from * to];
        self.transform.transform(samples, &mut converted).ok()?;
        if let Some(black_point) = &self.black_point {
            for pixel in converted.chunks_exact_mut(to) {
                pixel.iter_mut().zip(black_point.iter()).for_each(|(value, table)| *value = table[usize::from(*value)]);
            }
        }
        Some(converted)
    }
}

/// Returns the sRGB colour of each grey level by a grey profile. Computed in 16 bits: 8 are too few for dark levels.
pub(crate) fn grey_table(icc: &[u8]) -> Option<Vec<[u8; 3]>> {
    let mut profile = read_device_profile(DataColorSpace::Gray, icc)?;
    // moxcms reads the curve as luminance even where the connection space is Lab and it means L*.
    let is_lightness = profile.pcs == DataColorSpace::Lab;
    profile.pcs = DataColorSpace::Xyz;
    let options = TransformOptions { rendering_intent: RenderingIntent::Perceptual, ..TransformOptions::default() };
    let srgb = ColorProfile::new_srgb();
    let transform = profile.create_transform_16bit(Layout::Gray, &srgb, Layout::Rgb, options).ok()?;
    let all: [u16; 256] = std::array::from_fn(|grey| grey as u16 * 257);
    let mut converted = [0; 256 * 3];
    transform.transform(&all, &mut converted).ok()?;

    let linear = converted.chunks_exact(3).map(|grey| srgb_to_linear(f32::from(grey[0]) / 65_535.0));
    let mut luminance: Vec<f32> =
        linear.map(|value| if is_lightness { lightness_to_luminance(value) } else { value }).collect();
    let black = luminance[0].min(LIGHTEST_BLACK);
    luminance.iter_mut().for_each(|value| *value = (*value - black) / (1.0 - black));
    Some(luminance.into_iter().map(|value| [linear_to_srgb(value); 3]).collect())
}

/// Reads an input, display or output profile for this colour space.
fn read_device_profile(space: DataColorSpace, icc: &[u8]) -> Option<ColorProfile> {
    let tags = u32::from_be_bytes(*icc.get(HEADER..)?.first_chunk()?);
    if tags > MAX_TAGS {
        return None;
    }
    let profile = ColorProfile::new_from_slice(icc).ok()?;
    let is_other_class =
        matches!(profile.profile_class, ProfileClass::DeviceLink | ProfileClass::Abstract | ProfileClass::Named);
    (profile.color_space == space && !is_other_class).then_some(profile)
}

/// Returns the tables of black point compensation as Little CMS applies it, which moxcms lacks for CMYK: in linear light, the
/// darkest colour maps to black and white stays white.
fn black_point_tables(darkest: &[u8]) -> Option<Box<[[u8; 256]; 3]>> {
    if darkest.iter().take(3).all(|value| *value == 0) {
        return None;
    }
    let to_linear = |byte: u8| srgb_to_linear(f32::from(byte) / 255.0);
    let channel = |darkest: u8| {
        let black = to_linear(darkest).min(LIGHTEST_BLACK);
        std::array::from_fn(|value| linear_to_srgb((to_linear(value as u8) - black) / (1.0 - black)))
    };
    Some(Box::new([channel(darkest[0]), channel(darkest[1]), channel(darkest[2])]))
}

/// The inverse transfer function of sRGB.
fn srgb_to_linear(value: f32) -> f32 {
    if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

/// CIE L* to relative luminance, both 0 to 1.
fn lightness_to_luminance(value: f32) -> f32 {
    if value <= 0.08 { value * 2_700.0 / 24_389.0 } else { ((value + 0.16) / 1.16).powi(3) }
}

/// The transfer function of sRGB, quantized to eight bits.
fn linear_to_srgb(linear: f32) -> u8 {
    let value = if linear <= 0.003_130_8 { linear * 12.92 } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (value * 255.0).round() as u8
}
