//! From a JPEG's planes to pixels.

use sparks_jpeg::Colours;

/// Pixels with the channels that the planes' colours stand for: grey, RGB or inks.
pub(crate) fn interleave(colours: Colours, planes: Vec<Vec<u8>>) -> Vec<u8> {
    match (colours, planes.as_slice()) {
        (Colours::YCbCr, [light, blue, red]) => woven([light, blue, red], rgb),
        (Colours::Rgb, [red, green, blue]) => woven([red, green, blue], |pixel| pixel),
        // Inks are stored as what they leave of the paper. Files that do not say that they are Adobe's are no exception:
        // so do libvips and Pillow.
        (Colours::Cmyk, [cyan, magenta, yellow, black]) => {
            woven([cyan, magenta, yellow, black], |inks| inks.map(|ink| !ink))
        }
        (Colours::Ycck, [light, blue, red, black]) => woven([light, blue, red, black], |[light, blue, red, black]| {
            let [cyan, magenta, yellow] = rgb([light, blue, red]);
            [cyan, magenta, yellow, !black]
        }),
        _ => planes.into_iter().next().unwrap_or_default(),
    }
}

fn woven<const CHANNELS: usize>(
    planes: [&[u8]; CHANNELS],
    pixel: impl Fn([u8; CHANNELS]) -> [u8; CHANNELS],
) -> Vec<u8> {
    let length = planes[0].len();
    let planes = planes.map(|plane| &plane[..length]);
    let mut samples = vec![0; length * CHANNELS];
    for (at, woven) in samples.chunks_exact_mut(CHANNELS).enumerate() {
        woven.copy_from_slice(&pixel(planes.map(|plane| plane[at])));
    }
    samples
}

/// JPEG's YCbCr, with sixteen bits of fraction, rounded.
fn rgb([light, blue, red]: [u8; 3]) -> [u8; 3] {
    let [light, blue, red] = [i32::from(light), i32::from(blue) - 128, i32::from(red) - 128];
    let colours = [
        light + ((91_881 * red + 32_768) >> 16),
        light - ((22_554 * blue + 46_802 * red + 32_767) >> 16),
        light + ((116_130 * blue + 32_768) >> 16),
    ];
    colours.map(|colour| colour.clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_blue_and_red_become_colours() {
        let planes = vec![vec![100, 76, 29, 255], vec![128, 85, 255, 128], vec![128, 255, 107, 128]];
        let rgb = interleave(Colours::YCbCr, planes);
        assert_eq!(rgb, [100, 100, 100, 254, 0, 0, 0, 0, 254, 255, 255, 255]);
    }

    #[test]
    fn inks_are_what_is_not_left_of_the_paper() {
        let planes = |values: [u8; 4]| values.map(|value| vec![value]).to_vec();
        assert_eq!(interleave(Colours::Cmyk, planes([255, 0, 10, 20])), [0, 255, 245, 235]);
        // The complements of the first three are stored as colours of a screen are.
        assert_eq!(interleave(Colours::Ycck, planes([76, 85, 255, 9])), [254, 0, 0, 246]);
    }
}
