//! Face detection and embeddings.

use std::sync::Arc;

use async_trait::async_trait;
use sparks_domain::DetectedFace;
use tokio::sync::OnceCell;

use super::{DependencyError, Pixels};
use crate::{CpuPool, TaskPanicked};

/// Detects faces and computes their embeddings: the local engine, or a face service.
#[async_trait]
pub trait FaceAnalyzer: Send + Sync {
    /// Returns the name that events record.
    fn name(&self) -> &str;

    /// Returns the faces, in a stable order.
    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<DetectedFace>, AnalyzeError>;

    /// Returns whether each call costs money.
    fn is_paid(&self) -> bool {
        false
    }

    /// Checks that the analyzer answers.
    async fn check(&self) -> Result<(), AnalyzeError> {
        Ok(())
    }
}

/// Errors of a face analyzer.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzeError {
    /// The engine could not be loaded, or its service failed.
    #[error("face analyzer {0}")]
    Dependency(#[from] DependencyError),
    /// The service rejects the request for good; an operator must look.
    #[error("face analyzer rejected the request: {0}")]
    Refused(String),
    /// The engine panicked on this photo; a retry does not help.
    #[error("face analyzer panicked: {0}")]
    Panicked(#[from] TaskPanicked),
}

/// A face engine inside the binary: CPU only, synchronous, shared by all threads.
pub trait FaceEngine: Send + Sync + 'static {
    /// Returns the faces, in a stable order.
    fn analyze(&self, pixels: &Pixels) -> Vec<DetectedFace>;
}

/// Runs a [`FaceEngine`] on the CPU pool and loads it with the first photo, so that a process without photos to analyze does not
/// pay for it.
pub struct OnCpu<E> {
    name: String,
    load: Arc<dyn Fn() -> Result<E, String> + Send + Sync>,
    engine: OnceCell<Arc<E>>,
    cpu: CpuPool,
}

impl<E: FaceEngine> OnCpu<E> {
    /// Creates an analyzer that events record by this name.
    pub fn new(name: &str, load: impl Fn() -> Result<E, String> + Send + Sync + 'static, cpu: CpuPool) -> Self {
        Self { name: name.to_owned(), load: Arc::new(load), engine: OnceCell::new(), cpu }
    }

    async fn engine(&self) -> Result<Arc<E>, AnalyzeError> {
        let load = Arc::clone(&self.load);
        let loaded = || async {
            let engine = self.cpu.run(move || load()).await?;
            Ok(Arc::new(engine.map_err(DependencyError::Unavailable)?))
        };
        self.engine.get_or_try_init(loaded).await.cloned()
    }
}

#[async_trait]
impl<E: FaceEngine> FaceAnalyzer for OnCpu<E> {
    fn name(&self) -> &str {
        &self.name
    }

    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<DetectedFace>, AnalyzeError> {
        let engine = self.engine().await?;
        Ok(self.cpu.run(move || engine.analyze(&pixels)).await?)
    }
}

/// The analyzer of a worker with faces switched off: finds none.
pub struct NoFaces;

#[async_trait]
impl FaceAnalyzer for NoFaces {
    fn name(&self) -> &str {
        "off"
    }

    async fn analyze(&self, _: Arc<Pixels>) -> Result<Vec<DetectedFace>, AnalyzeError> {
        Ok(Vec::new())
    }
}
