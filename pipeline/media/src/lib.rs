//! Image processing: decodes photos within limits, applies the EXIF orientation, resizes, converts to sRGB, and encodes WebP
//! variants and JPEG crops.
//!
//! An original passes through `format` (magic bytes), `header` (dimensions and metadata), `limits`, `decode`, `variant`,
//! `orientation`, `colour` and `encode`, in this order; [`LocalImageProcessor`] runs these steps. File names, I/O and clocks
//! are deliberately absent. Every step before `decode` reads the bytes in place, so a rejected file allocates nothing.

mod colour;
mod crop;
mod decode;
mod decoded_image;
mod encode;
mod exif;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod limits;
mod orientation;
mod planes;
mod processor;
mod raster;
#[cfg(test)]
mod samples;
mod srgb_image;
mod taken_at;
mod variant;

pub use crop::CropSpec;
pub use limits::Limits;
pub use processor::LocalImageProcessor;
pub use variant::{Fit, VariantSpec};

use sparks_domain::{RejectCode, Rejection};

fn reject(code: RejectCode, message: impl Into<String>) -> Rejection {
    Rejection { code, message: message.into() }
}
