//! Resampling of interleaved bytes.
//!
//! `fast_image_resize` is generic: whoever calls it compiles all of its kernels, for minutes. So nobody calls it but this
//! crate, which never changes.

use fast_image_resize::{
    FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer,
    images::{TypedImage, TypedImageRef},
    pixels::{U8, U8x2, U8x3, U8x4},
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
    let filter = match filter {
        Filter::Lanczos3 => FilterType::Lanczos3,
        Filter::Bilinear => FilterType::Bilinear,
    };
    let [left, top, width, height] = part;
    let options = ResizeOptions::new()
        .crop(left, top, width, height)
        .use_alpha(layout.alpha)
        .resize_alg(ResizeAlg::Convolution(filter));
    let mut resized = vec![0; new_size.0 as usize * new_size.1 as usize * layout.channels];
    // Each by its type: the untyped way compiles kernels of every kind of pixel there is.
    match layout.channels {
        1 => typed::<U8>(samples, size, &mut resized, new_size, &options),
        2 => typed::<U8x2>(samples, size, &mut resized, new_size, &options),
        3 => typed::<U8x3>(samples, size, &mut resized, new_size, &options),
        4 => typed::<U8x4>(samples, size, &mut resized, new_size, &options),
        other => Err(format!("there are no pixels of {other} channels")),
    }?;
    Ok(resized)
}

fn typed<P: PixelTrait>(
    samples: &[u8],
    (width, height): (u32, u32),
    resized: &mut [u8],
    (new_width, new_height): (u32, u32),
    options: &ResizeOptions,
) -> Result<(), String> {
    let source = TypedImageRef::<P>::from_buffer(width, height, samples).map_err(|error| error.to_string())?;
    let mut target = TypedImage::<P>::from_buffer(new_width, new_height, resized).map_err(|error| error.to_string())?;
    Resizer::new().resize_typed(&source, &mut target, options).map_err(|error| error.to_string())
}
