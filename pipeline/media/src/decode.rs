//! From a file to pixels.

use std::{error::Error as _, io::Cursor};

use image::{
    ColorType, ImageDecoder, ImageError,
    codecs::{gif::GifDecoder, jpeg::JpegDecoder, png::PngDecoder, webp::WebPDecoder},
};
use sparks_domain::{RejectCode, Rejection};

use crate::{Limits, format::Format, raster::Raster, reject};

/// The first frame of a file whose header has been checked.
pub(crate) fn decode(format: Format, file: &[u8], limits: &Limits) -> Result<Raster, Rejection> {
    let file = Cursor::new(file);
    let refused = |error| in_words(format, &error);
    match format {
        Format::Jpeg => pixels(format, JpegDecoder::new(file).map_err(refused)?, limits),
        // This decoder unpacks ICC profiles and keeps texts: neither needs more than a file may have.
        Format::Png => {
            pixels(format, PngDecoder::with_limits(file, limits.of_decoder(limits.max_bytes)).map_err(refused)?, limits)
        }
        Format::WebP => pixels(format, WebPDecoder::new(file).map_err(refused)?, limits),
        Format::Gif => pixels(format, GifDecoder::new(file).map_err(refused)?, limits),
    }
}

fn pixels(format: Format, mut decoder: impl ImageDecoder, limits: &Limits) -> Result<Raster, Rejection> {
    let refused = |error| in_words(format, &error);
    // The decoder may have read another size than we did; what it allocates goes by its own.
    let (width, height) = decoder.dimensions();
    limits.check_size(width, height)?;
    decoder.set_limits(limits.of_decoder(limits.max_pixels.saturating_mul(4))).map_err(refused)?;

    let colours = decoder.color_type();
    let mut samples = vec![0; usize::try_from(decoder.total_bytes()).unwrap_or(usize::MAX)];
    decoder.read_image(&mut samples).map_err(refused)?;

    if matches!(colours, ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16) {
        to_eight_bits(&mut samples);
    }
    if !colours.has_color() {
        samples = with_colours(&samples, colours.has_alpha());
    }
    Ok(Raster { width, height, alpha: colours.has_alpha(), samples }.without_idle_alpha())
}

/// In place: sixteen bits of the largest photo are too much to have one and a half times.
fn to_eight_bits(samples: &mut Vec<u8>) {
    let count = samples.len() / 2;
    for at in 0..count {
        let wide = u16::from_ne_bytes([samples[at * 2], samples[at * 2 + 1]]);
        samples[at] = ((u32::from(wide) + 128) / 257) as u8;
    }
    samples.truncate(count);
    samples.shrink_to_fit();
}

fn with_colours(grey: &[u8], alpha: bool) -> Vec<u8> {
    let mut samples = Vec::with_capacity(grey.len() * if alpha { 2 } else { 3 });
    if alpha {
        grey.chunks_exact(2).for_each(|pixel| samples.extend([pixel[0], pixel[0], pixel[0], pixel[1]]));
    } else {
        grey.iter().for_each(|grey| samples.extend([*grey; 3]));
    }
    samples
}

fn in_words(format: Format, error: &ImageError) -> Rejection {
    let name = format.name();
    match error {
        ImageError::Limits(_) => reject(
            RejectCode::TooManyPixels,
            format!("the {name} needs more memory than a photo may have: save it anew"),
        ),
        ImageError::Unsupported(feature) => {
            let message = format!("this kind of {name} is not supported ({feature}): save it anew");
            reject(RejectCode::UnsupportedFormat, message)
        }
        ImageError::IoError(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => cut_short(name),
        // The outer text says no more than which format it was.
        ImageError::Decoding(decoding) => damaged(name, decoding.source().map_or(decoding.to_string(), <_>::to_string)),
        other => damaged(name, other.to_string()),
    }
}

fn cut_short(name: &str) -> Rejection {
    reject(RejectCode::Damaged, format!("the {name} ends before its pixels do: the file is cut short"))
}

fn damaged(name: &str, reason: String) -> Rejection {
    // A PNG's decoder goes on with its own data structures, a JPEG's puts everything into quotes.
    let reason = reason.split(" while decoding").next().unwrap_or(&reason).trim_matches(['"', '.']);
    reject(RejectCode::Damaged, format!("the {name} is damaged: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bits_round_to_eight() {
        let wide = [0_u16, 128, 129, 257, 32_768, 65_535];
        let mut samples = wide.iter().flat_map(|sample| sample.to_ne_bytes()).collect();
        to_eight_bits(&mut samples);
        assert_eq!(samples, [0, 0, 1, 1, 128, 255]);
    }

    #[test]
    fn grey_becomes_colour() {
        assert_eq!(with_colours(&[7, 9], false), [7, 7, 7, 9, 9, 9]);
        assert_eq!(with_colours(&[7, 100], true), [7, 7, 7, 100]);
    }
}
