//! How the worker is, for whoever asks over HTTP.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    consumer::Breaker,
    telemetry::{http::Health, metrics::Metrics},
};

/// Signs of life.
pub struct Vitals {
    metrics: Metrics,
    breaker: Breaker,
    stopping: AtomicBool,
    beat: Mutex<Instant>,
}

/// Longer than any step of the loop takes.
const SILENCE: Duration = Duration::from_secs(60);

impl Vitals {
    /// Alive and ready.
    pub fn new(metrics: Metrics, breaker: Breaker) -> Self {
        Self { metrics, breaker, stopping: AtomicBool::new(false), beat: Mutex::new(Instant::now()) }
    }

    /// The loop goes round, with so many slots in use.
    pub fn beat(&self, busy: usize, slots: usize) {
        *self.beat.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.metrics.set_slots(busy as u64, slots.saturating_sub(busy) as u64);
        self.metrics.set_breaker_open(self.breaker.down().is_some());
    }

    /// No more messages are taken.
    pub fn stop_receiving(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

impl Health for Vitals {
    fn ready(&self) -> Result<(), String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err("stopping".into());
        }
        self.breaker.down().map_or(Ok(()), Err)
    }

    fn alive(&self) -> Result<(), String> {
        let silent = self.beat.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        let stopping = self.stopping.load(Ordering::Relaxed);
        if stopping || silent < SILENCE { Ok(()) } else { Err(format!("no sign of life for {} s", silent.as_secs())) }
    }

    fn metrics(&self) -> String {
        self.metrics.encode()
    }
}
