//! Conversion of a file's colours to sRGB.
//!
//! Follows libvips, which sharp uses: the embedded ICC profile with perceptual intent and black point compensation. CMYK without
//! a profile uses the fallback profile of libvips; everything else without one counts as sRGB. PNG's gAMA, cHRM and cICP are
//! ignored, as libvips does.
//!
//! A profile that is broken, unsupported or made for another colour model is ignored; it never rejects a photo.

use std::sync::LazyLock;

use crate::{colour::profile::Profile, raster::ColourModel};

mod profile;
#[cfg(test)]
mod tests;

/// Graeme Gill's "Chemical proof" (public domain), the fallback of libvips, without its tables towards print.
static DEFAULT_CMYK_PROFILE: LazyLock<Option<Profile>> =
    LazyLock::new(|| Profile::read(ColourModel::Cmyk, include_bytes!("colour/chemical_proof.icc")));

/// Converts the pixels of one file to sRGB.
pub(crate) struct SrgbConverter {
    model: ColourModel,
    conversion: Conversion,
}

enum Conversion {
    Srgb,
    /// The sRGB colour of each grey level.
    GreyTable(Vec<[u8; 3]>),
    Profile(Profile),
}

impl SrgbConverter {
    /// Creates a converter for pixels with this embedded ICC profile, or with none.
    pub(crate) fn new(model: ColourModel, icc: Option<&[u8]>) -> Self {
        let embedded = icc.and_then(|icc| Profile::read(model, icc));
        let conversion = match model {
            ColourModel::Grey | ColourModel::GreyAlpha => icc.and_then(profile::grey_table).map(Conversion::GreyTable),
            ColourModel::Rgb | ColourModel::Rgba => {
                embedded.filter(|profile| !is_srgb(model, profile)).map(Conversion::Profile)
            }
            ColourModel::Cmyk => embedded.or_else(|| DEFAULT_CMYK_PROFILE.clone()).map(Conversion::Profile),
        };
        Self { model, conversion: conversion.unwrap_or(Conversion::Srgb) }
    }

    /// Converts pixels to RGB, or to RGBA where they have alpha.
    pub(crate) fn to_srgb(&self, samples: Vec<u8>) -> Vec<u8> {
        let has_alpha = self.model.has_alpha();
        match &self.conversion {
            Conversion::Srgb => without_profile(self.model, samples),
            Conversion::GreyTable(table) => map_greys(&samples, has_alpha, |grey| table[usize::from(grey)]),
            Conversion::Profile(profile) => {
                profile.to_srgb(&samples).unwrap_or_else(|| without_profile(self.model, samples))
            }
        }
    }
}

/// Returns whether the profile is a variant of sRGB: most are, and skipping them changes no channel by more than one.
fn is_srgb(model: ColourModel, profile: &Profile) -> bool {
    const STEPS: [u8; 6] = [0, 51, 102, 153, 204, 255];
    let cube = STEPS.iter().flat_map(|red| STEPS.iter().flat_map(|green| STEPS.map(|blue| [*red, *green, blue, 255])));
    let greys = (0..=u8::MAX).map(|grey| [grey, grey, grey, 255]);
    let probes: Vec<u8> = cube.chain(greys).flat_map(|colour| colour.into_iter().take(model.channels())).collect();
    let converted = profile.to_srgb(&probes);
    converted.is_some_and(|converted| probes.iter().zip(&converted).all(|(a, b)| a.abs_diff(*b) <= 1))
}

fn without_profile(model: ColourModel, samples: Vec<u8>) -> Vec<u8> {
    match model {
        ColourModel::Grey | ColourModel::GreyAlpha => map_greys(&samples, model.has_alpha(), |grey| [grey; 3]),
        ColourModel::Rgb | ColourModel::Rgba => samples,
        ColourModel::Cmyk => samples.chunks_exact(4).flat_map(cmyk_to_rgb).collect(),
    }
}

fn map_greys(samples: &[u8], has_alpha: bool, colour: impl Fn(u8) -> [u8; 3]) -> Vec<u8> {
    if !has_alpha {
        return samples.iter().flat_map(|grey| colour(*grey)).collect();
    }
    let with_alpha = |pixel: &[u8]| {
        let [red, green, blue] = colour(pixel[0]);
        [red, green, blue, pixel[1]]
    };
    samples.chunks_exact(2).flat_map(with_alpha).collect()
}

/// Converts CMYK with ideal inks, for a profile whose transform fails.
fn cmyk_to_rgb(inks: &[u8]) -> [u8; 3] {
    let [cyan, magenta, yellow, black] = [inks[0], inks[1], inks[2], inks[3]].map(|ink| u32::from(255 - ink));
    [cyan, magenta, yellow].map(|light| ((light * black + 127) / 255) as u8)
}
