//! Comparison with libwebp at method 4: same size, same PSNR, and readable by independent decoders.

use std::{fs, io::Cursor, path::Path};

use image::{ImageDecoder, codecs::webp::WebPDecoder, imageops::FilterType};
use sparks_webp::Settings;

struct Pixels {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Pixels {
    fn new(width: usize, height: usize, mut pixel: impl FnMut(usize, usize) -> [u8; 3]) -> Self {
        let mut rgb = Vec::with_capacity(width * height * 3);
        for y in 0..height {
            (0..width).for_each(|x| rgb.extend(pixel(x, y)));
        }
        Self { width, height, rgb }
    }

    fn encode(&self, quality: f32) -> Vec<u8> {
        self.encode_with(Settings { quality, sharp_yuv: false })
    }

    fn encode_with(&self, settings: Settings) -> Vec<u8> {
        sparks_webp::encode(&self.rgb, self.width, self.height, settings).expect("within the format")
    }

    fn encode_by_libwebp(&self, quality: f32) -> Vec<u8> {
        self.encode_by_libwebp_with(Settings { quality, sharp_yuv: false })
    }

    fn encode_by_libwebp_with(&self, Settings { quality, sharp_yuv }: Settings) -> Vec<u8> {
        let mut config = webp::WebPConfig::new().expect("a configuration");
        config.quality = quality;
        config.method = 4;
        config.use_sharp_yuv = sharp_yuv.into();
        let encoder = webp::Encoder::from_rgb(&self.rgb, self.width as u32, self.height as u32);
        encoder.encode_advanced(&config).expect("encoded").to_vec()
    }

    /// Returns the PSNR in decibels after decoding by libwebp.
    fn psnr(&self, file: &[u8]) -> f64 {
        let decoded = webp::Decoder::new(file).decode().expect("libwebp decodes the file");
        assert_eq!((decoded.width() as usize, decoded.height() as usize), (self.width, self.height));
        assert!(!decoded.is_alpha());
        let square = |(a, b): (&u8, &u8)| f64::from(a.abs_diff(*b)).powi(2);
        let error = self.rgb.iter().zip(decoded.iter()).map(square).sum::<f64>() / self.rgb.len() as f64;
        10.0 * (255.0 * 255.0 / error.max(1e-3)).log10()
    }
}

/// Returns the repository's photos at the size of variants.
fn photos() -> Vec<Pixels> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/photos");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("photos").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jpg"));
    assert!(paths.len() >= 4, "photos are needed");
    let open = |path: &Path| image::load_from_memory(&fs::read(path).expect("read")).expect("decoded");
    let small = |path: &std::path::PathBuf| open(path).resize(640, 640, FilterType::Lanczos3).to_rgb8();
    let pixels = |photo: image::RgbImage| {
        let (width, height) = (photo.width() as usize, photo.height() as usize);
        Pixels { width, height, rgb: photo.into_raw() }
    };
    paths.iter().map(small).map(pixels).collect()
}

#[test]
fn photos_have_the_size_and_psnr_of_libwebp() {
    let photos = photos();
    for quality in [50.0, 80.0, 95.0] {
        let (mut own_bytes, mut libwebp_bytes, mut gain) = (0, 0, 0.0);
        for photo in &photos {
            let (a, b) = (photo.encode(quality), photo.encode_by_libwebp(quality));
            gain += photo.psnr(&a) - photo.psnr(&b);
            own_bytes += a.len();
            libwebp_bytes += b.len();
        }
        let (size, gain) = (own_bytes as f64 / libwebp_bytes as f64, gain / photos.len() as f64);
        println!("quality {quality}: {size:.4} of the size, {gain:+.3} dB");
        assert!((0.99..1.01).contains(&size), "quality {quality}: {size} of the size");
        assert!(gain > -0.05, "quality {quality}: {gain} dB");
    }
}

#[test]
fn sharp_yuv_gains_psnr_and_matches_libwebp() {
    for quality in [85.0, 95.0] {
        let (plain, sharp) = (Settings { quality, sharp_yuv: false }, Settings { quality, sharp_yuv: true });
        let (mut over_plain, mut over_libwebp, mut own_bytes, mut libwebp_bytes) = (0.0, 0.0, 0, 0);
        let photos = photos();
        for photo in &photos {
            let (a, b) = (photo.encode_with(sharp), photo.encode_by_libwebp_with(sharp));
            over_plain += photo.psnr(&a) - photo.psnr(&photo.encode_with(plain));
            over_libwebp += photo.psnr(&a) - photo.psnr(&b);
            own_bytes += a.len();
            libwebp_bytes += b.len();
        }
        let [over_plain, over_libwebp] = [over_plain, over_libwebp].map(|gain| gain / photos.len() as f64);
        let size = own_bytes as f64 / libwebp_bytes as f64;
        println!("quality {quality}: {over_plain:+.3} dB, {over_libwebp:+.3} dB over libwebp's, {size:.4} of its size");
        assert!(over_plain > 0.3 && over_libwebp > -0.05, "{over_plain} and {over_libwebp} dB");
        assert!((0.98..1.0).contains(&size), "quality {quality}: {size} of the size");
    }
}

#[test]
fn images_of_every_kind_and_size_decode_equally_by_two_decoders() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut noise = move |_, _| [random.u8(..), random.u8(..), random.u8(..)];
    let mut images = vec![
        Pixels::new(300, 301, |_, _| [77, 77, 77]),
        Pixels::new(257, 130, &mut noise),
        Pixels::new(400, 100, |x, y| [(x * 255 / 400) as u8, (y * 255 / 100) as u8, 128]),
        Pixels::new(320, 320, |x, y| [if (x + y) / 8 % 2 == 0 { 255 } else { 0 }; 3]),
        Pixels::new(64, 64, |x, _| if x < 32 { [255, 0, 0] } else { [0, 0, 255] }),
        Pixels::new(16_383, 3, |x, y| [(x % 251) as u8, y as u8, 9]),
        Pixels::new(3, 16_383, |x, y| [(y % 251) as u8, x as u8, 9]),
    ];
    for side in 1..=40 {
        images.push(Pixels::new(side, 41 - side, &mut noise));
    }
    for image in &images {
        for quality in [0.0, 30.0, 80.0, 100.0] {
            let file = image.encode(quality);
            let (a, b) = (image.psnr(&file), image.psnr(&image.encode_by_libwebp(quality)));
            let size = format!("{} x {} at quality {quality}", image.width, image.height);
            assert!(a > b - 1.0, "{size}: {a} dB, libwebp {b}");

            let mut decoder = WebPDecoder::new(Cursor::new(&file)).expect("image-webp reads the header");
            assert_eq!(decoder.dimensions(), (image.width as u32, image.height as u32), "{size}");
            decoder.set_limits(image::Limits::no_limits()).expect("no limits");
            let mut pixels = vec![0; image.rgb.len()];
            decoder.read_image(&mut pixels).expect("image-webp decodes the file");
            let by_libwebp = webp::Decoder::new(&file).decode().expect("decoded");
            let largest = pixels.iter().zip(by_libwebp.iter()).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(largest <= Some(2), "{size}: the decoders differ by {largest:?}");
        }
    }
}

#[test]
fn images_beyond_the_limits_of_the_format_are_not_encoded() {
    let settings = Settings { quality: 80.0, sharp_yuv: true };
    assert!(sparks_webp::encode(&[], 0, 0, settings).is_none());
    assert!(sparks_webp::encode(&[0; 16_384 * 3], 16_384, 1, settings).is_none());
    assert!(sparks_webp::encode(&[0; 9], 2, 2, settings).is_none());
    assert!(sparks_webp::encode(&[0; 12], 2, 2, settings).is_some());
}
