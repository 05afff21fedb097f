//! From a file's own colours to sRGB.
//!
//! As libvips does it for sharp: by the embedded profile, perceptually, with black point compensation. Inks without a
//! profile are taken for those of the profile that libvips falls back to; everything else without one is sRGB already.
//! PNG's gAMA, cHRM and cICP are ignored, there and here.
//!
//! A profile that is broken, unsupported or made for other pixels never costs a photo: it is as good as none.

use std::sync::LazyLock;

use crate::{colour::profile::Profile, raster::Model};

mod profile;
#[cfg(test)]
mod tests;

/// Graeme Gill's "Chemical proof", in the public domain, as libvips has it; its tables towards print are left out.
static PLAIN_INKS: LazyLock<Option<Profile>> =
    LazyLock::new(|| Profile::read(Model::Cmyk, include_bytes!("colour/chemical_proof.icc")));

/// How pixels of one file become sRGB.
pub(crate) struct Colours {
    model: Model,
    meaning: Meaning,
}

enum Meaning {
    Srgb,
    /// Every grey in sRGB.
    Greys(Vec<[u8; 3]>),
    Profile(Profile),
}

impl Colours {
    /// Of pixels that came with this ICC profile, or with none.
    pub(crate) fn of(model: Model, icc: Option<&[u8]>) -> Self {
        let embedded = icc.and_then(|icc| Profile::read(model, icc));
        let meaning = match model {
            Model::Grey | Model::GreyAlpha => icc.and_then(profile::greys).map(Meaning::Greys),
            Model::Rgb | Model::Rgba => embedded.filter(|profile| !is_srgb(model, profile)).map(Meaning::Profile),
            Model::Cmyk => embedded.or_else(|| PLAIN_INKS.clone()).map(Meaning::Profile),
        };
        Self { model, meaning: meaning.unwrap_or(Meaning::Srgb) }
    }

    /// The same pixels in sRGB: RGB, or RGBA where they have alpha.
    pub(crate) fn to_srgb(&self, samples: Vec<u8>) -> Vec<u8> {
        let alpha = self.model.has_alpha();
        match &self.meaning {
            Meaning::Srgb => without_profile(self.model, samples),
            Meaning::Greys(greys) => coloured(&samples, alpha, |grey| greys[usize::from(grey)]),
            Meaning::Profile(profile) => {
                profile.to_srgb(&samples).unwrap_or_else(|| without_profile(self.model, samples))
            }
        }
    }
}

/// Most profiles are sRGB's under one of its many names and roundings: they change nothing that anybody could see.
fn is_srgb(model: Model, profile: &Profile) -> bool {
    const STEPS: [u8; 6] = [0, 51, 102, 153, 204, 255];
    let cube = STEPS.iter().flat_map(|red| STEPS.iter().flat_map(|green| STEPS.map(|blue| [*red, *green, blue, 255])));
    let greys = (0..=u8::MAX).map(|grey| [grey, grey, grey, 255]);
    let probes: Vec<u8> = cube.chain(greys).flat_map(|colour| colour.into_iter().take(model.channels())).collect();
    let seen = profile.to_srgb(&probes);
    seen.is_some_and(|seen| probes.iter().zip(&seen).all(|(a, b)| a.abs_diff(*b) <= 1))
}

fn without_profile(model: Model, samples: Vec<u8>) -> Vec<u8> {
    match model {
        Model::Grey | Model::GreyAlpha => coloured(&samples, model.has_alpha(), |grey| [grey; 3]),
        Model::Rgb | Model::Rgba => samples,
        Model::Cmyk => samples.chunks_exact(4).flat_map(by_perfect_inks).collect(),
    }
}

fn coloured(samples: &[u8], alpha: bool, colour: impl Fn(u8) -> [u8; 3]) -> Vec<u8> {
    if !alpha {
        return samples.iter().flat_map(|grey| colour(*grey)).collect();
    }
    let sheer = |pixel: &[u8]| {
        let [red, green, blue] = colour(pixel[0]);
        [red, green, blue, pixel[1]]
    };
    samples.chunks_exact(2).flat_map(sheer).collect()
}

/// For a profile that gives up on its way: inks that let all other light through, as none do.
fn by_perfect_inks(inks: &[u8]) -> [u8; 3] {
    let [cyan, magenta, yellow, black] = [inks[0], inks[1], inks[2], inks[3]].map(|ink| u32::from(255 - ink));
    [cyan, magenta, yellow].map(|light| ((light * black + 127) / 255) as u8)
}
