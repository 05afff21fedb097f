//! JPEG files: what they say about themselves, and their pictures.
//!
//! A photo is seldom wanted in the size it has. A block of 8 x 8 pixels that is to become 5 x 5 needs only the lowest 5 x 5 of
//! its frequencies, so [`decode`] makes a picture of any number of eighths of its size in less time and memory than the whole
//! one takes. It leaves the planes of the colours as they are stored: whoever shrinks them further has less to shrink.
//!
//! Decoders paint what they cannot read grey, or repeat what was before, and say nothing. Here a picture that is not all
//! there is refused.

mod block;
mod coefficients;
mod decoder;
mod error;
mod frame;
mod huffman;
mod plane;
mod progressive;
mod quantization;
mod scan;
mod segment;
mod sequential;
mod tables;
mod tally;
mod transform;
#[cfg(feature = "turbo")]
mod turbo;

pub use self::{
    decoder::{Colours, Picture, decode},
    error::Error,
    frame::{Frame, frame},
    plane::Plane,
    segment::{Segment, before_pixels, marker, scans, segments},
};
