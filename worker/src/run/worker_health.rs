//! Liveness and readiness of a worker.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use sparks_engine::{CircuitBreaker, LoopObserver, Queue};

use crate::telemetry::{http::Health, metrics::Metrics};

/// The state behind `/healthz` and `/readyz`.
pub struct WorkerHealth {
    metrics: Metrics,
    breaker: CircuitBreaker,
    /// The queue, if the worker stops when it is empty.
    drained: Option<Arc<dyn Queue>>,
    is_stopping: AtomicBool,
    last_heartbeat: Mutex<Instant>,
}

/// The time without a heartbeat after which the worker counts as stuck. Longer than any step of the loop takes.
const STUCK_AFTER: Duration = Duration::from_secs(60);

impl WorkerHealth {
    /// Creates the state of a worker that is alive and ready. With `drained` it stops when that queue is empty.
    pub fn new(metrics: Metrics, breaker: CircuitBreaker, drained: Option<Arc<dyn Queue>>) -> Self {
        let (is_stopping, last_heartbeat) = (AtomicBool::new(false), Mutex::new(Instant::now()));
        Self { metrics, breaker, drained, is_stopping, last_heartbeat }
    }
}

#[async_trait]
impl LoopObserver for WorkerHealth {
    fn heartbeat(&self) {
        *self.last_heartbeat.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.metrics.set_breaker_open(self.breaker.outage().is_some());
    }

    fn receiving_stopped(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Returns whether no message is waiting, in flight or delayed, in any worker.
    async fn is_done(&self) -> bool {
        let Some(queue) = &self.drained else { return false };
        queue.depth().await.is_ok_and(|depth| depth.waiting + depth.leased + depth.delayed == 0)
    }
}

impl Health for WorkerHealth {
    fn ready(&self) -> Result<(), String> {
        if self.is_stopping.load(Ordering::Relaxed) {
            return Err("stopping".into());
        }
        self.breaker.outage().map_or(Ok(()), Err)
    }

    fn alive(&self) -> Result<(), String> {
        let since = self.last_heartbeat.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        let is_stopping = self.is_stopping.load(Ordering::Relaxed);
        if is_stopping || since < STUCK_AFTER {
            Ok(())
        } else {
            Err(format!("no heartbeat of the receive loop for {} s", since.as_secs()))
        }
    }

    fn metrics(&self) -> String {
        self.metrics.encode()
    }
}
