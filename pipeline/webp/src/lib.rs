//! Lossy WebP encoder for photos: same size and PSNR as libwebp at method 4, for about two thirds of the CPU
//! (`examples/compare_libwebp.rs`).
//!
//! The output is a VP8 key frame (RFC 6386). Quality scale and rate-distortion optimisation follow libwebp, so that a setting
//! gives the expected file. The difference is in how the predictions of a block are tried: eight at a time, one per SIMD lane
//! (`simd`), with the bits counted only for those that can still win (`intra4`).
//!
//! Deliberately absent: alpha, lossless coding and metadata.

mod analysis;
mod bit_cost;
mod bool_encoder;
mod chroma;
mod context;
mod frame;
mod intra16;
mod intra4;
mod macroblock_encoder;
mod planes;
mod predict;
mod quantizer;
mod rd_score;
mod sharp_yuv;
mod simd;
mod source;
mod tables;
mod tokens;

pub use frame::{Settings, encode};

/// The zigzag scan order of a block's coefficients (RFC 6386, section 13).
const ZIGZAG: [usize; 16] = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];
/// The probability band of each coefficient in zigzag order.
const BANDS: [usize; 17] = [0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0];
