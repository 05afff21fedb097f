//! Small images of every supported kind, compared with an independent decoder (zune-jpeg).

use std::{fs, path::PathBuf};

use sparks_jpeg::{ColourSpace, DecodedJpeg, Plane, decode};
use zune_jpeg::{
    JpegDecoder,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

fn images() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    let mut images: Vec<_> = fs::read_dir(folder)
        .expect("the images")
        .map(|entry| entry.expect("an image").path())
        .map(|path| (path.file_stem().expect("a name").to_string_lossy().into(), fs::read(path).expect("an image")))
        .collect();
    images.sort();
    assert_eq!(images.len(), 21);
    images
}

fn image(name: &str) -> Vec<u8> {
    let (_, file) = images().into_iter().find(|(other, _)| other == name).expect("an image of that name");
    file
}

/// Decodes the planes by zune-jpeg, all in the image's full size.
fn decode_by_zune(file: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = JpegDecoder::new(ZCursor::new(file));
    decoder.decode_headers().expect("a header");
    let stored = decoder.input_colorspace().expect("a colour space");
    decoder.set_options(DecoderOptions::default().jpeg_set_out_colorspace(stored));
    let (samples, channels) = (decoder.decode().expect("an image"), stored.num_components());
    assert_ne!(stored, ColorSpace::Unknown);
    (0..channels).map(|channel| samples.iter().skip(channel).step_by(channels).copied().collect()).collect()
}

/// Returns the mean and the largest difference.
fn differences(a: &[u8], b: &[u8]) -> (f64, u8) {
    assert_eq!(a.len(), b.len());
    let all = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    (all.clone().map(f64::from).sum::<f64>() / a.len() as f64, all.max().unwrap_or_default())
}

#[test]
fn planes_match_an_independent_decoder() {
    // zune-jpeg rejects sampling by thirds and misreads components in scans of their own: see below.
    let is_unsupported = |name: &str| matches!(name, "thirds" | "odd" | "420-apart");
    for (name, file) in images().into_iter().filter(|(name, _)| !is_unsupported(name)) {
        let decoded = decode(&file, 8).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (number, (plane, other)) in decoded.planes.iter().zip(decode_by_zune(&file)).enumerate() {
            // zune-jpeg enlarges subsampled planes; those are compared by their means below.
            if plane.scale == [1.0; 2] {
                assert_eq!((plane.width, plane.height), (101, 75), "{name}");
                let (mean, max) = differences(&plane.samples, &other);
                assert!(mean < 0.3 && max <= 2, "{name}, plane {number}: differs by {mean}, at most {max}");
            }
            let mean = |samples: &[u8]| samples.iter().copied().map(f64::from).sum::<f64>() / samples.len() as f64;
            let (own, zune) = (mean(&plane.samples), mean(&other));
            assert!((own - zune).abs() < 0.6, "{name}, plane {number}: mean {own}, expected {zune}");
        }
    }
}

/// Downscales by averaging the area that each sample of the smaller plane covers.
fn downscale(plane: &Plane, smaller: &Plane) -> Vec<u8> {
    let covered = |at: usize, scale: f64, max: usize| {
        let from = at as f64 / scale;
        (from, (from + 1.0 / scale).min(max as f64))
    };
    let [scale_x, scale_y] = [0, 1].map(|n| smaller.scale[n] / plane.scale[n]);
    let weights = |(from, to): (f64, f64)| {
        (from as usize..to.ceil() as usize).map(move |n| (n, (to.min(n as f64 + 1.0) - from.max(n as f64))))
    };
    let mut samples = Vec::new();
    for y in 0..smaller.height {
        for x in 0..smaller.width {
            let (mut sum, mut weight) = (0.0, 0.0);
            for (row, high) in weights(covered(y, scale_y, plane.height)) {
                for (column, wide) in weights(covered(x, scale_x, plane.width)) {
                    sum += f64::from(plane.samples[row * plane.width + column]) * high * wide;
                    weight += high * wide;
                }
            }
            samples.push((sum / weight).round() as u8);
        }
    }
    samples
}

#[test]
fn scaled_images_match_the_downscaled_full_image() {
    for (name, file) in images().into_iter().filter(|(name, _)| !matches!(name.as_str(), "coarse" | "wide-tables")) {
        let full = decode(&file, 8).expect("an image");
        for scale_num in 1..8 {
            let smaller = decode(&file, scale_num).expect("a smaller image");
            assert_eq!(smaller.colour_space, full.colour_space);
            for (small, plane) in smaller.planes.iter().zip(&full.planes) {
                let size = |length: usize| (length * scale_num as usize).div_ceil(8);
                // libjpeg-turbo may omit a last sample that is only partly within the image.
                let is_size = |own: usize, of: usize| own == size(of) || cfg!(feature = "turbo") && own + 1 == size(of);
                assert!(is_size(small.width, plane.width) && is_size(small.height, plane.height), "{name}");
                let (mean, _) = differences(&small.samples, &downscale(plane, small));
                assert!(mean < 5.0, "{name} at {scale_num}/8 differs by {mean}");
            }
        }
    }
}

#[test]
fn progressive_and_sequential_files_give_the_same_image() {
    let pairs = [
        ["420-progressive", "420"],
        ["420-apart", "420"],
        ["420-progressive-restarts", "420-restarts"],
        ["422-progressive", "422"],
        ["440-progressive", "440"],
        ["444-progressive", "444"],
        ["grey-progressive", "grey"],
    ];
    for names in pairs {
        for scale_num in 1..=8 {
            let [progressive, sequential] = names.map(|name| decode(&image(name), scale_num).expect("an image"));
            for (a, b) in progressive.planes.iter().zip(&sequential.planes) {
                // libjpeg-turbo may have omitted a last column or row, see above.
                if cfg!(feature = "turbo") && (a.width, a.height) != (b.width, b.height) {
                    continue;
                }
                // Rounding may differ by one.
                let max = if cfg!(feature = "turbo") { 2 } else { 1 };
                assert!(differences(&a.samples, &b.samples).1 <= max, "{names:?} at {scale_num}/8");
            }
        }
    }
}

#[test]
fn luminance_does_not_depend_on_chroma_subsampling() {
    let expected = &decode(&image("444"), 8).expect("an image").planes[0];
    for name in ["411", "420", "420-apart", "422", "440", "odd", "thirds"] {
        let luminance = &decode(&image(name), 8).expect("an image").planes[0];
        assert!(differences(&luminance.samples, &expected.samples).1 <= 1, "{name}");
    }
}

#[test]
fn colour_spaces_are_recognised() {
    let colour_space = |name: &str| decode(&image(name), 1).map(|DecodedJpeg { colour_space, .. }| colour_space);
    assert_eq!(colour_space("grey"), Ok(ColourSpace::Grey));
    assert_eq!(colour_space("420"), Ok(ColourSpace::YCbCr));
    assert_eq!(colour_space("rgb"), Ok(ColourSpace::Rgb));
    assert_eq!(colour_space("cmyk"), Ok(ColourSpace::Cmyk));
}

/// Returns the offset of the first scan.
fn scan(file: &[u8]) -> usize {
    file.windows(2).position(|pair| pair == [0xff, 0xda]).expect("a scan")
}

#[test]
fn any_number_of_fill_bytes_may_precede_a_restart_marker() {
    for name in ["420-restarts", "420-progressive-restarts"] {
        let file = image(name);
        let (head, pixels) = file.split_at(scan(&file));
        let is_restart = |at: usize| pixels[at] == 0xff && pixels.get(at + 1).is_some_and(|next| next & 0xf8 == 0xd0);
        let filled: Vec<u8> = (0..pixels.len())
            .flat_map(|at| std::iter::repeat_n(pixels[at], if is_restart(at) { 1 + at % 4 } else { 1 }))
            .collect();
        assert!(filled.len() > pixels.len());
        assert_eq!(decode(&[head, &filled].concat(), 4), decode(&file, 4), "{name}");
    }
}

#[test]
fn components_with_the_same_id_are_taken_in_order() {
    for name in ["420", "444", "cmyk", "420-restarts"] {
        let (file, mut same) = (image(name), image(name));
        let frame = file.windows(2).position(|pair| pair[0] == 0xff && pair[1] == 0xc0).expect("a frame");
        let count = usize::from(file[frame + 9]);
        for component in 0..count {
            same[frame + 10 + component * 3] = 1;
            same[scan(&file) + 5 + component * 2] = 1;
        }
        assert_eq!(decode(&same, 4), decode(&file, 4), "{name}");
    }
}

#[test]
fn half_an_image_is_rejected() {
    for (name, file) in images() {
        let middle = (scan(&file) + file.len()) / 2;
        // A cut within a stuffed byte would leave a marker.
        let cut = [&file[..middle], &[0, 0xff, 0xd9]].concat();
        let error = decode(&cut, 4).expect_err(&name).to_string();
        assert!(error.contains("of its pixels cannot be read") || error.contains("lacks"), "{name}: {error}");
    }
}

#[test]
fn mutated_files_never_panic() {
    let mut random = fastrand::Rng::with_seed(7);
    for (_, file) in images() {
        for _ in 0..150 {
            let mut changed = file.clone();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(2..changed.len());
                changed[at] = random.u8(..);
            }
            let frame = sparks_jpeg::read_frame_header(&changed);
            if frame.is_ok_and(|frame| frame.width * frame.height < 1_000_000) {
                let _ = decode(&changed, random.u32(1..=8));
            }
        }
    }
}
