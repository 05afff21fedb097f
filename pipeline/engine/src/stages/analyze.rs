//! From pictures to faces.

use std::sync::Arc;

use sparks_domain::{SeenFace, Source, TakenAt, Variants};

use super::{look_up::KnownPhoto, outcome::Setback, render::RenderedPhoto};
use crate::{Pipeline, Pixels};

/// A photo whose faces are found, and nobody has said yet who they are.
#[derive(Debug)]
pub(super) struct AnalyzedPhoto {
    pub known: KnownPhoto,
    pub source: Source,
    pub dimensions: (u32, u32),
    pub taken_at: Option<TakenAt>,
    pub variants: Variants,
    pub analyzer: String,
    pub faces: Vec<SeenFace>,
    pixels: Arc<Pixels>,
}

impl AnalyzedPhoto {
    /// The pixels the faces were found in.
    pub fn pixels(&self) -> Arc<Pixels> {
        Arc::clone(&self.pixels)
    }
}

impl Pipeline {
    /// Looks for faces on the pixels of `large`.
    pub(super) async fn analyze(&self, rendered: RenderedPhoto) -> Result<AnalyzedPhoto, Setback> {
        let RenderedPhoto { known, source, developed, variants } = rendered;
        let pixels = Arc::new(developed.pixels);
        let faces = self.ports.analyzer.analyze(Arc::clone(&pixels)).await?;
        let analyzer = self.ports.analyzer.name().to_owned();
        let dimensions = (developed.width, developed.height);
        Ok(AnalyzedPhoto { known, source, dimensions, taken_at: developed.taken_at, variants, analyzer, faces, pixels })
    }
}
