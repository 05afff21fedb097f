//! PNGs of every colour type, bit depth, filter and interlacing, encoded here by the specification.

use sparks_domain::RejectCode;
use sparks_engine::{ImageError, ImageProcessor, Pixels};
use sparks_media::LocalImageProcessor;

const WIDTH: usize = 13;
const HEIGHT: usize = 11;
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The Adam7 passes: first column and row, and the distances of columns and rows.
const PASSES: [[usize; 4]; 7] =
    [[0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]];

/// A PNG format.
#[derive(Debug, Clone, Copy)]
struct PngFormat {
    colour_type: u8,
    depth: u32,
    interlaced: bool,
    /// The filter type of all rows, 0 to 4.
    filter: u8,
}

impl PngFormat {
    fn all() -> impl Iterator<Item = Self> {
        let colours: [(u8, &[u32]); 5] =
            [(0, &[1, 2, 4, 8, 16]), (2, &[8, 16]), (3, &[1, 2, 4, 8]), (4, &[8, 16]), (6, &[8, 16])];
        let of_colours = |(colours, depths): (u8, &'static [u32])| {
            let more = move |depth| {
                [false, true].into_iter().flat_map(move |interlaced| {
                    (0..5).map(move |filter| Self { colour_type: colours, depth, interlaced, filter })
                })
            };
            depths.iter().copied().flat_map(more)
        };
        colours.into_iter().flat_map(of_colours)
    }

    fn channels(self) -> usize {
        match self.colour_type {
            0 | 3 => 1,
            4 => 2,
            2 => 3,
            _ => 4,
        }
    }

    fn max_sample(self) -> u32 {
        (1 << self.depth) - 1
    }

    /// Returns a sample of a pixel as it is stored.
    fn sample(self, x: usize, y: usize, channel: usize) -> u32 {
        let number = (x * 7919 + y * 104_729 + channel * 1_299_709) as u32;
        (number.wrapping_mul(2_654_435_761) >> 7) & self.max_sample()
    }

    /// Returns a colour of the palette.
    fn colour(entry: u32) -> [u8; 3] {
        [3, 5, 7].map(|factor| (entry * factor * 11 % 256) as u8)
    }

    /// Returns the pixel on a white background, in eight bits.
    fn pixel(self, x: usize, y: usize) -> [u8; 3] {
        let most = self.max_sample();
        let eight = |channel| ((self.sample(x, y, channel) * 255 * 2 + most) / (most * 2)) as u8;
        let (colours, alpha) = match self.colour_type {
            0 => ([eight(0); 3], 255),
            2 => ([0, 1, 2].map(eight), 255),
            3 => (Self::colour(self.sample(x, y, 0)), 255),
            4 => ([eight(0); 3], eight(1)),
            _ => ([0, 1, 2].map(eight), eight(3)),
        };
        let alpha = u32::from(alpha);
        colours.map(|colour| ((u32::from(colour) * alpha + 255 * (255 - alpha) + 127) / 255) as u8)
    }

    fn row(self, xs: &[usize], y: usize) -> Vec<u8> {
        let samples = xs.iter().flat_map(|x| (0..self.channels()).map(|channel| self.sample(*x, y, channel)));
        let bits: String = samples.map(|sample| format!("{sample:0width$b}", width = self.depth as usize)).collect();
        let byte = |bits: &[u8]| bits.iter().fold(0, |byte, bit| byte << 1 | (bit - b'0')) << (8 - bits.len());
        bits.as_bytes().chunks(8).map(byte).collect()
    }

    /// Returns the filtered rows of a pass, each after its filter type.
    fn rows(self, [left, top, across, down]: [usize; 4]) -> Vec<u8> {
        let xs: Vec<usize> = (left..WIDTH).step_by(across).collect();
        if xs.is_empty() {
            return Vec::new();
        }
        let step = (self.channels() * self.depth as usize / 8).max(1);
        let mut before = vec![0; self.row(&xs, 0).len()];
        let mut rows = Vec::new();
        for y in (top..HEIGHT).step_by(down) {
            let row = self.row(&xs, y);
            rows.push(self.filter);
            for at in 0..row.len() {
                let [left, corner] = [&row, &before].map(|row| at.checked_sub(step).map_or(0, |at| row[at]));
                let predicted = match self.filter {
                    0 => 0,
                    1 => left,
                    2 => before[at],
                    3 => ((u16::from(left) + u16::from(before[at])) / 2) as u8,
                    _ => paeth(left, before[at], corner),
                };
                rows.push(row[at].wrapping_sub(predicted));
            }
            before = row;
        }
        rows
    }

    fn header(self) -> Vec<u8> {
        let size = [WIDTH, HEIGHT].map(|side| (side as u32).to_be_bytes()).concat();
        [&size[..], &[self.depth as u8, self.colour_type, 0, 0, self.interlaced.into()]].concat()
    }

    fn chunks(self) -> Vec<(&'static [u8; 4], Vec<u8>)> {
        let palette = (0..=self.max_sample()).take(256).flat_map(Self::colour).collect();
        let passes = if self.interlaced { &PASSES[..] } else { &[[0, 0, 1, 1]] };
        let pixels = passes.iter().flat_map(|pass| self.rows(*pass)).collect::<Vec<_>>();
        let mut chunks = vec![(b"IHDR", self.header()), (b"IDAT", zlib(&pixels)), (b"IEND", Vec::new())];
        if self.colour_type == 3 {
            chunks.insert(1, (b"PLTE", palette));
        }
        chunks
    }

    fn file(self) -> Vec<u8> {
        file(&self.chunks())
    }
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i16::from);
    let distance = |to: i16| (a + b - c - to).abs();
    if distance(a) <= distance(b) && distance(a) <= distance(c) {
        left
    } else if distance(b) <= distance(c) {
        above
    } else {
        corner
    }
}

/// Returns a zlib stream with one stored (uncompressed) block.
fn zlib(bytes: &[u8]) -> Vec<u8> {
    let (a, b) = bytes.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (a + b) % 65_521)
    });
    let length = u16::try_from(bytes.len()).unwrap();
    [&[0x78, 1, 1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), bytes, &(b << 16 | a).to_be_bytes()].concat()
}

fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let chunk = [name, content].concat();
    let crc = !chunk.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 })
    });
    [&(content.len() as u32).to_be_bytes()[..], &chunk, &crc.to_be_bytes()].concat()
}

fn file(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let chunks: Vec<u8> = chunks.iter().flat_map(|(name, content)| chunk(name, content)).collect();
    [SIGNATURE, &chunks].concat()
}

#[test]
fn every_png_format_is_decoded_to_the_encoded_pixels() {
    let mut formats = 0;
    for format in PngFormat::all() {
        let Pixels { width, height, rgb } = LocalImageProcessor::default().render(&format.file()).unwrap().pixels;
        assert_eq!((width as usize, height as usize), (WIDTH, HEIGHT), "{format:?}");
        for (at, pixel) in rgb.chunks_exact(3).enumerate() {
            assert_eq!(pixel, format.pixel(at % WIDTH, at / WIDTH), "{format:?}, pixel {at}");
        }
        formats += 1;
    }
    assert_eq!(formats, 15 * 2 * 5);
}

#[test]
fn broken_pngs_are_rejected_with_a_reason() {
    let format = PngFormat { colour_type: 2, depth: 8, interlaced: false, filter: 4 };
    let good = format.file();
    let with = |at: usize, byte: u8| {
        let mut file = good.clone();
        file[at] = byte;
        file
    };
    let header = |place: usize, byte: u8| {
        let mut chunks = format.chunks();
        chunks[0].1[place] = byte;
        file(&chunks)
    };
    let without = |name: &[u8; 4]| {
        let chunks: Vec<_> = format.chunks().into_iter().filter(|(other, _)| *other != name).collect();
        file(&chunks)
    };
    let pixels = good.windows(4).position(|name| name == b"IDAT").unwrap();
    let newlines = [&good[..4], &good[5..]].concat();
    let broken = [
        ("signature", with(0, 0)),
        ("converted newline", newlines),
        ("checksum of the header", with(8 + 8 + 13, good[8 + 8 + 13] ^ 1)),
        ("width 0", [&good[..16], &[0; 4], &good[20..]].concat()),
        ("bit depth 0", header(8, 0)),
        ("bit depth 3", header(8, 3)),
        ("bit depth 99", header(8, 99)),
        ("colour type 1", header(9, 1)),
        ("colour type 9", header(9, 9)),
        ("no pixels", without(b"IDAT")),
        ("no header", without(b"IHDR")),
        ("checksum of the pixels", with(pixels + 8, good[pixels + 8] ^ 0xff)),
        ("truncated", good[..good.len() / 2].to_vec()),
        (
            "no palette",
            file(&[(b"IHDR", PngFormat { colour_type: 3, ..format }.header()), (b"IDAT", zlib(&[0; 14 * 11]))]),
        ),
    ];
    for (defect, file) in broken {
        let Err(ImageError::Rejected(rejection)) = LocalImageProcessor::default().render(&file) else {
            panic!("{defect}: accepted")
        };
        println!("{defect}: {}", rejection.message);
        let is_known = matches!(rejection.code, RejectCode::Damaged | RejectCode::UnsupportedFormat);
        assert!(is_known && rejection.message.split_whitespace().count() > 2, "{defect}: {rejection:?}");
    }
}
