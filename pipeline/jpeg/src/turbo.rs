//! Decoding by libjpeg-turbo, behind the feature `turbo`.
//!
//! The own decoder handles what libjpeg-turbo rejects or only warns about (CMYK, unusual sampling, damage), progressive images, of
//! which libjpeg-turbo keeps all coefficients, and scales of one half or less, at which libjpeg-turbo is fast but blurred.

use turbojpeg::{Colorspace, Decompressor, ScalingFactor, YuvImage, yuv_pixels_len};

use crate::{ColourSpace, DecodedJpeg, FrameHeader, Plane, idct::SIDE};

/// Decodes like [`crate::decode`], or returns `None` where the own decoder must be used.
pub(crate) fn decode(file: &[u8], frame: &FrameHeader, scale_num: usize) -> Option<DecodedJpeg> {
    if frame.progressive || scale_num <= SIDE / 2 {
        return None;
    }
    let mut decompressor = Decompressor::new().ok()?;
    let header = decompressor.read_header(file).ok()?;
    let colour_space = match header.colorspace {
        Colorspace::Gray => ColourSpace::Grey,
        Colorspace::YCbCr => ColourSpace::YCbCr,
        _ => return None,
    };
    let factor = ScalingFactor::new(scale_num, SIDE);
    decompressor.set_scaling_factor(factor).ok()?;
    let (width, height) = (factor.scale(header.width), factor.scale(header.height));
    let mut pixels = vec![0; yuv_pixels_len(width, 1, height, header.subsamp).ok()?];
    let image = YuvImage { pixels: pixels.as_mut_slice(), width, align: 1, height, subsamp: header.subsamp };
    decompressor.decompress_to_yuv(file, image).ok()?;

    // The planes follow each other, each padded to whole MCUs.
    let (h, v) = header.subsamp.size();
    let (width, height) = (width.next_multiple_of(h), height.next_multiple_of(v));
    let mut planes = Vec::new();
    for component in frame.components() {
        let is_first = planes.is_empty();
        let (width, height) = if is_first { (width, height) } else { (width / h, height / v) };
        let after = pixels.split_off(width * height);
        let mut plane = Plane::new(frame, component, scale_num);
        plane.fill(std::mem::replace(&mut pixels, after), width, height);
        planes.push(plane);
    }
    Some(DecodedJpeg { colour_space, planes })
}

impl Plane {
    /// Takes the samples of a possibly larger plane and crops them.
    fn fill(&mut self, samples: Vec<u8>, width: usize, height: usize) {
        (self.width, self.height) = (self.width.min(width), self.height.min(height));
        self.samples = samples;
        if self.width < width {
            for row in 1..self.height {
                self.samples.copy_within(row * width..row * width + self.width, row * self.width);
            }
        }
        self.samples.truncate(self.width * self.height);
    }
}
