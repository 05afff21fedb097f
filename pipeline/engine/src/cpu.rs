//! The cores: how heavy work runs beside the asynchronous rest.

use std::sync::Arc;

use tokio::{sync::Semaphore, task::spawn_blocking};

/// A bounded number of cores. Work on them holds up nothing else, and its panic stays its own.
#[derive(Clone)]
pub struct Cpu(Arc<Semaphore>);

/// Work that panicked: a fault of ours that its input set off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Crashed(String);

impl Cpu {
    /// This many cores, at least one.
    pub fn new(cores: usize) -> Self {
        Self(Arc::new(Semaphore::new(cores.max(1))))
    }

    /// Runs the work on one of the cores, when one is free.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Crashed> {
        let core = Arc::clone(&self.0).acquire_owned().await;
        let work = spawn_blocking(move || {
            let _held = core;
            work()
        });
        work.await.map_err(|failed| Crashed(failed.try_into_panic().map_or_else(|e| e.to_string(), words)))
    }
}

fn words(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic without words".into())
}
