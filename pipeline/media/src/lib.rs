//! Pixels: decode within limits, orient, resize, WebP, crops.
//!
//! An original goes through `format` (magic bytes), `header` (sizes and metadata), `limits`, `decode`, `variant`,
//! `orientation`, `colour` and `encode`, in this order; [`Lab`] tells the story. Deliberately absent: file names, I/O and
//! clocks. Everything before `decode` reads bytes in place, so a refused file costs no memory.

mod colour;
mod crop;
mod decode;
mod encode;
mod exif;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod lab;
mod limits;
mod negative;
mod orientation;
mod picture;
mod planes;
mod raster;
#[cfg(test)]
mod samples;
mod taken_at;
mod variant;

pub use crop::CropSpec;
pub use lab::Lab;
pub use limits::Limits;
pub use variant::{Fit, VariantSpec};

use sparks_domain::{RejectCode, Rejection};

fn reject(code: RejectCode, message: impl Into<String>) -> Rejection {
    Rejection { code, message: message.into() }
}
