//! Resampling of interleaved bytes.
//!
//! `fast_image_resize` is generic: whoever calls it compiles all of its kernels, for minutes. So nobody calls it but this
//! crate, which never changes.

use fast_image_resize::{
    FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer,
    images::{Image, ImageRef},
};

/// How new pixels are weighed from old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Sharp, for looking at.
    Lanczos3,
    /// Quick, for measuring.
    Bilinear,
}

/// What the numbers of a pixel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// 1 to 4.
    pub channels: usize,
    /// Whether the last of 2 or 4 is alpha, by which the others are weighed.
    pub alpha: bool,
}

/// The part of a picture (left, top, width, height) in another size. Says why not.
pub fn resample(
    samples: &[u8],
    size: (u32, u32),
    layout: Layout,
    part: [f64; 4],
    new_size: (u32, u32),
    filter: Filter,
) -> Result<Vec<u8>, String> {
    let kind = match layout.channels {
        1 => PixelType::U8,
        2 => PixelType::U8x2,
        3 => PixelType::U8x3,
        4 => PixelType::U8x4,
        other => return Err(format!("there are no pixels of {other} channels")),
    };
    let filter = match filter {
        Filter::Lanczos3 => FilterType::Lanczos3,
        Filter::Bilinear => FilterType::Bilinear,
    };
    let source = ImageRef::new(size.0, size.1, samples, kind).map_err(|error| error.to_string())?;
    let mut target = Image::new(new_size.0, new_size.1, kind);
    let [left, top, width, height] = part;
    let options = ResizeOptions::new()
        .crop(left, top, width, height)
        .use_alpha(layout.alpha)
        .resize_alg(ResizeAlg::Convolution(filter));
    Resizer::new().resize(&source, &mut target, &options).map_err(|error| error.to_string())?;
    Ok(target.into_vec())
}
