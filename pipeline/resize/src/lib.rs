//! Resampling of interleaved 8-bit pixels.
//!
//! `fast_image_resize` is generic: every crate that calls it compiles all of its kernels, for minutes. Only this crate, which
//! seldom changes, calls it.

use fast_image_resize::{
    FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer,
    images::{TypedImage, TypedImageRef},
    pixels::{U8, U8x3, U8x4},
};

/// The resampling filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Sharp, for images that are displayed.
    Lanczos3,
    /// Fast, for images that are analyzed, and smooth for enlarging.
    Bilinear,
}

/// The channels of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Number of channels, 1 to 4.
    pub channels: usize,
    /// Whether the last of 2 or 4 channels is alpha, by which the others are premultiplied.
    pub has_alpha: bool,
}

/// Resamples the source rectangle (left, top, width, height) to another size.
pub fn resample(
    samples: &[u8],
    size: (u32, u32),
    layout: Layout,
    source: [f64; 4],
    new_size: (u32, u32),
    filter: Filter,
) -> Result<Vec<u8>, String> {
    let filter_type = match filter {
        Filter::Lanczos3 => FilterType::Lanczos3,
        Filter::Bilinear => FilterType::Bilinear,
    };
    let [left, top, width, height] = source;
    let options = ResizeOptions::new()
        .crop(left, top, width, height)
        .use_alpha(layout.has_alpha)
        .resize_alg(ResizeAlg::Convolution(filter_type));
    if layout.channels == 2 {
        // Grey with alpha is rare: it takes the kernels of four channels, whose own would add a quarter to the compile time.
        let widened: Vec<u8> = samples.chunks_exact(2).flat_map(|pixel| [pixel[0], 0, 0, pixel[1]]).collect();
        let layout = Layout { channels: 4, ..layout };
        let resized = resample(&widened, size, layout, source, new_size, filter)?;
        return Ok(resized.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[3]]).collect());
    }
    let mut resized = vec![0; new_size.0 as usize * new_size.1 as usize * layout.channels];
    // By type: the untyped API would compile the kernels of all pixel types.
    match layout.channels {
        1 => resize_typed_pixels::<U8>(samples, size, &mut resized, new_size, &options),
        3 => resize_typed_pixels::<U8x3>(samples, size, &mut resized, new_size, &options),
        4 => resize_typed_pixels::<U8x4>(samples, size, &mut resized, new_size, &options),
        other => Err(format!("unsupported number of channels: {other}")),
    }?;
    Ok(resized)
}

fn resize_typed_pixels<P: PixelTrait>(
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
