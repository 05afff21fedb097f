//! The decoded pixels of a photo as its file stores them; every variant is resampled from them.

use sparks_domain::Rejection;
use sparks_jpeg::{ColourSpace, Plane};
use sparks_resize::Filter;

use crate::{
    planes::interleave,
    raster::{ColourModel, Raster},
    variant::{ResizePlan, resample},
};

/// The first frame of a file, with its colour profile.
pub(crate) struct DecodedImage {
    pub(crate) pixels: PixelData,
    /// The embedded ICC profile, not yet parsed. At most `max_metadata_bytes` long.
    pub(crate) profile: Option<Vec<u8>>,
}

pub(crate) enum PixelData {
    /// Interleaved samples in the file's full resolution.
    Raster(Raster),
    /// One plane per JPEG component, possibly at a reduced resolution (scaled IDCT).
    Planes(sparks_jpeg::DecodedJpeg),
}

impl DecodedImage {
    pub(crate) fn model(&self) -> ColourModel {
        match &self.pixels {
            PixelData::Raster(raster) => raster.model,
            PixelData::Planes(jpeg) => match jpeg.colour_space {
                ColourSpace::Grey => ColourModel::Grey,
                ColourSpace::YCbCr | ColourSpace::Rgb => ColourModel::Rgb,
                ColourSpace::Cmyk | ColourSpace::Ycck => ColourModel::Cmyk,
            },
        }
    }

    /// Resamples the plan's source rectangle to the plan's size, in stored orientation.
    pub(crate) fn resample(&self, plan: &ResizePlan) -> Result<Raster, Rejection> {
        match &self.pixels {
            PixelData::Raster(raster) => raster.resample(plan),
            PixelData::Planes(jpeg) => {
                let planes = jpeg.planes.iter().map(|plane| resample_plane(plane, plan)).collect::<Result<_, _>>()?;
                let samples = interleave(jpeg.colour_space, planes);
                Ok(Raster { width: plan.width, height: plan.height, model: self.model(), samples })
            }
        }
    }
}

/// Resamples one plane. A subsampled chroma plane may have to be enlarged: bilinear is smooth enough, Lanczos would ring.
fn resample_plane(plane: &Plane, plan: &ResizePlan) -> Result<Vec<u8>, Rejection> {
    let plan = plan.scaled(plane.scale);
    let filter = if plan.scale() > 1.0 { Filter::Bilinear } else { Filter::Lanczos3 };
    resample(&plane.samples, (plane.width as u32, plane.height as u32), ColourModel::Grey, &plan, filter)
}
