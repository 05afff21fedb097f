//! Conversion of a JPEG's planes to interleaved pixels.

use sparks_jpeg::ColourSpace;

/// Interleaves planes of one size to grey, RGB or CMYK pixels.
pub(crate) fn interleave(colour_space: ColourSpace, planes: Vec<Vec<u8>>) -> Vec<u8> {
    match (colour_space, planes.as_slice()) {
        (ColourSpace::YCbCr, [y, cb, cr]) => interleave_planes([y, cb, cr], ycbcr_to_rgb),
        (ColourSpace::Rgb, [red, green, blue]) => interleave_planes([red, green, blue], |pixel| pixel),
        // CMYK is stored inverted, also in files without an Adobe marker: libvips and Pillow read it the same way.
        (ColourSpace::Cmyk, [cyan, magenta, yellow, black]) => {
            interleave_planes([cyan, magenta, yellow, black], |inks| inks.map(|ink| !ink))
        }
        (ColourSpace::Ycck, [y, cb, cr, black]) => interleave_planes([y, cb, cr, black], |[y, cb, cr, black]| {
            let [cyan, magenta, yellow] = ycbcr_to_rgb([y, cb, cr]);
            [cyan, magenta, yellow, !black]
        }),
        _ => planes.into_iter().next().unwrap_or_default(),
    }
}

fn interleave_planes<const CHANNELS: usize>(
    planes: [&[u8]; CHANNELS],
    convert: impl Fn([u8; CHANNELS]) -> [u8; CHANNELS],
) -> Vec<u8> {
    let length = planes[0].len();
    let planes = planes.map(|plane| &plane[..length]);
    let mut samples = vec![0; length * CHANNELS];
    for (at, pixel) in samples.chunks_exact_mut(CHANNELS).enumerate() {
        pixel.copy_from_slice(&convert(planes.map(|plane| plane[at])));
    }
    samples
}

/// JFIF's YCbCr (ITU-T T.871), in 16.16 fixed point, rounded.
fn ycbcr_to_rgb([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let [y, cb, cr] = [i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128];
    let rgb = [
        y + ((91_881 * cr + 32_768) >> 16),
        y - ((22_554 * cb + 46_802 * cr + 32_767) >> 16),
        y + ((116_130 * cb + 32_768) >> 16),
    ];
    rgb.map(|channel| channel.clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ycbcr_becomes_rgb() {
        let planes = vec![vec![100, 76, 29, 255], vec![128, 85, 255, 128], vec![128, 255, 107, 128]];
        let rgb = interleave(ColourSpace::YCbCr, planes);
        assert_eq!(rgb, [100, 100, 100, 254, 0, 0, 0, 0, 254, 255, 255, 255]);
    }

    #[test]
    fn cmyk_is_inverted() {
        let planes = |values: [u8; 4]| values.map(|value| vec![value]).to_vec();
        assert_eq!(interleave(ColourSpace::Cmyk, planes([255, 0, 10, 20])), [0, 255, 245, 235]);
        // YCCK is the inverted CMY as YCbCr.
        assert_eq!(interleave(ColourSpace::Ycck, planes([76, 85, 255, 9])), [254, 0, 0, 246]);
    }
}
