//! Liveness and readiness of a worker.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    consumer::CircuitBreaker,
    telemetry::{http::Health, metrics::Metrics},
};

/// The state behind `/healthz` and `/readyz`.
pub struct WorkerHealth {
    metrics: Metrics,
    breaker: CircuitBreaker,
    is_stopping: AtomicBool,
    last_heartbeat: Mutex<Instant>,
}

/// The time without a heartbeat after which the worker counts as stuck. Longer than any step of the loop takes.
const STUCK_AFTER: Duration = Duration::from_secs(60);

impl WorkerHealth {
    /// Creates the state of a worker that is alive and ready.
    pub fn new(metrics: Metrics, breaker: CircuitBreaker) -> Self {
        Self { metrics, breaker, is_stopping: AtomicBool::new(false), last_heartbeat: Mutex::new(Instant::now()) }
    }

    /// Records a round of the receive loop with this many slots in use.
    pub fn heartbeat(&self, busy: usize, slots: usize) {
        *self.last_heartbeat.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.metrics.set_slots(busy as u64, slots.saturating_sub(busy) as u64);
        self.metrics.set_breaker_open(self.breaker.outage().is_some());
    }

    /// Records that no more messages are received.
    pub fn stop_receiving(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
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
