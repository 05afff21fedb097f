//! From pictures to faces.

use std::sync::Arc;

use sparks_domain::{Email, ImageId, PhotoState, Source, TakenAt, Variants};

use super::{look_up::KnownPhoto, outcome::Setback, render::RenderedPhoto};
use crate::{Looked, Pipeline};

/// A picture whose faces are found, and nobody has said yet who they are.
#[derive(Debug)]
pub(super) struct Case {
    pub image: ImageId,
    pub state: Option<PhotoState>,
    pub about: About,
    pub analyzer: String,
    pub looked: Looked,
}

/// What the picture is.
#[derive(Debug)]
pub(super) enum About {
    Photo { uploader: Email, source: Source, dimensions: (u32, u32), taken_at: Option<TakenAt>, variants: Variants },
    Profile { email: Email, source: Source },
}

impl Pipeline {
    /// Looks for faces on the pixels of `large`.
    pub(super) async fn analyze(&self, rendered: RenderedPhoto) -> Result<Case, Setback> {
        let RenderedPhoto { known, source, dimensions, taken_at, variants, pixels } = rendered;
        let KnownPhoto { photo, uploader, state, .. } = known;
        let faces = self.ports.analyzer.analyze(Arc::clone(&pixels)).await?;
        let analyzer = self.ports.analyzer.name().to_owned();
        let about = About::Photo { uploader, source, dimensions, taken_at, variants };
        Ok(Case { image: photo.image, state, about, analyzer, looked: Looked::new(faces, pixels) })
    }
}
