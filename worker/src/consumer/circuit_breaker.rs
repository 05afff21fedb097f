//! Circuit breaker: stops receiving while a dependency is down, so that an outage does not turn the queue into dead letters.
//!
//! A missing permission is an outage, too, but no health check reveals it: a message needs more permissions than can be checked
//! without one. So after `access denied` nothing is received for a pause, then the next messages are the check, and each further
//! denial doubles the pause. A message that is denied counts no attempt.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use backon::{BackoffBuilder, ExponentialBuilder};
use sparks_engine::{Objects, Publisher, Store};
use tokio::time::timeout;

use crate::wiring::FaceBackends;

/// Knows whether the dependencies answer: open while one does not. Clones share the state.
#[derive(Clone)]
pub struct CircuitBreaker(Arc<Inner>);

struct Inner {
    objects: Arc<dyn Objects>,
    store: Arc<dyn Store>,
    publisher: Arc<dyn Publisher>,
    faces: FaceBackends,
    /// The outage, while open.
    outage: Mutex<Option<String>>,
    denial: Mutex<Option<Denial>>,
}

/// A missing permission.
struct Denial {
    reason: String,
    pause: Duration,
    until: Instant,
}

/// The timeout of a health check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after `access denied`: the first, and the longest.
const MIN_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(60);

impl CircuitBreaker {
    /// Creates a closed circuit breaker over these dependencies.
    pub fn new(
        objects: Arc<dyn Objects>,
        store: Arc<dyn Store>,
        publisher: Arc<dyn Publisher>,
        faces: FaceBackends,
    ) -> Self {
        let (outage, denial) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { objects, store, publisher, faces, outage, denial }))
    }

    /// Returns the outage that the last check found.
    pub fn outage(&self) -> Option<String> {
        self.lock_outage().clone()
    }

    /// Checks every dependency. Returns whether one is down.
    pub async fn is_open_after_check(&self) -> bool {
        // A denial may have been reported during the check.
        let found = self.check().await.err().or_else(|| self.active_denial());
        let had_denial = self.lock_denial().is_some();
        let mut outage = self.lock_outage();
        match (&*outage, &found) {
            (None, Some(reason)) => {
                tracing::error!(reason, "dependency unavailable: stopped receiving messages until it recovers")
            }
            (Some(_), None) if had_denial => tracing::info!("retrying after access denied: receiving messages"),
            (Some(_), None) => tracing::info!("dependencies recovered: receiving messages"),
            _ => {}
        }
        *outage = found;
        outage.is_some()
    }

    /// Reports that a permission which every message needs is missing: nothing is received for a pause.
    pub fn access_denied(&self, reason: &str) {
        let mut denial = self.lock_denial();
        let now = Instant::now();
        let pause = match &*denial {
            // Messages that were received before the pause are denied as well.
            Some(denial) if denial.until > now => return,
            Some(denial) => MAX_PAUSE.min(denial.pause * 2),
            None => MIN_PAUSE,
        };
        tracing::error!(reason, seconds = pause.as_secs(), "access denied: stopped receiving messages for a pause");
        *denial = Some(Denial { reason: reason.to_owned(), pause, until: now + pause });
        drop(denial);
        *self.lock_outage() = Some(reason.to_owned());
    }

    /// Reports that a message was processed, so that no permission is missing.
    pub fn access_granted(&self) {
        let mut denial = self.lock_denial();
        if denial.as_ref().is_some_and(|denial| denial.until <= Instant::now()) {
            *denial = None;
            tracing::info!("access granted: messages are processed again");
        }
    }

    /// Waits until no dependency is down. Checks soon at first, then every few seconds.
    pub async fn wait_until_closed(&self) {
        if self.outage().is_none() {
            return;
        }
        let mut delays = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(Duration::from_millis(200))
            .with_max_delay(Duration::from_secs(2))
            .without_max_times()
            .build();
        while self.is_open_after_check().await {
            tokio::time::sleep(delays.next().unwrap_or(CHECK_TIMEOUT)).await;
        }
    }

    async fn check(&self) -> Result<(), String> {
        if let Some(reason) = self.active_denial() {
            return Err(reason);
        }
        let timed_out = |what: &str| format!("timeout: {what} did not answer within {} s", CHECK_TIMEOUT.as_secs());
        let Inner { objects, store, publisher, faces, .. } = &*self.0;
        let objects = timeout(CHECK_TIMEOUT, objects.check()).await.map_err(|_| timed_out("the bucket"))?;
        objects.map_err(|error| error.to_string())?;
        let store = timeout(CHECK_TIMEOUT, store.check()).await.map_err(|_| timed_out("the store"))?;
        store.map_err(|error| error.to_string())?;
        let publisher = timeout(CHECK_TIMEOUT, publisher.check()).await.map_err(|_| timed_out("the publisher"))?;
        publisher.map_err(|error| error.to_string())?;
        let faces = timeout(CHECK_TIMEOUT, faces.check()).await.map_err(|_| timed_out("the face service"))?;
        faces.map_err(|error| error.to_string())
    }

    /// Returns the reason of the last denial while its pause lasts.
    fn active_denial(&self) -> Option<String> {
        self.lock_denial().as_ref().filter(|denial| denial.until > Instant::now()).map(|denial| denial.reason.clone())
    }

    fn lock_outage(&self) -> MutexGuard<'_, Option<String>> {
        self.0.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_denial(&self) -> MutexGuard<'_, Option<Denial>> {
        self.0.denial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
