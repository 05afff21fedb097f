use std::{fs, path::PathBuf};

use fastrand::Rng;
use moxcms::ColorProfile;

use super::*;

const INKS: &[u8] = include_bytes!("chemical_proof.icc");

impl SrgbConverter {
    fn is_srgb(&self) -> bool {
        matches!(self.conversion, Conversion::Srgb)
    }
}

fn encoded(profile: ColorProfile) -> Vec<u8> {
    profile.encode().expect("a profile")
}

/// Reads the profile of a colour chart, between two markers of a JPEG.
fn from_chart(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/colour").join(name);
    let chart = fs::read(path).expect("a chart");
    let name = b"ICC_PROFILE\0\x01\x01";
    let at = chart.windows(name.len()).position(|bytes| bytes == name).expect("a profile");
    let length = usize::from(u16::from_be_bytes([chart[at - 2], chart[at - 1]])) - 2 - name.len();
    chart[at + name.len()..][..length].to_vec()
}

#[test]
fn without_a_profile_everything_but_cmyk_is_srgb() {
    assert_eq!(SrgbConverter::new(ColourModel::Grey, None).to_srgb(vec![7, 9]), [7, 7, 7, 9, 9, 9]);
    assert_eq!(SrgbConverter::new(ColourModel::GreyAlpha, None).to_srgb(vec![7, 100]), [7, 7, 7, 100]);
    assert_eq!(SrgbConverter::new(ColourModel::Rgb, None).to_srgb(vec![1, 2, 3]), [1, 2, 3]);
    assert_eq!(SrgbConverter::new(ColourModel::Rgba, None).to_srgb(vec![1, 2, 3, 4]), [1, 2, 3, 4]);
    let paper_and_black = SrgbConverter::new(ColourModel::Cmyk, None).to_srgb(vec![0, 0, 0, 0, 255, 255, 255, 255]);
    assert!(paper_and_black[..3].iter().all(|value| *value > 250), "{paper_and_black:?}");
    assert!(paper_and_black[3..].iter().all(|value| *value < 10), "{paper_and_black:?}");
}

#[test]
fn srgb_variants_are_recognised() {
    let srgb = encoded(ColorProfile::new_srgb());
    assert!(SrgbConverter::new(ColourModel::Rgb, Some(&srgb)).is_srgb());
    assert!(SrgbConverter::new(ColourModel::Rgba, Some(&srgb)).is_srgb());
    for other in [ColorProfile::new_display_p3(), ColorProfile::new_adobe_rgb(), ColorProfile::new_bt2020()] {
        assert!(!SrgbConverter::new(ColourModel::Rgb, Some(&encoded(other))).is_srgb());
    }
}

#[test]
fn alpha_is_unchanged() {
    let p3 = encoded(ColorProfile::new_display_p3());
    let opaque = SrgbConverter::new(ColourModel::Rgb, Some(&p3)).to_srgb(vec![200, 100, 50]);
    assert_eq!(
        SrgbConverter::new(ColourModel::Rgba, Some(&p3)).to_srgb(vec![200, 100, 50, 77]),
        [&opaque[..], &[77]].concat()
    );
    let gamma = encoded(ColorProfile::new_gray_with_gamma(1.0));
    let grey = SrgbConverter::new(ColourModel::Grey, Some(&gamma)).to_srgb(vec![55]);
    assert_eq!(grey, [128; 3]);
    assert_eq!(
        SrgbConverter::new(ColourModel::GreyAlpha, Some(&gamma)).to_srgb(vec![55, 77]),
        [&grey[..], &[77]].concat()
    );
}

#[test]
fn a_profile_for_another_colour_model_is_ignored() {
    let p3 = encoded(ColorProfile::new_display_p3());
    let gamma = encoded(ColorProfile::new_gray_with_gamma(1.0));
    for (model, misfits) in [
        (ColourModel::Rgb, [INKS, &gamma]),
        (ColourModel::Rgba, [INKS, &gamma]),
        (ColourModel::Grey, [INKS, &p3]),
        (ColourModel::GreyAlpha, [INKS, &p3]),
    ] {
        assert!(misfits.iter().all(|icc| SrgbConverter::new(model, Some(icc)).is_srgb()), "{model:?}");
    }
    let inks = vec![10, 60, 110, 20];
    assert_eq!(
        SrgbConverter::new(ColourModel::Cmyk, Some(&p3)).to_srgb(inks.clone()),
        SrgbConverter::new(ColourModel::Cmyk, None).to_srgb(inks)
    );
}

#[test]
fn a_large_table_under_many_tags_is_not_read() {
    let entry = &INKS[132 + 4 * 12..132 + 5 * 12];
    assert_eq!(&entry[..4], b"A2B0");
    let tags = 50_000_u32;
    let mut hostile = [&INKS[..128], &tags.to_be_bytes(), &entry.repeat(tags as usize)].concat();
    let at = hostile.len() as u32;
    hostile.extend(&INKS[192..]);
    hostile[132..].chunks_exact_mut(12).take(tags as usize).for_each(|entry| {
        let offset = u32::from_be_bytes([entry[4], entry[5], entry[6], entry[7]]);
        entry[4..8].copy_from_slice(&(at + offset - 192).to_be_bytes());
    });
    let pixels = vec![10, 60, 110, 20];
    let seen = SrgbConverter::new(ColourModel::Cmyk, Some(&hostile)).to_srgb(pixels.clone());
    assert_eq!(seen, SrgbConverter::new(ColourModel::Cmyk, None).to_srgb(pixels));
}

/// Changes bytes, sets lengths that are too large, and truncates.
fn mutated(random: &mut Rng, icc: &[u8]) -> Vec<u8> {
    let mut icc = icc.to_vec();
    for _ in 0..random.usize(1..6) {
        // Lengths are stored at the beginning of profiles and of their tables.
        let end = if random.bool() { icc.len() } else { icc.len().min(600) };
        let at = random.usize(0..end - 4);
        match random.u8(0..6) {
            0 => icc[at] = random.u8(..),
            1 => icc[at] ^= 1 << random.u8(0..8),
            2 => icc[at..at + 4].copy_from_slice(&[0xff; 4]),
            3 => icc[at..at + 4].copy_from_slice(&[0; 4]),
            4 => icc[at..at + 4].copy_from_slice(&random.u32(0..200_000).to_be_bytes()),
            _ if icc.len() > 400 => icc.truncate(random.usize(200..icc.len())),
            _ => {}
        }
    }
    icc
}

#[test]
fn mutated_profiles_never_panic() {
    let profiles = [
        (ColourModel::Rgb, encoded(ColorProfile::new_display_p3()), 4_000),
        (ColourModel::Rgba, from_chart("prophoto.jpg"), 4_000),
        (ColourModel::Rgb, from_chart("adobe-rgb.jpg"), 4_000),
        (ColourModel::Grey, from_chart("grey-curve.jpg"), 4_000),
        (ColourModel::Cmyk, from_chart("cmyk-profile.jpg"), 1_000),
    ];
    let mut random = Rng::with_seed(2014);
    let mut usable = 0;
    for (model, icc, times) in profiles {
        let pixels: Vec<u8> = (0..model.channels() * 64).map(|_| random.u8(..)).collect();
        let bytes = SrgbConverter::new(model, None).to_srgb(pixels.clone()).len();
        for _ in 0..times {
            let converter = SrgbConverter::new(model, Some(&mutated(&mut random, &icc)));
            assert_eq!(converter.to_srgb(pixels.clone()).len(), bytes);
            usable += usize::from(!converter.is_srgb());
        }
    }
    assert!(usable > 2_000, "too few mutations reached a transform: {usable}");
}

#[test]
fn tables_of_any_size_and_kind_never_panic() {
    const ENTRY: usize = 132 + 4 * 12;
    let mut random = Rng::with_seed(7);
    // Padding, so that larger tables stay within the file.
    let mut icc = INKS.to_vec();
    icc.resize_with(1_000_000, || random.u8(..));
    let [a, b, c, d] = [4, 5, 6, 7].map(|at| icc[ENTRY + at]);
    let table = u32::from_be_bytes([a, b, c, d]) as usize;
    let length = (icc.len() - table) as u32;
    icc[ENTRY + 8..ENTRY + 12].copy_from_slice(&length.to_be_bytes());
    for _ in 0..300 {
        let mut icc = icc.clone();
        let [channels_in, channels_out, grid] = [table + 8, table + 9, table + 10];
        match random.u8(0..4) {
            0 => icc[grid] = random.u8(..),
            1 => [channels_in, channels_out, grid].into_iter().for_each(|at| icc[at] = random.u8(0..20)),
            2 => icc[table + 48..table + 52].fill_with(|| random.u8(..)),
            _ => {
                icc[table..table + 4].copy_from_slice(if random.bool() { b"mAB " } else { b"mft1" });
                (0..4).for_each(|_| icc[table + random.usize(8..48)] = random.u8(..));
            }
        }
        assert_eq!(SrgbConverter::new(ColourModel::Cmyk, Some(&icc)).to_srgb(vec![3; 400]).len(), 300);
    }
}
