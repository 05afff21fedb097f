//! JPEG decoder (ITU-T T.81: baseline, extended sequential and progressive, Huffman-coded, 8 bits per sample).
//!
//! Variants are smaller than most photos. A block of 8 x 8 samples that becomes 5 x 5 needs only its lowest 5 x 5 DCT
//! coefficients (scaled IDCT), so [`decode`] produces any number of eighths of the full size with less time and memory. Planes
//! keep their chroma subsampling, so that a following resize has less to do.
//!
//! Other decoders fill unreadable blocks with grey or repeat the previous one without an error. This one rejects incomplete files.

mod block;
mod coefficients;
mod completeness;
mod decoder;
mod error;
mod frame;
mod huffman;
mod idct;
mod plane;
mod progressive;
mod quantization;
mod scan;
mod segment;
mod sequential;
mod tables;
#[cfg(feature = "turbo")]
mod turbo;

pub use self::{
    decoder::{ColourSpace, DecodedJpeg, decode},
    error::Error,
    frame::{FrameHeader, read_frame_header},
    plane::Plane,
    segment::{Segment, count_scans, header_segments, marker, segments},
};
