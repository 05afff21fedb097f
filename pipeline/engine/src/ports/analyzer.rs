//! Finding faces.

use std::sync::Arc;

use async_trait::async_trait;
use sparks_domain::SeenFace;

use super::Pixels;
use crate::{Cpu, Crashed};

/// Finds the faces in a photo: an engine of our own, or a service.
#[async_trait]
pub trait FaceAnalyzer: Send + Sync {
    /// What events call it.
    fn name(&self) -> &str;

    /// The faces, in a stable order.
    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<SeenFace>, AnalyzeError>;
}

/// Why nobody could look.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzeError {
    /// Trying later helps.
    #[error("the face analyzer is not available: {0}")]
    Unavailable(String),
    /// The engine gave up on this photo; trying again does not help.
    #[error("the face analyzer crashed: {0}")]
    Crashed(#[from] Crashed),
}

/// A face engine inside the binary: CPU only, synchronous, shared by all threads.
pub trait FaceEngine: Send + Sync + 'static {
    /// What events call it.
    fn name(&self) -> &str;

    /// The faces, in a stable order.
    fn look(&self, pixels: &Pixels) -> Vec<SeenFace>;
}

/// A face engine run where it does not hold up anybody else.
pub struct OnCpu<E> {
    engine: Arc<E>,
    cpu: Cpu,
}

impl<E: FaceEngine> OnCpu<E> {
    /// Runs the engine on these cores.
    pub fn new(engine: E, cpu: Cpu) -> Self {
        Self { engine: Arc::new(engine), cpu }
    }
}

#[async_trait]
impl<E: FaceEngine> FaceAnalyzer for OnCpu<E> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<SeenFace>, AnalyzeError> {
        let engine = Arc::clone(&self.engine);
        Ok(self.cpu.run(move || engine.look(&pixels)).await?)
    }
}

/// Nobody looks for faces.
pub struct NoFaces;

#[async_trait]
impl FaceAnalyzer for NoFaces {
    fn name(&self) -> &str {
        "off"
    }

    async fn analyze(&self, _: Arc<Pixels>) -> Result<Vec<SeenFace>, AnalyzeError> {
        Ok(Vec::new())
    }
}
