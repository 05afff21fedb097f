//! Finding faces.

use std::sync::Arc;

use async_trait::async_trait;
use sparks_domain::SeenFace;
use tokio::sync::OnceCell;

use super::Pixels;
use crate::{Cpu, Crashed};

/// Finds the faces in a photo: an engine of our own, or a service.
#[async_trait]
pub trait FaceAnalyzer: Send + Sync {
    /// What events call it.
    fn name(&self) -> &str;

    /// The faces, in a stable order.
    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<SeenFace>, AnalyzeError>;

    /// Whether somebody pays for each look.
    fn is_paid(&self) -> bool {
        false
    }

    /// Whether it can be asked now.
    async fn check(&self) -> Result<(), AnalyzeError> {
        Ok(())
    }
}

/// Why nobody could look.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzeError {
    /// Trying later helps.
    #[error("the face analyzer is not available: {0}")]
    Unavailable(String),
    /// It answers, and has too much to do: waiting helps, however long it takes.
    #[error("the face analyzer has too much to do: {0}")]
    Busy(String),
    /// We may not: whoever grants permissions can help. Nobody's message is at fault.
    #[error("the face analyzer is closed to us: {0}")]
    Denied(String),
    /// It does not take what we ask, and never will: a human must look.
    #[error("the face analyzer refuses: {0}")]
    Refused(String),
    /// The engine gave up on this photo; trying again does not help.
    #[error("the face analyzer crashed: {0}")]
    Crashed(#[from] Crashed),
}

/// A face engine inside the binary: CPU only, synchronous, shared by all threads.
pub trait FaceEngine: Send + Sync + 'static {
    /// The faces, in a stable order.
    fn look(&self, pixels: &Pixels) -> Vec<SeenFace>;
}

/// A face engine run where it does not hold up anybody else, and loaded when the first photo wants it.
pub struct OnCpu<E> {
    name: String,
    load: Arc<dyn Fn() -> Result<E, String> + Send + Sync>,
    engine: OnceCell<Arc<E>>,
    cpu: Cpu,
}

impl<E: FaceEngine> OnCpu<E> {
    /// Runs the engine that events call by this name on these cores. Whoever has no photo to show pays nothing.
    pub fn new(name: &str, load: impl Fn() -> Result<E, String> + Send + Sync + 'static, cpu: Cpu) -> Self {
        Self { name: name.to_owned(), load: Arc::new(load), engine: OnceCell::new(), cpu }
    }

    async fn engine(&self) -> Result<Arc<E>, AnalyzeError> {
        let load = Arc::clone(&self.load);
        let loaded = || async { self.cpu.run(move || load()).await?.map(Arc::new).map_err(AnalyzeError::Unavailable) };
        self.engine.get_or_try_init(loaded).await.cloned()
    }
}

#[async_trait]
impl<E: FaceEngine> FaceAnalyzer for OnCpu<E> {
    fn name(&self) -> &str {
        &self.name
    }

    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<SeenFace>, AnalyzeError> {
        let engine = self.engine().await?;
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
