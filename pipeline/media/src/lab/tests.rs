use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};
use sparks_domain::TakenAt;

use super::*;
use crate::{
    Fit,
    samples::{self, quarters},
};

const FORMATS: [(ImageFormat, &str, &str); 4] = [
    (ImageFormat::Jpeg, "image/jpeg", "jpg"),
    (ImageFormat::Png, "image/png", "png"),
    (ImageFormat::WebP, "image/webp", "webp"),
    (ImageFormat::Gif, "image/gif", "gif"),
];

fn develop(file: &[u8]) -> Developed {
    Lab::default().develop(file).expect("a photo")
}

fn refuse(file: &[u8]) -> (RejectCode, String) {
    let rejection = rejection(Lab::default().develop(file));
    (rejection.code, rejection.message)
}

pub(super) fn rejection<T: std::fmt::Debug>(made: Result<T, DarkroomError>) -> Rejection {
    match made.expect_err("no photo") {
        DarkroomError::Rejected(rejection) => rejection,
        DarkroomError::Unavailable(why) => panic!("{why}"),
    }
}

fn jpeg(width: u32, height: u32) -> Vec<u8> {
    samples::file(&quarters(width, height), ImageFormat::Jpeg)
}

fn png(image: &DynamicImage) -> Vec<u8> {
    samples::file(image, ImageFormat::Png)
}

/// The middles of the four quarters are as they were made, give or take what compression does.
fn assert_upright(pixels: &Pixels, what: &str) {
    let expected = quarters(pixels.width, pixels.height).into_rgb8();
    for (x, y) in [(1, 1), (3, 1), (1, 3), (3, 3)] {
        let (x, y) = (pixels.width * x / 4, pixels.height * y / 4);
        let at = ((y * pixels.width + x) * 3) as usize;
        let near = expected.get_pixel(x, y).0.iter().zip(&pixels.rgb[at..]).all(|(a, b)| a.abs_diff(*b) < 12);
        assert!(near, "{what}: pixel {x}, {y} is {:?}", &pixels.rgb[at..at + 3]);
    }
}

#[test]
fn every_format_is_developed() {
    for (format, mime_type, extension) in FORMATS {
        let file = samples::file(&quarters(600, 480), format);
        let developed = develop(&file);
        assert_eq!((developed.mime_type, developed.width, developed.height), (mime_type, 600, 480));
        assert_eq!((developed.large.width, developed.large.height), (600, 480));
        assert_eq!((developed.medium.width, developed.medium.height), (400, 400));
        assert_upright(&developed.pixels, mime_type);
        let reopened = |webp: &[u8]| Lab::default().open(webp).expect("pixels");
        assert_upright(&reopened(&developed.large.webp), mime_type);
        assert_upright(&reopened(&developed.medium.webp), mime_type);

        let description = Lab::default().describe(&file);
        assert_eq!((description.mime_type, description.extension), (Some(mime_type), Some(extension)));
    }
}

#[test]
fn every_orientation_is_the_same_picture() {
    let upright = quarters(640, 480);
    for orientation in 1..=8 {
        let stored = samples::stored(&upright, orientation);
        let size = (stored.width(), stored.height());
        let tiff = samples::Exif::default().orientation(orientation).bytes();
        let files = [
            samples::jpeg_with_exif(&samples::file(&stored, ImageFormat::Jpeg), &tiff),
            samples::png_with(&png(&stored), b"eXIf", &tiff),
            samples::webp_with_exif(&samples::file(&stored, ImageFormat::WebP), size, &tiff),
        ];
        for file in files {
            let developed = develop(&file);
            let what = format!("{} with orientation {orientation}", developed.mime_type);
            assert_eq!((developed.width, developed.height), (640, 480), "{what}");
            assert_eq!((developed.large.width, developed.large.height), (640, 480), "{what}");
            assert_upright(&developed.pixels, &what);
            assert_upright(&Lab::default().open(&developed.medium.webp).expect("pixels"), &what);
        }
    }
}

#[test]
fn a_turned_photo_gets_the_size_of_an_upright_one() {
    let wide = VariantSpec { fit: Fit::Cover, width: 300, height: 100, ..VariantSpec::medium() };
    let lab = Lab::new(Limits::default(), wide.clone(), wide, CropSpec::default());
    let stored = samples::stored(&quarters(640, 480), 6);
    let tiff = samples::Exif::default().orientation(6).bytes();
    let developed = lab.develop(&samples::png_with(&png(&stored), b"eXIf", &tiff)).expect("a photo");
    assert_eq!((developed.medium.width, developed.medium.height), (300, 100));
}

#[test]
fn a_jpeg_cut_short_is_refused() {
    let whole = jpeg(64, 48);
    for end in [whole.len() - 1, whole.len() - 2, whole.len() - 20] {
        let message = "the JPEG ends before its end-of-image marker: the file is cut short";
        assert_eq!(refuse(&whole[..end]), (RejectCode::Damaged, message.into()));
    }
    develop(&[&whole[..], b"a motion photo's video"].concat());
}

#[test]
fn a_thumbnail_is_not_the_end_of_its_photo() {
    let whole = samples::with_app(&jpeg(64, 48), 0xe1, &[b"Exif\0\0", &jpeg(8, 8)[..]].concat());
    develop(&whole);
    assert_eq!(refuse(&whole[..whole.len() - 2]).0, RejectCode::Damaged);
}

#[test]
fn no_cut_makes_a_photo_or_a_panic() {
    for (format, mime_type, _) in FORMATS {
        let whole = samples::file(&quarters(16, 16), format);
        for end in 0..whole.len() {
            let developed = Lab::default().develop(&whole[..end]);
            // The last bytes of these are no pixels: a PNG's checksum and IEND, a GIF's end code and trailer.
            let enough = whole.len() - if format == ImageFormat::Png { 16 } else { 4 };
            assert!(developed.is_err() || end >= enough, "{mime_type} cut at {end} of {}", whole.len());
            Lab::default().describe(&whole[..end]);
        }
    }
}

#[test]
fn a_changed_byte_is_never_a_panic() {
    let tiff = samples::Exif::taken("2014:05:01 10:20:30", None).orientation(6).bytes();
    for (format, ..) in FORMATS {
        let mut whole = samples::file(&quarters(16, 16), format);
        if format == ImageFormat::Jpeg {
            whole = samples::jpeg_with_exif(&whole, &tiff);
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            Lab::default().describe(&changed);
            let _ = Lab::default().develop(&changed);
        }
    }
}

#[test]
fn a_bomb_is_refused_by_its_header() {
    let header = [&60_000_u32.to_be_bytes()[..], &60_000_u32.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    let bomb = [b"\x89PNG\r\n\x1a\n", &samples::png_chunk(b"IHDR", &header)[..]].concat();
    let (code, message) = refuse(&bomb);
    assert_eq!(code, RejectCode::TooManyPixels);
    assert!(message.starts_with("60000 x 60000 pixels are more than the limit of 50 megapixels"), "{message}");
}

#[test]
fn a_webp_frame_larger_than_its_canvas_is_refused() {
    let inner = samples::file(&quarters(64, 64), ImageFormat::WebP);
    let (code, message) = refuse(&samples::webp_with_exif(&inner, (8, 8), b""));
    assert_eq!(code, RejectCode::Damaged);
    assert_eq!(message, "the WebP is damaged: it has a picture of 64 x 64 pixels on a canvas of 8 x 8");
}

#[test]
fn a_gif_frame_larger_than_the_limit_is_refused() {
    let gif = b"GIF89a\x01\0\x01\0\0\0\0,\0\0\0\0\xff\xff\xff\xff\x80\0\0\0\xff\xff\xff\x02\x02\x44\x01\0;";
    let message = "this GIF of 1 x 1 pixels needs 16384 MB of memory, more than the limit of 480 MB: make it smaller";
    assert_eq!(refuse(gif), (RejectCode::TooManyPixels, message.into()));
}

#[test]
fn what_is_no_photo_is_refused_by_name() {
    assert_eq!(refuse(b""), (RejectCode::Empty, "the file is empty".into()));
    let text = "not a picture: neither JPEG, PNG, WebP nor GIF";
    assert_eq!(refuse(b"Dear diary"), (RejectCode::UnsupportedFormat, text.into()));
    let heic = "HEIC is not supported: convert it to JPEG, PNG, WebP or GIF";
    assert_eq!(refuse(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"), (RejectCode::UnsupportedFormat, heic.into()));
    assert_eq!(Lab::default().describe(b"Dear diary"), Description::default());
}

#[test]
fn limits_hold() {
    let lab = |limits| Lab::new(limits, VariantSpec::large(), VariantSpec::medium(), CropSpec::default());
    let file = samples::with_app(&jpeg(64, 48), 0xe2, &[b"ICC_PROFILE\0", &[0; 500][..]].concat());
    let memory = Lab::default().admit(&file).expect("within the limits").memory();
    // The file twice, both prints, and the encoder at work on the larger.
    assert_eq!(memory, 2 * file.len() as u64 + 2 * 64 * 48 * 4 + 64 * 48 * 44);
    let cases = [
        (Limits { max_bytes: 100, ..Limits::default() }, RejectCode::TooManyBytes),
        (Limits { max_pixels: 3_000, ..Limits::default() }, RejectCode::TooManyPixels),
        (Limits { max_side: 63, ..Limits::default() }, RejectCode::TooManyPixels),
        (Limits { max_metadata_bytes: 511, ..Limits::default() }, RejectCode::TooMuchMetadata),
        (Limits { max_frames: 0, ..Limits::default() }, RejectCode::TooManyPixels),
        (Limits { max_scans: 0, ..Limits::default() }, RejectCode::Damaged),
        (Limits { max_memory: memory - 1, ..Limits::default() }, RejectCode::TooManyPixels),
    ];
    for (limits, code) in cases {
        assert_eq!(rejection(lab(limits).develop(&file)).code, code);
    }
    let exact = Limits {
        max_bytes: file.len() as u64,
        max_pixels: 3_072,
        max_side: 64,
        max_metadata_bytes: 512,
        max_frames: 1,
        max_scans: 1,
        max_memory: memory,
    };
    lab(exact).develop(&file).expect("within the limits");
}

#[test]
fn strips_and_dots_keep_every_side() {
    let strip = develop(&png(&quarters(16_000, 10)));
    assert_eq!((strip.large.width, strip.large.height), (1920, 1));
    assert_eq!((strip.medium.width, strip.medium.height), (400, 10));
    let dot = develop(&png(&quarters(1, 1)));
    assert_eq!((dot.large.width, dot.large.height, dot.medium.width, dot.medium.height), (1, 1, 1, 1));
}

#[test]
fn small_photos_are_not_enlarged() {
    let developed = develop(&png(&quarters(300, 1000)));
    assert_eq!((developed.large.width, developed.large.height), (300, 1000));
    assert_eq!((developed.medium.width, developed.medium.height), (300, 400));
}

#[test]
fn alpha_is_kept_in_the_pictures_and_white_for_faces() {
    let sheer = RgbaImage::from_fn(64, 64, |x, _| Rgba([200, 0, 0, if x < 32 { 0 } else { 255 }])).into();
    let developed = develop(&png(&sheer));
    let large = image::load_from_memory_with_format(&developed.large.webp, ImageFormat::WebP).expect("a WebP");
    let large = large.into_rgba8();
    assert_eq!((large.get_pixel(4, 4)[3], large.get_pixel(60, 4)[3]), (0, 255));
    assert_eq!(developed.pixels.rgb[..3], [255, 255, 255]);
    assert_eq!(developed.pixels.rgb[63 * 3..64 * 3], [200, 0, 0]);
}

#[test]
fn grey_and_deep_colours_become_eight_bit_colours() {
    let picture = quarters(64, 48);
    for deep in [DynamicImage::from(picture.to_rgb16()), picture.to_rgba16().into()] {
        assert_upright(&develop(&png(&deep)).pixels, "16 bits");
    }
    for grey in [DynamicImage::from(picture.to_luma8()), picture.to_luma16().into(), picture.to_luma_alpha8().into()] {
        let rgb = develop(&png(&grey)).pixels.rgb;
        assert!(rgb.chunks(3).all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]));
    }
}

#[test]
fn metadata_is_stripped() {
    let tiff = samples::Exif::taken("2014:05:01 10:20:30", None).bytes();
    let file = samples::with_app(&jpeg(600, 500), 0xe2, &[b"ICC_PROFILE\0\x01\x01", &[7; 128][..]].concat());
    let file = samples::with_app(&file, 0xe1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>");
    let developed = develop(&samples::jpeg_with_exif(&file, &tiff));
    for webp in [developed.large.webp, developed.medium.webp] {
        let mut rest = &webp[12..];
        while let [a, b, c, d, l0, l1, l2, l3, ..] = *rest {
            assert!([b"VP8 ", b"VP8L"].contains(&&[a, b, c, d]), "{:?}", String::from_utf8_lossy(&rest[..4]));
            let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
            rest = &rest[8 + length + length % 2..];
        }
        assert!(rest.is_empty());
    }
}

#[test]
fn the_time_is_read_from_every_format_that_has_one() {
    let tiff = samples::Exif::taken("2014:05:01 10:20:30", Some("+02:00")).bytes();
    let picture = quarters(20, 10);
    let files = [
        samples::jpeg_with_exif(&samples::file(&picture, ImageFormat::Jpeg), &tiff),
        samples::png_with(&png(&picture), b"eXIf", &tiff),
        samples::webp_with_exif(&samples::file(&picture, ImageFormat::WebP), (20, 10), &tiff),
        samples::webp_with_exif(
            &samples::file(&picture, ImageFormat::WebP),
            (20, 10),
            &[b"Exif\0\0", &tiff[..]].concat(),
        ),
    ];
    for file in files {
        let expected = Some(TakenAt("2014-05-01T10:20:30+02:00".into()));
        assert_eq!(Lab::default().describe(&file).taken_at, expected);
        assert_eq!(develop(&file).taken_at, expected);
    }
}

#[test]
fn garbage_exif_is_no_error() {
    for tiff in [&b""[..], b"garbage", b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\xff\xff"] {
        let developed = develop(&samples::jpeg_with_exif(&jpeg(20, 10), tiff));
        assert_eq!((developed.width, developed.taken_at), (20, None));
    }
}

#[test]
fn a_crop_shows_its_own_corner() {
    let pixels = develop(&jpeg(800, 800)).pixels;
    let crop = Lab::default().crop(&pixels, [0.8, 0.8, 0.2, 0.2].into()).expect("a crop");
    let crop = image::load_from_memory_with_format(&crop, ImageFormat::Jpeg).expect("a JPEG").into_rgb8();
    assert_eq!(crop.dimensions(), (216, 216));
    assert!(crop.pixels().all(|pixel| pixel.0.iter().zip([200, 200, 30]).all(|(a, b)| a.abs_diff(b) < 12)));
}

#[test]
fn the_same_file_gives_the_same_bytes() {
    let file = jpeg(2500, 1700);
    let (first, second) = (develop(&file), develop(&file));
    assert_eq!(first.large, second.large);
    assert_eq!(first.medium, second.medium);
    assert_eq!(first.pixels, second.pixels);
    let crop = |developed: &Developed| Lab::default().crop(&developed.pixels, [0.1, 0.1, 0.5, 0.5].into());
    assert_eq!(crop(&first), crop(&second));
}
