//! Charts in other colour spaces, compared with the output of sharp; see `tests/fixtures/colour/README.md`.

use std::{fs, path::PathBuf};

use image::ImageFormat;

use super::*;
use crate::samples;

/// Side of one of the forty-eight patches in pixels, eight in a row.
const PATCH: usize = 8;

fn charts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/colour")
}

fn chart(name: &str) -> Vec<u8> {
    fs::read(charts().join(name)).expect("a chart")
}

/// Returns each chart's name and its colours by sharp.
fn expected() -> Vec<(String, Vec<[u8; 3]>)> {
    let text = fs::read_to_string(charts().join("expected.txt")).expect("the output of sharp");
    let colour = |hex: &str| [0, 2, 4].map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("a colour"));
    text.lines()
        .map(|line| {
            let (name, converter) = line.split_once(' ').expect("a name and colours");
            (name.to_owned(), converter.split(' ').map(colour).collect())
        })
        .collect()
}

/// Returns the centre of every patch.
fn patches(pixels: &Pixels) -> Vec<[u8; 3]> {
    assert_eq!((pixels.width, pixels.height), (64, 48));
    let middle = |n: usize| {
        let (x, y) = (n % 8 * PATCH + PATCH / 2, n / 8 * PATCH + PATCH / 2);
        let at = (y * 64 + x) * 3;
        [pixels.rgb[at], pixels.rgb[at + 1], pixels.rgb[at + 2]]
    };
    (0..48).map(middle).collect()
}

/// The colour difference CIE76 (delta E): about 2.3 is just noticeable.
fn delta_e(a: [u8; 3], b: [u8; 3]) -> f64 {
    let (a, b) = (cie_lab(a), cie_lab(b));
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn cie_lab(colour: [u8; 3]) -> [f64; 3] {
    let [red, green, blue] = colour.map(|value| {
        let value = f64::from(value) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    let curve = |t: f64| if t > 216.0 / 24_389.0 { t.cbrt() } else { (24_389.0 / 27.0 * t + 16.0) / 116.0 };
    let x = curve((0.412_456_4 * red + 0.357_576_1 * green + 0.180_437_5 * blue) / 0.950_47);
    let y = curve(0.212_672_9 * red + 0.715_152_2 * green + 0.072_175 * blue);
    let z = curve((0.019_333_9 * red + 0.119_192 * green + 0.950_304_1 * blue) / 1.088_83);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

#[test]
fn charts_match_the_output_of_sharp() {
    let expected = expected();
    assert_eq!(expected.len(), 15);
    for (name, expected) in expected {
        let rendered = LocalImageProcessor::default().render(&chart(&name)).expect("a photo");
        let differences: Vec<f64> = patches(&rendered.pixels)
            .into_iter()
            .zip(expected)
            .map(|(actual, expected)| delta_e(actual, expected))
            .collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let worst = differences.iter().copied().fold(0.0, f64::max);
        println!("{name:24} mean {mean:.2} worst {worst:.2}");
        assert!(mean < 1.0 && worst < 3.0, "{name}: mean {mean:.2}, worst {worst:.2}");
    }
}

#[test]
fn missing_conversion_would_be_detected() {
    let plain = patches(&LocalImageProcessor::default().render(&chart("srgb.jpg")).expect("a photo").pixels);
    for name in ["display-p3.jpg", "adobe-rgb.jpg", "prophoto.jpg"] {
        let converted = patches(&LocalImageProcessor::default().render(&chart(name)).expect("a photo").pixels);
        let worst = plain.iter().zip(converted).map(|(a, b)| delta_e(*a, b)).fold(0.0, f64::max);
        assert!(worst > 10.0, "{name} has the colours of sRGB");
    }
}

#[test]
fn variants_have_the_same_colours_as_the_pixels() {
    for name in ["display-p3.jpg", "cmyk-profile.jpg", "grey-curve.jpg"] {
        let rendered = LocalImageProcessor::default().render(&chart(name)).expect("a photo");
        let webp = LocalImageProcessor::default().decode(&rendered.large.webp).expect("a variant");
        let pairs = patches(&rendered.pixels).into_iter().zip(patches(&webp));
        let mean = pairs.map(|(a, b)| delta_e(a, b)).sum::<f64>() / 48.0;
        assert!(mean < 3.0, "{name}: {mean:.2}");
    }
}

#[test]
fn an_unsuitable_or_invalid_profile_is_ignored() {
    let plain = chart("srgb.jpg");
    let pixels = |file: &[u8]| LocalImageProcessor::default().render(file).expect("a photo").pixels;
    let cmyk_profile = include_bytes!("../colour/chemical_proof.icc");
    for icc in [&cmyk_profile[..], b"no profile", b"", &[0; 4000], &[255; 4000]] {
        let file = samples::jpeg_with_segment(&plain, 0xe2, &[b"ICC_PROFILE\0\x01\x01", icc].concat());
        assert_eq!(pixels(&file), pixels(&plain));
    }
    // The first half of two, and a chunk out of order.
    for numbers in [b"\x01\x02", b"\x02\x01", b"\x00\x00"] {
        let file =
            samples::jpeg_with_segment(&plain, 0xe2, &[b"ICC_PROFILE\0", &numbers[..], &cmyk_profile[..300]].concat());
        assert_eq!(pixels(&file), pixels(&plain));
    }
}

#[test]
fn a_profile_that_inflates_beyond_the_metadata_limit_is_ignored() {
    let plain = samples::encode(&samples::quadrants(64, 48), ImageFormat::Png);
    let p3 = chart("display-p3.png");
    let p3_profile = &p3[p3.windows(4).position(|name| name == b"iCCP").expect("a profile") - 4..];
    let length = u32::from_be_bytes(*p3_profile.first_chunk().expect("a length")) as usize;
    let coloured = samples::png_with(&plain, b"iCCP", &p3_profile[8..8 + length]);
    let pixels = |file: &[u8], limits| {
        let processor =
            LocalImageProcessor::new(limits, VariantSpec::large(), VariantSpec::medium(), CropSpec::default());
        processor.render(file).expect("a photo").pixels
    };
    let narrow = Limits { max_metadata_bytes: length as u64, ..Limits::default() };
    assert_ne!(pixels(&coloured, Limits::default()), pixels(&plain, Limits::default()));
    assert_eq!(pixels(&coloured, narrow), pixels(&plain, Limits::default()));
}
