//! JPEG: grey, YCbCr, RGB, CMYK and YCCK, each decoded to the model it shows.

use sparks_domain::Rejection;
use zune_jpeg::{
    JpegDecoder,
    errors::DecodeErrors,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

use super::{Decoded, damaged, too_much_memory, unsupported};
use crate::{
    Limits,
    format::Format,
    raster::{Model, Raster},
};

pub(super) fn decode(file: &[u8], limits: &Limits) -> Result<Decoded, Rejection> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        // Ours are checked below, and say more.
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(in_words)?;
    // The decoder may have read another size than we did; what it allocates goes by its own.
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let (width, height) = (width as u32, height as u32);
    limits.check_size(width, height)?;

    let stored = decoder.input_colorspace().unwrap_or(ColorSpace::Unknown);
    let (wanted, model) = match stored {
        ColorSpace::Luma => (ColorSpace::Luma, Model::Grey),
        // As they are stored: its way from inks to RGB knows no profile.
        ColorSpace::CMYK | ColorSpace::YCCK => (stored, Model::Cmyk),
        ColorSpace::MultiBand(bands) => {
            return Err(unsupported(Format::Jpeg, format!("{bands} components")));
        }
        _ => (ColorSpace::RGB, Model::Rgb),
    };
    decoder.set_options(options.jpeg_set_out_colorspace(wanted));
    let mut samples = vec![0; width as usize * height as usize * model.channels()];
    decoder.decode_into(&mut samples).map_err(in_words)?;

    if stored == ColorSpace::YCCK {
        without_luma(&mut samples);
    }
    // Inks are stored as what they leave of the paper. Files that do not say that they are Adobe's are no exception:
    // so do libvips and Pillow.
    if model == Model::Cmyk {
        samples.iter_mut().for_each(|sample| *sample = !*sample);
    }
    Ok(Decoded { raster: Raster { width, height, model, samples }, profile: decoder.icc_profile() })
}

/// From YCCK to CMYK, in place: JPEG's YCbCr of the first three inks' complements.
fn without_luma(samples: &mut [u8]) {
    for pixel in samples.chunks_exact_mut(4) {
        let [y, blue, red] = [i32::from(pixel[0]), i32::from(pixel[1]) - 128, i32::from(pixel[2]) - 128];
        // Sixteen bits of fraction, rounded.
        let cyan = y + ((91_881 * red + 32_768) >> 16);
        let magenta = y - ((22_554 * blue + 46_802 * red + 32_767) >> 16);
        let yellow = y + ((116_130 * blue + 32_768) >> 16);
        for (sample, complement) in pixel.iter_mut().zip([cyan, magenta, yellow]) {
            *sample = 255 - complement.clamp(0, 255) as u8;
        }
    }
}

fn in_words(error: DecodeErrors) -> Rejection {
    match error {
        DecodeErrors::Unsupported(scheme) => unsupported(Format::Jpeg, format!("{scheme:?}")),
        DecodeErrors::LargeDimensions(_) => too_much_memory(Format::Jpeg),
        other => damaged(Format::Jpeg, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inks_come_back_from_luma() {
        let mut grey_red_blue = [100, 128, 128, 7, 76, 85, 255, 9, 29, 255, 107, 0];
        without_luma(&mut grey_red_blue);
        assert_eq!(grey_red_blue, [155, 155, 155, 7, 1, 255, 255, 9, 255, 255, 1, 0]);
    }
}
