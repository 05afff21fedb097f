//! libjpeg-turbo, for what it does as well as our own decoder.
//!
//! Whatever it refuses or only warns about is left to ours: inks, odd samplings, damage. So are pictures of several passes, of
//! which it keeps all frequencies and ours only those that are needed; and pictures in half their size or less, which it blurs
//! to be quicker.

use turbojpeg::{Colorspace, Decompressor, ScalingFactor, YuvImage, yuv_pixels_len};

use crate::{Frame, Picture, Plane, decoder::Colours, transform::SIDE};

/// As [`crate::decode`] would have it, or nothing.
pub(crate) fn decode(file: &[u8], frame: &Frame, eighths: usize) -> Option<Picture> {
    if frame.progressive || eighths <= SIDE / 2 {
        return None;
    }
    let mut decompressor = Decompressor::new().ok()?;
    let header = decompressor.read_header(file).ok()?;
    let colours = match header.colorspace {
        Colorspace::Gray => Colours::Grey,
        Colorspace::YCbCr => Colours::YCbCr,
        _ => return None,
    };
    let factor = ScalingFactor::new(eighths, SIDE);
    decompressor.set_scaling_factor(factor).ok()?;
    let (width, height) = (factor.scale(header.width), factor.scale(header.height));
    let mut pixels = vec![0; yuv_pixels_len(width, 1, height, header.subsamp).ok()?];
    let image = YuvImage { pixels: pixels.as_mut_slice(), width, align: 1, height, subsamp: header.subsamp };
    decompressor.decompress_to_yuv(file, image).ok()?;

    // All planes one after the other, each to whole units.
    let (across, down) = header.subsamp.size();
    let (width, height) = (width.next_multiple_of(across), height.next_multiple_of(down));
    let mut planes = Vec::new();
    for component in frame.components() {
        let is_first = planes.is_empty();
        let (width, height) = if is_first { (width, height) } else { (width / across, height / down) };
        let after = pixels.split_off(width * height);
        let mut plane = Plane::of_frame(frame, component, eighths);
        plane.take(std::mem::replace(&mut pixels, after), width, height);
        planes.push(plane);
    }
    Some(Picture { colours, planes })
}

impl Plane {
    /// Puts down samples of a plane that may be larger.
    fn take(&mut self, samples: Vec<u8>, width: usize, height: usize) {
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
