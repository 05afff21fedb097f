//! Circuit breaker: stops receiving while a dependency is down, so that an outage does not turn the queue into dead letters.
//!
//! A missing permission is an outage, too, but no health check reveals it: a message needs more permissions than can be checked
//! without one. So after `access denied` nothing is received for a pause, then the next messages are the check, and each further
//! denial doubles the pause. The same holds for an event that this version cannot read. Such a message counts no attempt.

use std::{
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, timeout};

use crate::{Cause, Pipeline, Ports};

/// Knows whether the dependencies answer: open while one does not. Clones share the state.
#[derive(Clone)]
pub struct CircuitBreaker(Arc<Inner>);

struct Inner {
    dependencies: Ports,
    /// Whether anything is published.
    has_notifications: bool,
    /// The outage, while open.
    outage: Mutex<Option<String>>,
    pause: Mutex<Option<Pause>>,
}

/// A pause, because of what no health check reveals.
struct Pause {
    cause: Cause,
    reason: String,
    length: Duration,
    until: Instant,
}

/// The timeout of a health check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The first pause, and the longest.
const MIN_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(60);

impl CircuitBreaker {
    /// Creates a closed circuit breaker over the dependencies of this pipeline.
    pub fn new(pipeline: &Pipeline) -> Self {
        let publish = pipeline.config.publish;
        Self(Arc::new(Inner {
            dependencies: pipeline.ports.clone(),
            has_notifications: publish.thumbnails || publish.events,
            outage: Mutex::default(),
            pause: Mutex::default(),
        }))
    }

    /// Returns the outage that the last check found.
    pub fn outage(&self) -> Option<String> {
        self.lock_outage().clone()
    }

    /// Checks every dependency. Returns whether one is down.
    pub async fn is_open_after_check(&self) -> bool {
        // A pause may have begun during the check.
        let found = self.check().await.err().or_else(|| self.active_pause());
        let paused_for = self.lock_pause().as_ref().map(|pause| pause.cause);
        let mut outage = self.lock_outage();
        match (&*outage, &found) {
            (None, Some(reason)) => {
                tracing::error!(reason, "dependency unavailable: stopped receiving messages until it recovers")
            }
            (Some(_), None) if paused_for == Some(Cause::AccessDenied) => {
                tracing::info!("retrying after access denied: receiving messages");
            }
            (Some(_), None) => tracing::info!("dependencies recovered: receiving messages"),
            _ => {}
        }
        *outage = found;
        outage.is_some()
    }

    /// Reports what concerns every message and no health check reveals, such as a missing permission: nothing is received for a
    /// pause.
    pub fn pause(&self, cause: Cause, reason: &str) {
        let mut pause = self.lock_pause();
        let now = Instant::now();
        let length = match &*pause {
            // Messages that were received before the pause fail as well.
            Some(pause) if pause.until > now => return,
            Some(pause) => MAX_PAUSE.min(pause.length * 2),
            None => MIN_PAUSE,
        };
        let seconds = length.as_secs();
        match cause {
            Cause::UnreadableLog => {
                tracing::error!(reason, seconds, "event log unreadable: stopped receiving messages for a pause");
            }
            _ => tracing::error!(reason, seconds, "access denied: stopped receiving messages for a pause"),
        }
        *pause = Some(Pause { cause, reason: reason.to_owned(), length, until: now + length });
        drop(pause);
        *self.lock_outage() = Some(reason.to_owned());
    }

    /// Reports that a message was processed, so that nothing concerns every message.
    pub fn message_processed(&self) {
        let mut pause = self.lock_pause();
        if let Some(ended) = pause.take_if(|pause| pause.until <= Instant::now()) {
            match ended.cause {
                Cause::UnreadableLog => tracing::info!("event log readable: messages are processed again"),
                _ => tracing::info!("access granted: messages are processed again"),
            }
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
        if let Some(reason) = self.active_pause() {
            return Err(reason);
        }
        let Ports { objects, store, publisher, analyzer, index, .. } = &self.0.dependencies;
        within("the bucket", objects.check()).await?;
        within("the store", store.check()).await?;
        if self.0.has_notifications {
            within("the publisher", publisher.check()).await?;
        }
        within("the face analyzer", analyzer.check()).await?;
        within("the face index", index.check()).await
    }

    /// Returns the reason of the last pause while it lasts.
    fn active_pause(&self) -> Option<String> {
        self.lock_pause().as_ref().filter(|pause| pause.until > Instant::now()).map(|pause| pause.reason.clone())
    }

    fn lock_outage(&self) -> MutexGuard<'_, Option<String>> {
        self.0.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_pause(&self) -> MutexGuard<'_, Option<Pause>> {
        self.0.pause.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a health check. Returns why the dependency is down.
async fn within<E: Display>(dependency: &str, check: impl Future<Output = Result<(), E>>) -> Result<(), String> {
    match timeout(CHECK_TIMEOUT, check).await {
        Ok(checked) => checked.map_err(|error| error.to_string()),
        Err(_) => Err(format!("timeout: {dependency} did not answer within {} s", CHECK_TIMEOUT.as_secs())),
    }
}
