//! A photo's pixels as its file keeps them: every picture is printed from them.

use sparks_domain::Rejection;
use sparks_jpeg::{Colours, Plane};
use sparks_resize::Filter;

use crate::{
    planes::interleave,
    raster::{Model, Raster},
    variant::{Plan, resample},
};

/// The first frame of a file, and what its numbers mean.
pub(crate) struct Negative {
    pub(crate) film: Film,
    /// The ICC profile that came with it, unread. Never longer than metadata may be.
    pub(crate) profile: Option<Vec<u8>>,
}

pub(crate) enum Film {
    /// In the file's own size.
    Raster(Raster),
    /// Colour by colour, and perhaps smaller than the file says.
    Planes(sparks_jpeg::Picture),
}

impl Negative {
    pub(crate) fn model(&self) -> Model {
        match &self.film {
            Film::Raster(raster) => raster.model,
            Film::Planes(picture) => match picture.colours {
                Colours::Grey => Model::Grey,
                Colours::YCbCr | Colours::Rgb => Model::Rgb,
                Colours::Cmyk | Colours::Ycck => Model::Cmyk,
            },
        }
    }

    /// The part of the picture, in its size, as stored: still to be turned upright.
    pub(crate) fn print(&self, plan: &Plan) -> Result<Raster, Rejection> {
        match &self.film {
            Film::Raster(raster) => raster.print(plan),
            Film::Planes(picture) => {
                let planes = picture.planes.iter().map(|plane| fitted(plane, plan)).collect::<Result<_, _>>()?;
                let samples = interleave(picture.colours, planes);
                Ok(Raster { width: plan.width, height: plan.height, model: self.model(), samples })
            }
        }
    }
}

/// A colour with fewer samples than the others may have to be enlarged: smoothly, as it was made.
fn fitted(plane: &Plane, plan: &Plan) -> Result<Vec<u8>, Rejection> {
    let plan = plan.scaled(plane.scale);
    let filter = if plan.scale() > 1.0 { Filter::Bilinear } else { Filter::Lanczos3 };
    resample(&plane.samples, (plane.width as u32, plane.height as u32), Model::Grey, &plan, filter)
}
