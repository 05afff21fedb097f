use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};
use sparks_domain::TakenAt;

use super::*;
use crate::{
    Fit,
    samples::{self, quadrants},
};

const FORMATS: [(ImageFormat, &str, &str); 4] = [
    (ImageFormat::Jpeg, "image/jpeg", "jpg"),
    (ImageFormat::Png, "image/png", "png"),
    (ImageFormat::WebP, "image/webp", "webp"),
    (ImageFormat::Gif, "image/gif", "gif"),
];

fn render(file: &[u8]) -> RenderedImage {
    LocalImageProcessor::default().render(file).expect("a photo")
}

fn rejection_of(file: &[u8]) -> (RejectCode, String) {
    let rejection = rejection(LocalImageProcessor::default().render(file));
    (rejection.code, rejection.message)
}

pub(super) fn rejection<T: std::fmt::Debug>(made: Result<T, ImageError>) -> Rejection {
    match made.expect_err("no photo") {
        ImageError::Rejected(rejection) => rejection,
        ImageError::Unavailable(why) => panic!("{why}"),
    }
}

fn jpeg(width: u32, height: u32) -> Vec<u8> {
    samples::encode(&quadrants(width, height), ImageFormat::Jpeg)
}

fn png(image: &DynamicImage) -> Vec<u8> {
    samples::encode(image, ImageFormat::Png)
}

/// Checks that the centres of the four quadrants have their original colours, within compression error.
fn assert_upright(pixels: &Pixels, what: &str) {
    let expected = quadrants(pixels.width, pixels.height).into_rgb8();
    for (x, y) in [(1, 1), (3, 1), (1, 3), (3, 3)] {
        let (x, y) = (pixels.width * x / 4, pixels.height * y / 4);
        let at = ((y * pixels.width + x) * 3) as usize;
        let near = expected.get_pixel(x, y).0.iter().zip(&pixels.rgb[at..]).all(|(a, b)| a.abs_diff(*b) < 12);
        assert!(near, "{what}: pixel {x}, {y} is {:?}", &pixels.rgb[at..at + 3]);
    }
}

#[test]
fn every_format_is_rendered() {
    for (format, mime_type, extension) in FORMATS {
        let file = samples::encode(&quadrants(600, 480), format);
        let rendered = render(&file);
        assert_eq!((rendered.mime_type, rendered.width, rendered.height), (mime_type, 600, 480));
        assert_eq!((rendered.large.width, rendered.large.height), (600, 480));
        assert_eq!((rendered.medium.width, rendered.medium.height), (400, 400));
        assert_upright(&rendered.pixels, mime_type);
        let reopened = |webp: &[u8]| LocalImageProcessor::default().decode(webp).expect("pixels");
        assert_upright(&reopened(&rendered.large.webp), mime_type);
        assert_upright(&reopened(&rendered.medium.webp), mime_type);

        let description = LocalImageProcessor::default().inspect(&file);
        assert_eq!((description.mime_type, description.extension), (Some(mime_type), Some(extension)));
    }
}

#[test]
fn every_orientation_gives_the_same_image() {
    let upright = quadrants(640, 480);
    for orientation in 1..=8 {
        let stored = samples::stored(&upright, orientation);
        let size = (stored.width(), stored.height());
        let tiff = samples::Exif::default().orientation(orientation).bytes();
        let files = [
            samples::jpeg_with_exif(&samples::encode(&stored, ImageFormat::Jpeg), &tiff),
            samples::png_with(&png(&stored), b"eXIf", &tiff),
            samples::webp_with_exif(&samples::encode(&stored, ImageFormat::WebP), size, &tiff),
        ];
        for file in files {
            let rendered = render(&file);
            let what = format!("{} with orientation {orientation}", rendered.mime_type);
            assert_eq!((rendered.width, rendered.height), (640, 480), "{what}");
            assert_eq!((rendered.large.width, rendered.large.height), (640, 480), "{what}");
            assert_upright(&rendered.pixels, &what);
            assert_upright(&LocalImageProcessor::default().decode(&rendered.medium.webp).expect("pixels"), &what);
        }
    }
}

#[test]
fn a_rotated_photo_gets_the_size_of_an_upright_one() {
    let wide = VariantSpec { fit: Fit::Cover, width: 300, height: 100, ..VariantSpec::medium() };
    let processor = LocalImageProcessor::new(Limits::default(), wide.clone(), wide, CropSpec::default());
    let stored = samples::stored(&quadrants(640, 480), 6);
    let tiff = samples::Exif::default().orientation(6).bytes();
    let rendered = processor.render(&samples::png_with(&png(&stored), b"eXIf", &tiff)).expect("a photo");
    assert_eq!((rendered.medium.width, rendered.medium.height), (300, 100));
}

#[test]
fn a_truncated_jpeg_is_rejected() {
    let whole = jpeg(64, 48);
    for end in [whole.len() - 1, whole.len() - 2, whole.len() - 20] {
        let message = "the JPEG ends before its end-of-image marker: the file is truncated";
        assert_eq!(rejection_of(&whole[..end]), (RejectCode::Damaged, message.into()));
    }
    render(&[&whole[..], b"a motion photo's video"].concat());
}

#[test]
fn the_end_of_a_thumbnail_is_not_the_end_of_its_photo() {
    let whole = samples::jpeg_with_segment(&jpeg(64, 48), 0xe1, &[b"Exif\0\0", &jpeg(8, 8)[..]].concat());
    render(&whole);
    assert_eq!(rejection_of(&whole[..whole.len() - 2]).0, RejectCode::Damaged);
}

#[test]
fn truncated_files_neither_render_nor_panic() {
    for (format, mime_type, _) in FORMATS {
        let whole = samples::encode(&quadrants(16, 16), format);
        for end in 0..whole.len() {
            let rendered = LocalImageProcessor::default().render(&whole[..end]);
            // The last bytes are not pixels: a PNG's checksum and IEND, a GIF's end code and trailer.
            let enough = whole.len() - if format == ImageFormat::Png { 16 } else { 4 };
            assert!(rendered.is_err() || end >= enough, "{mime_type} truncated at {end} of {}", whole.len());
            LocalImageProcessor::default().inspect(&whole[..end]);
        }
    }
}

#[test]
fn a_changed_byte_never_panics() {
    let tiff = samples::Exif::taken("2014:05:01 10:20:30", None).orientation(6).bytes();
    for (format, ..) in FORMATS {
        let mut whole = samples::encode(&quadrants(16, 16), format);
        if format == ImageFormat::Jpeg {
            whole = samples::jpeg_with_exif(&whole, &tiff);
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            LocalImageProcessor::default().inspect(&changed);
            let _ = LocalImageProcessor::default().render(&changed);
        }
    }
}

#[test]
fn a_decompression_bomb_is_rejected_by_its_header() {
    let header = [&60_000_u32.to_be_bytes()[..], &60_000_u32.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    let bomb = [b"\x89PNG\r\n\x1a\n", &samples::png_chunk(b"IHDR", &header)[..]].concat();
    let (code, message) = rejection_of(&bomb);
    assert_eq!(code, RejectCode::TooManyPixels);
    assert!(message.starts_with("60000 x 60000 pixels are more than the limit of 50 megapixels"), "{message}");
}

#[test]
fn a_webp_frame_larger_than_its_canvas_is_rejected() {
    let inner = samples::encode(&quadrants(64, 64), ImageFormat::WebP);
    let (code, message) = rejection_of(&samples::webp_with_exif(&inner, (8, 8), b""));
    assert_eq!(code, RejectCode::Damaged);
    assert_eq!(message, "the WebP is damaged: it has an image of 64 x 64 pixels on a canvas of 8 x 8");
}

#[test]
fn a_gif_frame_larger_than_the_limit_is_rejected() {
    let gif = b"GIF89a\x01\0\x01\0\0\0\0,\0\0\0\0\xff\xff\xff\xff\x80\0\0\0\xff\xff\xff\x02\x02\x44\x01\0;";
    let message = "this GIF of 1 x 1 pixels needs 16384 MB of memory, more than the limit of 480 MB: make it smaller";
    assert_eq!(rejection_of(gif), (RejectCode::TooManyPixels, message.into()));
}

#[test]
fn files_that_are_no_photo_are_rejected_by_name() {
    assert_eq!(rejection_of(b""), (RejectCode::Empty, "the file is empty".into()));
    let text = "not an image: neither JPEG, PNG, WebP nor GIF";
    assert_eq!(rejection_of(b"Dear diary"), (RejectCode::UnsupportedFormat, text.into()));
    let heic = "HEIC is not supported: convert it to JPEG, PNG, WebP or GIF";
    assert_eq!(rejection_of(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"), (RejectCode::UnsupportedFormat, heic.into()));
    assert_eq!(LocalImageProcessor::default().inspect(b"Dear diary"), ImageInfo::default());
}

#[test]
fn limits_are_enforced() {
    let processor =
        |limits| LocalImageProcessor::new(limits, VariantSpec::large(), VariantSpec::medium(), CropSpec::default());
    let file = samples::jpeg_with_segment(&jpeg(64, 48), 0xe2, &[b"ICC_PROFILE\0", &[0; 500][..]].concat());
    let memory = LocalImageProcessor::default().validate(&file).expect("within the limits").peak_memory();
    // The file twice, both variants, and the encoder's buffers for the larger.
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
        assert_eq!(rejection(processor(limits).render(&file)).code, code);
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
    processor(exact).render(&file).expect("within the limits");
}

#[test]
fn very_narrow_and_tiny_photos_keep_at_least_one_pixel_per_side() {
    let strip = render(&png(&quadrants(16_000, 10)));
    assert_eq!((strip.large.width, strip.large.height), (1920, 1));
    assert_eq!((strip.medium.width, strip.medium.height), (400, 10));
    let dot = render(&png(&quadrants(1, 1)));
    assert_eq!((dot.large.width, dot.large.height, dot.medium.width, dot.medium.height), (1, 1, 1, 1));
}

#[test]
fn small_photos_are_not_enlarged() {
    let rendered = render(&png(&quadrants(300, 1000)));
    assert_eq!((rendered.large.width, rendered.large.height), (300, 1000));
    assert_eq!((rendered.medium.width, rendered.medium.height), (300, 400));
}

#[test]
fn alpha_is_kept_in_variants_and_white_for_faces() {
    let transparent = RgbaImage::from_fn(64, 64, |x, _| Rgba([200, 0, 0, if x < 32 { 0 } else { 255 }])).into();
    let rendered = render(&png(&transparent));
    let large = image::load_from_memory_with_format(&rendered.large.webp, ImageFormat::WebP).expect("a WebP");
    let large = large.into_rgba8();
    assert_eq!((large.get_pixel(4, 4)[3], large.get_pixel(60, 4)[3]), (0, 255));
    assert_eq!(rendered.pixels.rgb[..3], [255, 255, 255]);
    assert_eq!(rendered.pixels.rgb[63 * 3..64 * 3], [200, 0, 0]);
}

#[test]
fn grey_and_16_bit_images_become_8_bit_rgb() {
    let image = quadrants(64, 48);
    for deep in [DynamicImage::from(image.to_rgb16()), image.to_rgba16().into()] {
        assert_upright(&render(&png(&deep)).pixels, "16 bits");
    }
    for grey in [DynamicImage::from(image.to_luma8()), image.to_luma16().into(), image.to_luma_alpha8().into()] {
        let rgb = render(&png(&grey)).pixels.rgb;
        assert!(rgb.chunks(3).all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]));
    }
}

#[test]
fn metadata_is_stripped() {
    let tiff = samples::Exif::taken("2014:05:01 10:20:30", None).bytes();
    let file = samples::jpeg_with_segment(&jpeg(600, 500), 0xe2, &[b"ICC_PROFILE\0\x01\x01", &[7; 128][..]].concat());
    let file = samples::jpeg_with_segment(&file, 0xe1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>");
    let rendered = render(&samples::jpeg_with_exif(&file, &tiff));
    for webp in [rendered.large.webp, rendered.medium.webp] {
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
fn the_capture_time_is_read_from_every_format_with_exif() {
    let tiff = samples::Exif::taken("2014:05:01 10:20:30", Some("+02:00")).bytes();
    let image = quadrants(20, 10);
    let files = [
        samples::jpeg_with_exif(&samples::encode(&image, ImageFormat::Jpeg), &tiff),
        samples::png_with(&png(&image), b"eXIf", &tiff),
        samples::webp_with_exif(&samples::encode(&image, ImageFormat::WebP), (20, 10), &tiff),
        samples::webp_with_exif(
            &samples::encode(&image, ImageFormat::WebP),
            (20, 10),
            &[b"Exif\0\0", &tiff[..]].concat(),
        ),
    ];
    for file in files {
        let expected = Some(TakenAt("2014-05-01T10:20:30+02:00".into()));
        assert_eq!(LocalImageProcessor::default().inspect(&file).taken_at, expected);
        assert_eq!(render(&file).taken_at, expected);
    }
}

#[test]
fn garbage_exif_is_not_an_error() {
    for tiff in [&b""[..], b"garbage", b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\xff\xff"] {
        let rendered = render(&samples::jpeg_with_exif(&jpeg(20, 10), tiff));
        assert_eq!((rendered.width, rendered.taken_at), (20, None));
    }
}

#[test]
fn a_crop_shows_its_own_corner() {
    let pixels = render(&jpeg(800, 800)).pixels;
    let crop = LocalImageProcessor::default().crop(&pixels, [0.8, 0.8, 0.2, 0.2].into()).expect("a crop");
    let crop = image::load_from_memory_with_format(&crop, ImageFormat::Jpeg).expect("a JPEG").into_rgb8();
    assert_eq!(crop.dimensions(), (216, 216));
    assert!(crop.pixels().all(|pixel| pixel.0.iter().zip([200, 200, 30]).all(|(a, b)| a.abs_diff(b) < 12)));
}

#[test]
fn the_same_file_gives_the_same_bytes() {
    let file = jpeg(2500, 1700);
    let (first, second) = (render(&file), render(&file));
    assert_eq!(first.large, second.large);
    assert_eq!(first.medium, second.medium);
    assert_eq!(first.pixels, second.pixels);
    let crop =
        |rendered: &RenderedImage| LocalImageProcessor::default().crop(&rendered.pixels, [0.1, 0.1, 0.5, 0.5].into());
    assert_eq!(crop(&first), crop(&second));
}
