//! From a file's own colours to sRGB.
//!
//! As libvips does it for sharp: by the embedded profile, perceptually, with black point compensation. Inks without a
//! profile are taken for those of the profile that libvips falls back to; everything else without one is sRGB already.
//! PNG's gAMA, cHRM and cICP are ignored, there and here.
//!
//! A profile that is broken, unsupported or made for other pixels never costs a photo: it is as good as none.

use std::sync::{Arc, LazyLock};

use moxcms::{
    ColorProfile, DataColorSpace, Layout, ProfileClass, RenderingIntent, Transform8BitExecutor, TransformOptions,
};

use crate::{
    picture::Picture,
    raster::{Model, Raster},
};

#[cfg(test)]
mod tests;

/// Graeme Gill's "Chemical proof", in the public domain, as libvips has it; its tables towards print are left out.
const INKS: &[u8] = include_bytes!("colour/chemical_proof.icc");

static PLAIN_INKS: LazyLock<Option<Arc<Transform8BitExecutor>>> = LazyLock::new(|| to_srgb(Model::Cmyk, INKS));

/// Profiles have ten to forty. A hostile one could name one large table a hundred thousand times.
const MAX_TAGS: u32 = 100;

/// The table of tags, which begins with their count, follows a header of this size.
const HEADER: usize = 128;

/// What a file's numbers look like.
pub(crate) enum Colours {
    AsTheyAre,
    /// Every grey in sRGB.
    Greys(Box<[u8; 256 * 3]>),
    Profile(Arc<Transform8BitExecutor>),
}

impl Colours {
    pub(crate) fn of(model: Model, profile: Option<&[u8]>) -> Self {
        let embedded = profile.and_then(|profile| to_srgb(model, profile));
        match (model, embedded) {
            (Model::Cmyk, embedded) => embedded.or_else(|| PLAIN_INKS.clone()).map_or(Self::AsTheyAre, Self::Profile),
            (_, None) => Self::AsTheyAre,
            (Model::Grey | Model::GreyAlpha, Some(embedded)) => greys(&*embedded),
            (Model::Rgb, Some(embedded)) if is_srgb::<3>(&*embedded) => Self::AsTheyAre,
            (Model::Rgba, Some(embedded)) if is_srgb::<4>(&*embedded) => Self::AsTheyAre,
            (Model::Rgb | Model::Rgba, Some(embedded)) => Self::Profile(embedded),
        }
    }

    /// The same picture in sRGB.
    pub(crate) fn develop(&self, raster: Raster) -> Picture {
        let Raster { width, height, model, samples } = raster;
        let alpha = model.has_alpha();
        let samples = match self {
            Self::AsTheyAre => as_they_are(model, samples),
            Self::Greys(greys) => in_colours(&samples, alpha, |grey| {
                let at = usize::from(grey) * 3;
                [greys[at], greys[at + 1], greys[at + 2]]
            }),
            Self::Profile(profile) => {
                let channels = if alpha { 4 } else { 3 };
                let mut developed = vec![0; samples.len() / model.channels() * channels];
                match profile.transform(&samples, &mut developed) {
                    Ok(()) => developed,
                    Err(_) => as_they_are(model, samples),
                }
            }
        };
        Picture { width, height, alpha, samples }
    }
}

/// The way to sRGB that a profile describes, if it is one for such pixels.
fn to_srgb(model: Model, profile: &[u8]) -> Option<Arc<Transform8BitExecutor>> {
    let tags = u32::from_be_bytes(*profile.get(HEADER..)?.first_chunk()?);
    if tags > MAX_TAGS {
        return None;
    }
    let profile = ColorProfile::new_from_slice(profile).ok()?;
    let (space, from, to) = match model {
        // One channel: alpha is seen to beside it.
        Model::Grey | Model::GreyAlpha => (DataColorSpace::Gray, Layout::Gray, Layout::Rgb),
        Model::Rgb => (DataColorSpace::Rgb, Layout::Rgb, Layout::Rgb),
        Model::Rgba => (DataColorSpace::Rgb, Layout::Rgba, Layout::Rgba),
        Model::Cmyk => (DataColorSpace::Cmyk, Layout::Rgba, Layout::Rgb),
    };
    let describes_a_device =
        !matches!(profile.profile_class, ProfileClass::DeviceLink | ProfileClass::Abstract | ProfileClass::Named);
    if profile.color_space != space || !describes_a_device {
        return None;
    }
    let srgb = ColorProfile::new_srgb();
    // Not every profile has tables for the first.
    let intents = [RenderingIntent::Perceptual, RenderingIntent::RelativeColorimetric];
    intents.into_iter().find_map(|rendering_intent| {
        let options = TransformOptions { rendering_intent, ..TransformOptions::default() };
        profile.create_transform_8bit(from, &srgb, to, options).ok()
    })
}

/// Most profiles are sRGB's under one of its many names and roundings: they change nothing that anybody could see.
fn is_srgb<const CHANNELS: usize>(profile: &Transform8BitExecutor) -> bool {
    const STEPS: [u8; 6] = [0, 51, 102, 153, 204, 255];
    let cube = STEPS.iter().flat_map(|red| STEPS.iter().flat_map(|green| STEPS.map(|blue| [*red, *green, blue, 255])));
    let greys = (0..=u8::MAX).map(|grey| [grey, grey, grey, 255]);
    let probes: Vec<u8> = cube.chain(greys).flat_map(|colour| colour.into_iter().take(CHANNELS)).collect();
    let mut seen = vec![0; probes.len()];
    profile.transform(&probes, &mut seen).is_ok() && probes.iter().zip(&seen).all(|(a, b)| a.abs_diff(*b) <= 1)
}

fn greys(profile: &Transform8BitExecutor) -> Colours {
    let all: [u8; 256] = std::array::from_fn(|grey| grey as u8);
    let mut seen = Box::new([0; 256 * 3]);
    match profile.transform(&all, &mut seen[..]) {
        Ok(()) => Colours::Greys(seen),
        Err(_) => Colours::AsTheyAre,
    }
}

fn as_they_are(model: Model, samples: Vec<u8>) -> Vec<u8> {
    match model {
        Model::Grey => in_colours(&samples, false, |grey| [grey; 3]),
        Model::GreyAlpha => in_colours(&samples, true, |grey| [grey; 3]),
        Model::Rgb | Model::Rgba => samples,
        Model::Cmyk => samples.chunks_exact(4).flat_map(without_profile).collect(),
    }
}

fn in_colours(samples: &[u8], alpha: bool, colour: impl Fn(u8) -> [u8; 3]) -> Vec<u8> {
    if !alpha {
        return samples.iter().flat_map(|grey| colour(*grey)).collect();
    }
    let sheer = |pixel: &[u8]| {
        let [red, green, blue] = colour(pixel[0]);
        [red, green, blue, pixel[1]]
    };
    samples.chunks_exact(2).flat_map(sheer).collect()
}

/// Inks as perfect filters, which none are.
fn without_profile(inks: &[u8]) -> [u8; 3] {
    let [cyan, magenta, yellow, black] = [inks[0], inks[1], inks[2], inks[3]].map(|ink| u32::from(255 - ink));
    [cyan, magenta, yellow].map(|light| ((light * black + 127) / 255) as u8)
}
