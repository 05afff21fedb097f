//! Lossy WebP for photos: as small and as like the original as libwebp's at method 4, for about two thirds of the CPU
//! (`examples/beside_libwebp.rs`).
//!
//! The format is VP8's key frame (RFC 6386). What a quality means, and how size is weighed against likeness, follow
//! libwebp, so that a setting gives the file that people expect. The difference is in how the many guesses at a block
//! are tried: eight at a time, each in its own lane of a vector (`lanes`), with bits counted only for those that can
//! still win (`parts`).
//!
//! Deliberately absent: alpha, lossless coding and metadata.

mod analysis;
mod bits;
mod colour;
mod context;
mod cost;
mod decide;
mod frame;
mod lanes;
mod macroblock;
mod parts;
mod predict;
mod price;
mod quantizer;
mod sharpen;
mod standard;
mod tokens;
mod whole;
mod yuv;

pub use frame::{Settings, encode};

/// Where the n-th coefficient of a block is.
const ZIGZAG: [usize; 16] = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];
/// Which statistics the n-th coefficient shares.
const BANDS: [usize; 17] = [0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0];
