//! Small pictures of every kind there is, beside an independent decoder.

use std::{fs, path::PathBuf};

use sparks_jpeg::{Colours, Picture, Plane, decode};
use zune_jpeg::{
    JpegDecoder,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

fn pictures() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pictures");
    let mut pictures: Vec<_> = fs::read_dir(folder)
        .expect("the pictures")
        .map(|entry| entry.expect("a picture").path())
        .map(|path| (path.file_stem().expect("a name").to_string_lossy().into(), fs::read(path).expect("a picture")))
        .collect();
    pictures.sort();
    assert_eq!(pictures.len(), 21);
    pictures
}

fn picture(name: &str) -> Vec<u8> {
    let (_, file) = pictures().into_iter().find(|(other, _)| other == name).expect("a picture of that name");
    file
}

/// The planes as the other decoder has them, all in the picture's size.
fn by_another(file: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = JpegDecoder::new(ZCursor::new(file));
    decoder.decode_headers().expect("a header");
    let stored = decoder.input_colorspace().expect("colours");
    decoder.set_options(DecoderOptions::default().jpeg_set_out_colorspace(stored));
    let (samples, channels) = (decoder.decode().expect("a picture"), stored.num_components());
    assert_ne!(stored, ColorSpace::Unknown);
    (0..channels).map(|channel| samples.iter().skip(channel).step_by(channels).copied().collect()).collect()
}

/// The mean and the largest difference.
fn differences(a: &[u8], b: &[u8]) -> (f64, u8) {
    assert_eq!(a.len(), b.len());
    let all = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    (all.clone().map(f64::from).sum::<f64>() / a.len() as f64, all.max().unwrap_or_default())
}

#[test]
fn planes_are_those_of_another_decoder() {
    // The other one refuses thirds, and goes wrong where colours come in scans of their own: see below.
    let beyond_it = |name: &str| matches!(name, "thirds" | "odd" | "420-apart");
    for (name, file) in pictures().into_iter().filter(|(name, _)| !beyond_it(name)) {
        let picture = decode(&file, 8).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (number, (plane, other)) in picture.planes.iter().zip(by_another(&file)).enumerate() {
            // Planes with fewer samples are enlarged there; they are looked at by their means below.
            if plane.scale == [1.0; 2] {
                assert_eq!((plane.width, plane.height), (101, 75), "{name}");
                let (mean, most) = differences(&plane.samples, &other);
                assert!(mean < 0.3 && most <= 2, "{name}, plane {number}: differs by {mean}, at most {most}");
            }
            let mean = |samples: &[u8]| samples.iter().copied().map(f64::from).sum::<f64>() / samples.len() as f64;
            let (ours, theirs) = (mean(&plane.samples), mean(&other));
            assert!((ours - theirs).abs() < 0.6, "{name}, plane {number}: {ours} and {theirs} on average");
        }
    }
}

/// The mean of what each sample of the smaller plane covers.
fn shrunk(plane: &Plane, smaller: &Plane) -> Vec<u8> {
    let covered = |at: usize, scale: f64, most: usize| {
        let from = at as f64 / scale;
        (from, (from + 1.0 / scale).min(most as f64))
    };
    let [across, down] = [0, 1].map(|n| smaller.scale[n] / plane.scale[n]);
    let weights = |(from, to): (f64, f64)| {
        (from as usize..to.ceil() as usize).map(move |n| (n, (to.min(n as f64 + 1.0) - from.max(n as f64))))
    };
    let mut samples = Vec::new();
    for y in 0..smaller.height {
        for x in 0..smaller.width {
            let (mut sum, mut weight) = (0.0, 0.0);
            for (row, high) in weights(covered(y, down, plane.height)) {
                for (column, wide) in weights(covered(x, across, plane.width)) {
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
fn smaller_pictures_show_the_same() {
    for (name, file) in pictures().into_iter().filter(|(name, _)| !matches!(name.as_str(), "coarse" | "wide-tables")) {
        let whole = decode(&file, 8).expect("a picture");
        for eighths in 1..8 {
            let smaller = decode(&file, eighths).expect("a smaller picture");
            assert_eq!(smaller.colours, whole.colours);
            for (small, plane) in smaller.planes.iter().zip(&whole.planes) {
                let size = |length: usize| (length * eighths as usize).div_ceil(8);
                // libjpeg-turbo may leave out a last sample of which only a part is in the picture.
                let is_size = |own: usize, of: usize| own == size(of) || cfg!(feature = "turbo") && own + 1 == size(of);
                assert!(is_size(small.width, plane.width) && is_size(small.height, plane.height), "{name}");
                let (mean, _) = differences(&small.samples, &shrunk(plane, small));
                assert!(mean < 5.0, "{name} in {eighths} eighths differs by {mean}");
            }
        }
    }
}

#[test]
fn passes_come_to_what_one_tells() {
    let same = [
        ["420-progressive", "420"],
        ["420-apart", "420"],
        ["420-progressive-restarts", "420-restarts"],
        ["422-progressive", "422"],
        ["440-progressive", "440"],
        ["444-progressive", "444"],
        ["grey-progressive", "grey"],
    ];
    for names in same {
        for eighths in 1..=8 {
            let [passes, one] = names.map(|name| decode(&picture(name), eighths).expect("a picture"));
            for (a, b) in passes.planes.iter().zip(&one.planes) {
                // libjpeg-turbo may have left out a last column or row, see above.
                if cfg!(feature = "turbo") && (a.width, a.height) != (b.width, b.height) {
                    continue;
                }
                // A half may be rounded up or down.
                let most = if cfg!(feature = "turbo") { 2 } else { 1 };
                assert!(differences(&a.samples, &b.samples).1 <= most, "{names:?} in {eighths} eighths");
            }
        }
    }
}

#[test]
fn light_is_the_same_whatever_the_colours() {
    let expected = &decode(&picture("444"), 8).expect("a picture").planes[0];
    for name in ["411", "420", "420-apart", "422", "440", "odd", "thirds"] {
        let light = &decode(&picture(name), 8).expect("a picture").planes[0];
        assert!(differences(&light.samples, &expected.samples).1 <= 1, "{name}");
    }
}

#[test]
fn colours_are_told_apart() {
    let colours = |name: &str| decode(&picture(name), 1).map(|Picture { colours, .. }| colours);
    assert_eq!(colours("grey"), Ok(Colours::Grey));
    assert_eq!(colours("420"), Ok(Colours::YCbCr));
    assert_eq!(colours("rgb"), Ok(Colours::Rgb));
    assert_eq!(colours("cmyk"), Ok(Colours::Cmyk));
}

/// From the first pixels on.
fn scan(file: &[u8]) -> usize {
    file.windows(2).position(|pair| pair == [0xff, 0xda]).expect("a scan")
}

#[test]
fn restarts_may_have_any_number_of_fill_bytes_before_them() {
    for name in ["420-restarts", "420-progressive-restarts"] {
        let file = picture(name);
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
fn colours_of_one_name_are_taken_in_order() {
    for name in ["420", "444", "cmyk", "420-restarts"] {
        let (file, mut same) = (picture(name), picture(name));
        let frame = file.windows(2).position(|pair| pair[0] == 0xff && pair[1] == 0xc0).expect("a frame");
        let count = usize::from(file[frame + 9]);
        for colour in 0..count {
            same[frame + 10 + colour * 3] = 1;
            same[scan(&file) + 5 + colour * 2] = 1;
        }
        assert_eq!(decode(&same, 4), decode(&file, 4), "{name}");
    }
}

#[test]
fn half_a_picture_is_refused() {
    for (name, file) in pictures() {
        let middle = (scan(&file) + file.len()) / 2;
        // In the middle of a stuffed byte there would be a marker.
        let cut = [&file[..middle], &[0, 0xff, 0xd9]].concat();
        let error = decode(&cut, 4).expect_err(&name).to_string();
        assert!(error.contains("of its picture cannot be read") || error.contains("lacks"), "{name}: {error}");
    }
}

#[test]
fn whatever_is_changed_nothing_breaks() {
    let mut random = fastrand::Rng::with_seed(7);
    for (_, file) in pictures() {
        for _ in 0..150 {
            let mut changed = file.clone();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(2..changed.len());
                changed[at] = random.u8(..);
            }
            let frame = sparks_jpeg::frame(&changed);
            if frame.is_ok_and(|frame| frame.width * frame.height < 1_000_000) {
                let _ = decode(&changed, random.u32(1..=8));
            }
        }
    }
}
