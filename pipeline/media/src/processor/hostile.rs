//! Files made to exhaust memory or CPU: each is rejected by name, or costs no more than its image.

use image::ImageFormat;
use sparks_domain::{RejectCode, Rejection};
use sparks_engine::ImageProcessor;

use super::{LocalImageProcessor, tests::rejection};
use crate::samples::{self, quadrants};

fn rejection_of(file: &[u8]) -> Rejection {
    rejection(LocalImageProcessor::default().render(file))
}

#[track_caller]
fn assert_rejected(file: &[u8], code: RejectCode, beginning: &str) {
    let rejection = rejection_of(file);
    assert_eq!(rejection.code, code, "{}", rejection.message);
    assert!(rejection.message.starts_with(beginning), "{}", rejection.message);
}

#[track_caller]
fn assert_accepted(file: &[u8]) {
    LocalImageProcessor::default().render(file).expect("a photo");
}

fn jpeg() -> Vec<u8> {
    samples::encode(&quadrants(64, 48), ImageFormat::Jpeg)
}

fn png() -> Vec<u8> {
    samples::encode(&quadrants(64, 48), ImageFormat::Png)
}

/// Returns the offset of the segment with this marker.
fn segment(jpeg: &[u8], marker: u8) -> usize {
    jpeg.windows(2).position(|pair| pair == [0xff, marker]).expect("the segment")
}

/// Changes the byte at this distance after the marker.
fn changed(jpeg: &[u8], marker: u8, offset: usize, value: u8) -> Vec<u8> {
    let mut jpeg = jpeg.to_vec();
    let at = segment(&jpeg, marker) + offset;
    jpeg[at] = value;
    jpeg
}

mod jpegs {
    use super::*;

    const FRAME: u8 = 0xc0;
    const SCAN: u8 = 0xda;
    /// Offsets from the frame's marker: the marker's second byte, precision, height, sampling of the first component.
    const KIND: usize = 1;
    const PRECISION: usize = 4;
    const HEIGHT: usize = 5;
    const SAMPLING: usize = 11;

    #[test]
    fn unsupported_kinds_are_named() {
        let kinds = [(0xc3, "lossless JPEG"), (0xc9, "arithmetic-coded JPEG"), (0xc5, "hierarchical JPEG")];
        for (kind, name) in kinds {
            let beginning = format!("{name} is not supported: save it again");
            assert_rejected(&changed(&jpeg(), FRAME, KIND, kind), RejectCode::UnsupportedFormat, &beginning);
        }
        let deep = changed(&jpeg(), FRAME, PRECISION, 12);
        assert_rejected(&deep, RejectCode::UnsupportedFormat, "JPEG with 12 bits per sample is not supported");
    }

    #[test]
    fn a_height_after_the_pixels_is_rejected() {
        let mut jpeg = changed(&changed(&jpeg(), FRAME, HEIGHT, 0), FRAME, HEIGHT + 1, 0);
        jpeg.truncate(jpeg.len() - 2);
        jpeg.extend(b"\xff\xdc\0\x04\0\x30\xff\xd9");
        assert_rejected(&jpeg, RejectCode::UnsupportedFormat, "JPEG with its height after its pixels");
    }

    #[test]
    fn invalid_sampling_factors_are_rejected() {
        for sampling in [0x00, 0x0f, 0xf0, 0xff, 0x51] {
            let damaged = changed(&jpeg(), FRAME, SAMPLING, sampling);
            assert_rejected(&damaged, RejectCode::Damaged, "the JPEG is damaged: it has a component");
        }
        // Valid, but not the factors that the file was encoded with.
        let _ = rejection_of(&changed(&jpeg(), FRAME, SAMPLING, 0x44));
    }

    #[test]
    fn thousands_of_scans_are_rejected() {
        let jpeg = jpeg();
        let (start, end) = (segment(&jpeg, SCAN), jpeg.len() - 2);
        let many = [&jpeg[..start], &jpeg[start..end].repeat(5_000), &jpeg[end..]].concat();
        assert_rejected(
            &many,
            RejectCode::Damaged,
            "the JPEG has 5000 scans, more than the limit of 32: save it again",
        );
    }

    #[test]
    fn excess_restart_markers_cost_nothing() {
        let jpeg = jpeg();
        let scan = segment(&jpeg, SCAN);
        let interval = b"\xff\xdd\0\x04\0\x01";
        // Declared but absent: all but the first unit is missing.
        let announced = [&jpeg[..scan], interval, &jpeg[scan..]].concat();
        assert_rejected(&announced, RejectCode::Damaged, "the JPEG is damaged: ");
        // Present without meaning: a million before the end.
        let end = jpeg.len() - 2;
        let storm = [&jpeg[..end], &b"\xff\xd0".repeat(1_000_000), &jpeg[end..]].concat();
        assert_accepted(&storm);
    }

    #[test]
    fn profiles_are_counted_in_one_chunk_and_in_many() {
        let piece = [b"ICC_PROFILE\0\x01\x01", &vec![0; 60_000][..]].concat();
        let many = (0..20).fold(jpeg(), |jpeg, _| samples::jpeg_with_segment(&jpeg, 0xe2, &piece));
        assert_rejected(
            &many,
            RejectCode::TooMuchMetadata,
            "EXIF and ICC of 1200280 bytes are over the limit of 1048576 bytes",
        );
        let tiny = (0..60_000).fold(Vec::new(), |mut tiny, _| {
            tiny.extend(b"\xff\xe2\0\x11ICC_PROFILE\0\x01\x01\0");
            tiny
        });
        let tiny = [&b"\xff\xd8"[..], &tiny, &jpeg()[2..]].concat();
        let _ = LocalImageProcessor::default().render(&tiny);
    }

    #[test]
    fn nested_thumbnails_are_not_decoded() {
        let nested = (0..5).fold(jpeg(), |inner, _| samples::jpeg_with_exif(&jpeg(), &inner));
        assert_accepted(&nested);
    }

    #[test]
    fn excessive_memory_is_rejected_by_the_header() {
        let header_only_jpeg = |marker: u8, count: u8| {
            let planes: Vec<u8> = (1..=count).flat_map(|id| [id, 0x11, 0]).collect();
            let frame = [&[8, 0x13, 0x88, 0x27, 0x10, count][..], &planes].concat();
            let tables: Vec<u8> = (1..=count).flat_map(|id| [id, 0]).collect();
            let scan = [&[count][..], &tables, &[0, 63, 0]].concat();
            samples::jpeg_with_segment(&samples::jpeg_with_segment(b"\xff\xd8\xff\xd9", 0xda, &scan), marker, &frame)
        };
        let processor = |limits, large| {
            LocalImageProcessor::new(limits, large, crate::VariantSpec::medium(), crate::CropSpec::default())
        };
        let validate = |processor: LocalImageProcessor, file: &[u8]| {
            processor.validate(file).map(|_| "accepted".to_string()).unwrap_or_else(|error| error.message)
        };
        let limits = crate::Limits { max_memory: 32 << 20, ..crate::Limits::default() };
        let small = crate::VariantSpec { width: 960, height: 960, ..crate::VariantSpec::large() };
        let message = |file: &[u8]| validate(processor(limits.clone(), small.clone()), file);
        assert_eq!(
            message(&header_only_jpeg(0xc2, 4)),
            "this JPEG of 10000 x 5000 pixels needs 38 MB of memory, more than the limit of 32 MB: make it smaller"
        );
        // A sequential JPEG keeps no coefficients, and three components fit.
        assert_eq!(message(&header_only_jpeg(0xc0, 4)), "accepted");
        assert_eq!(message(&header_only_jpeg(0xc2, 3)), "accepted");
        // Cheap to decode, expensive to encode.
        let huge = crate::VariantSpec { width: 16_383, height: 16_383, ..crate::VariantSpec::large() };
        assert_eq!(
            validate(processor(crate::Limits::default(), huge), &header_only_jpeg(0xc0, 3)),
            "this JPEG of 10000 x 5000 pixels needs 2290 MB of memory, more than the limit of 480 MB: make it smaller"
        );
    }
}

mod exifs {
    use super::*;

    #[test]
    fn cyclic_and_long_directory_chains_cost_nothing() {
        let entry = |tag: u16, value: u32| [&tag.to_be_bytes()[..], &[0, 4, 0, 0, 0, 1], &value.to_be_bytes()].concat();
        let header = b"MM\0*\0\0\0\x08";
        // Points at itself as its EXIF directory, and as the next one.
        let own = [&header[..], &[0, 1], &entry(0x8769, 8), &8_u32.to_be_bytes()].concat();
        // A chain, each next one six bytes on.
        let chain: Vec<u8> =
            (0..5_000_u32).flat_map(|n| [&[0, 0][..], &(8 + (n + 1) * 6).to_be_bytes()].concat()).collect();
        let chain = [&header[..], &chain].concat();
        for tiff in [own, chain] {
            assert_accepted(&samples::jpeg_with_exif(&jpeg(), &tiff));
            assert_accepted(&samples::png_with(&png(), b"eXIf", &tiff));
        }
    }
}

mod pngs {
    use std::io::Write;

    use image::codecs::png::{CompressionType, FilterType, PngEncoder};
    use image::{ExtendedColorType, ImageEncoder};

    use super::*;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).expect("packed");
        encoder.finish().expect("packed")
    }

    fn file(header: [u32; 2], kind: [u8; 5], data: &[u8]) -> Vec<u8> {
        let header = [&header[0].to_be_bytes()[..], &header[1].to_be_bytes(), &kind].concat();
        let chunk = samples::png_chunk;
        [b"\x89PNG\r\n\x1a\n", &chunk(b"IHDR", &header)[..], &chunk(b"IDAT", data), &chunk(b"IEND", b"")].concat()
    }

    const GREY: [u8; 5] = [8, 0, 0, 0, 0];
    const INTERLACED: [u8; 5] = [8, 0, 0, 0, 1];

    #[test]
    fn inflated_data_is_bounded_by_the_image_size() {
        // 64 MB of zeros for an image of 64 x 64.
        let bomb = zlib(&vec![0; 64 << 20]);
        assert!(bomb.len() < 1 << 17);
        for kind in [GREY, INTERLACED] {
            let _ = LocalImageProcessor::default().render(&file([64, 64], kind, &bomb));
        }
    }

    #[test]
    fn oversized_and_empty_interlaced_files_are_rejected() {
        assert_rejected(
            &file([60_000, 60_000], INTERLACED, &zlib(&[0])),
            RejectCode::TooManyPixels,
            "60000 x 60000 pixels are",
        );
        assert_rejected(
            &file([u32::MAX, u32::MAX], [16, 6, 0, 0, 0], b""),
            RejectCode::TooManyPixels,
            "4294967295 x 4294967295",
        );
        assert_rejected(&file([4_000, 4_000], INTERLACED, &zlib(&[0])), RejectCode::Damaged, "the PNG ");
    }

    #[test]
    fn profiles_and_texts_that_inflate_to_much_are_ignored() {
        let bomb = zlib(&vec![0; 200 << 20]);
        let profile = [b"icc\0\0", &bomb[..]].concat();
        assert_accepted(&samples::png_with(&png(), b"iCCP", &profile));
        assert_accepted(&samples::png_with(&png(), b"zTXt", &[b"Comment\0\0", &bomb[..]].concat()));
    }

    #[test]
    fn a_hundred_thousand_texts_cost_nothing() {
        let texts = samples::png_chunk(b"tEXt", b"Comment\0hello").repeat(100_000);
        let png = png();
        assert_accepted(&[&png[..33], &texts, &png[33..]].concat());
    }

    #[test]
    fn frames_of_an_animation_are_counted() {
        let png = png();
        let control = samples::png_chunk(b"fcTL", &[0; 26]).repeat(2_000);
        let many = [&png[..33], &control, &png[33..]].concat();
        assert_rejected(&many, RejectCode::TooManyPixels, "the PNG has 2000 frames, more than the limit of 1000");
    }

    #[test]
    fn a_16_bit_rgba_png_at_the_pixel_limit_fits_into_memory() {
        let mut file = Vec::new();
        PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::NoFilter)
            .write_image(&[0; 8], 1, 1, ExtendedColorType::Rgba16)
            .expect("a PNG");
        assert_accepted(&file);
        let kind = [16, 6, 0, 0, 0];
        let rejection = rejection_of(&self::file([10_000, 5_000], kind, &[]));
        assert_eq!(rejection.code, RejectCode::Damaged, "{}", rejection.message);
        let limits = crate::Limits { max_memory: 400 << 20, ..crate::Limits::default() };
        let small = LocalImageProcessor::new(
            limits,
            crate::VariantSpec::large(),
            crate::VariantSpec::medium(),
            Default::default(),
        );
        let message = small.render(&self::file([10_000, 5_000], kind, &[])).expect_err("too much").to_string();
        assert!(message.starts_with("this PNG of 10000 x 5000 pixels needs 426 MB of memory"), "{message}");
    }
}

mod gifs {
    use super::*;

    const FRAME: &[u8] = b",\0\0\0\0\x01\0\x01\0\x80\0\0\0\xff\xff\xff\x02\x02\x44\x01\0";

    fn gif(screen: [u16; 2], blocks: &[&[u8]]) -> Vec<u8> {
        let [width, height] = screen.map(u16::to_le_bytes);
        [b"GIF89a", &width[..], &height, b"\0\0\0", &blocks.concat(), b";"].concat()
    }

    #[test]
    fn only_the_first_frame_is_decoded_but_all_are_counted() {
        assert_accepted(&gif([1, 1], &[FRAME, b",\xff\xff\xff\xff\xff\xff\xff\xff\0\x02\0"]));
        assert_accepted(&gif([1, 1], &[&FRAME.repeat(1_000)]));
        let message = "the GIF has 5000 frames, more than the limit of 1000: export a single frame";
        assert_rejected(&gif([1, 1], &[&FRAME.repeat(5_000)]), RejectCode::TooManyPixels, message);
    }

    #[test]
    fn a_frame_larger_than_the_screen_is_clipped() {
        let larger = b",\0\0\0\0\x02\0\x01\0\x80\0\0\0\xff\xff\xff\x02\x02\x0c\x05\0";
        assert_accepted(&gif([1, 1], &[larger]));
    }

    #[test]
    fn frames_and_screens_without_size_are_rejected() {
        let empty = b",\0\0\0\0\0\0\0\0\x80\0\0\0\xff\xff\xff\x02\x02\x44\x01\0";
        assert_rejected(
            &gif([1, 1], &[empty]),
            RejectCode::Damaged,
            "the GIF is damaged: its first frame is 0 x 0 pixels",
        );
        assert_rejected(&gif([0, 0], &[FRAME]), RejectCode::Damaged, "the image has a size of 0 x 0 pixels");
        assert_rejected(&gif([1, 1], &[]), RejectCode::Damaged, "the GIF has no frame");
    }

    #[test]
    fn endless_lzw_data_stops_at_the_end_of_the_frame() {
        // Endless repetition of one code.
        let pieces = [&[255][..], &[0x55; 255]].concat().repeat(4_000);
        let bomb = [&b",\0\0\0\0\x40\0\x40\0\x80\0\0\0\xff\xff\xff\x02"[..], &pieces, &[0]].concat();
        let _ = LocalImageProcessor::default().render(&gif([64, 64], &[&bomb]));
    }
}

mod webps {
    use super::*;

    fn still() -> Vec<u8> {
        samples::encode(&quadrants(16, 16), ImageFormat::WebP)
    }

    fn u24(value: u32) -> [u8; 3] {
        let [a, b, c, _] = value.to_le_bytes();
        [a, b, c]
    }

    fn canvas(flags: u8, side: u32) -> Vec<u8> {
        samples::riff(b"VP8X", &[&[flags, 0, 0, 0][..], &u24(side - 1), &u24(side - 1)].concat())
    }

    fn frame(side: u32, chunks: &[u8]) -> Vec<u8> {
        let place = [u24(0), u24(0), u24(side - 1), u24(side - 1), u24(100)].concat();
        samples::riff(b"ANMF", &[&place[..], &[0], chunks].concat())
    }

    fn webp(chunks: &[&[u8]]) -> Vec<u8> {
        samples::riff(b"RIFF", &[b"WEBP", &chunks.concat()[..]].concat())
    }

    const ANIMATED: u8 = 2;

    fn animation(side: u32, frames: &[u8]) -> Vec<u8> {
        webp(&[&canvas(ANIMATED, side), &samples::riff(b"ANIM", &[0; 6]), frames])
    }

    #[test]
    fn the_first_frame_of_an_animation_is_accepted_and_frames_are_counted() {
        let one = frame(16, &still()[12..]);
        assert_accepted(&animation(16, &one));
        assert_accepted(&animation(16, &one.repeat(1_000)));
        let message = "the WebP has 1001 frames, more than the limit of 1000: export a single frame";
        assert_rejected(&animation(16, &one.repeat(1_001)), RejectCode::TooManyPixels, message);
    }

    #[test]
    fn contradictory_sizes_are_rejected() {
        let of_frame = "the WebP is damaged: it has an image of 16 x 16 pixels on a frame of 8 x 8";
        assert_rejected(&animation(16, &frame(8, &still()[12..])), RejectCode::Damaged, of_frame);
        let of_canvas = "the WebP is damaged: it has a frame of 32 x 32 pixels on a canvas of 16 x 16";
        assert_rejected(&animation(16, &frame(32, &still()[12..])), RejectCode::Damaged, of_canvas);
        let still = webp(&[&canvas(0, 64), &still()[12..]]);
        assert_rejected(
            &still,
            RejectCode::Damaged,
            "the WebP is damaged: it has an image of 16 x 16 pixels on a canvas of 64",
        );
    }

    #[test]
    fn alpha_without_an_image_is_rejected() {
        let alpha = samples::riff(b"ALPH", &[0; 257]);
        let unknown = samples::riff(b"ABCD", &still()[20..]);
        let frame = frame(16, &[alpha, unknown].concat());
        assert_rejected(
            &animation(16, &frame),
            RejectCode::Damaged,
            "the WebP is damaged: its first frame has alpha but",
        );
    }

    /// Appends the lowest `count` bits of a number, least significant first.
    fn write(bits: &mut String, value: u32, count: usize) {
        bits.extend((0..count).map(|place| if value >> place & 1 == 1 { '1' } else { '0' }));
    }

    /// Writes a prefix code group of one colour.
    fn one_colour(bits: &mut String, symbols: [u32; 5]) {
        write(bits, 0, 1);
        symbols.iter().for_each(|symbol| write(bits, 0b101 | symbol << 3, 11));
    }

    /// Returns 4 x 4 pixels, with all transforms or none; blocks of four; one block that uses the last of 65,536 prefix code
    /// groups; then lengths 1 to 10 for each code.
    fn image_with_65536_groups(with_transforms: bool) -> Vec<u8> {
        let mut bits = String::new();
        let signature_and_size = [(0x2f, 8), (3, 14), (3, 14), (0, 4)];
        signature_and_size.iter().for_each(|(value, count)| write(&mut bits, *value, *count));
        for (kind, size, bits_of_size) in [(0, 0, 3), (1, 0, 3), (2, 0, 0), (3, 255, 8)] {
            if with_transforms {
                write(&mut bits, 1 | kind << 1, 3);
                write(&mut bits, size, bits_of_size);
                if kind != 2 {
                    one_colour(&mut bits, [0; 5]);
                }
            }
        }
        [(0, 2), (1, 1), (0, 3)].iter().for_each(|(value, count)| write(&mut bits, *value, *count));
        one_colour(&mut bits, [255, 255, 0, 0, 0]);
        let in_order = [0, 0, 0, 3, 3, 3, 3, 3, 0, 3, 4, 4, 4, 4];
        let lengths = [(0, 3), (4, 3), (2, 3), (6, 3), (1, 3), (5, 3), (3, 4), (11, 4), (7, 4), (15, 4), (15, 4)];
        for _ in 0..5 * 65_536 {
            write(&mut bits, 10 << 1, 5);
            in_order.iter().for_each(|length| write(&mut bits, *length, 3));
            write(&mut bits, 1 | 1 << 1 | 9 << 4, 8);
            lengths.iter().for_each(|(code, count)| write(&mut bits, *code, *count));
        }
        let byte = |byte: &[u8]| byte.iter().rev().fold(0, |byte, bit| byte << 1 | (bit - b'0'));
        bits.as_bytes().chunks(8).map(byte).collect()
    }

    #[test]
    fn a_tiny_image_with_65536_prefix_code_groups_is_rejected() {
        for with_transforms in [false, true] {
            let bomb = webp(&[&samples::riff(b"VP8L", &image_with_65536_groups(with_transforms))]);
            let beginning = "this WebP of 4 x 4 pixels needs 1";
            assert_rejected(&bomb, RejectCode::TooManyPixels, beginning);
        }
    }

    #[test]
    fn lengths_beyond_the_file_and_nested_frames_are_rejected() {
        let mut endless = still();
        endless[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
        let _ = LocalImageProcessor::default().render(&endless);
        let nested = (0..50).fold(frame(16, &still()[12..]), |inner, _| frame(16, &inner));
        let rejection = rejection_of(&animation(16, &nested));
        assert_eq!(rejection.code, RejectCode::Damaged, "{}", rejection.message);
        assert!(rejection.message.contains("WebP"), "{}", rejection.message);
    }
}
