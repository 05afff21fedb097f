//! Stops the polling while something we depend on is down: an outage must not drain the queue into the dead letters.
//!
//! A permission that we lack is an outage, too, and none that asking reveals: what a message needs is more than what can be
//! tried without one. So after a refusal nobody polls for a while, then the next messages are the question, and each refusal
//! makes the while longer. A message that is refused spends no attempt.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use backon::{BackoffBuilder, ExponentialBuilder};
use sparks_engine::{Objects, Publisher, Store};
use tokio::time::timeout;

use crate::wiring::Senses;

/// Knows whether what we depend on answers. Clones share what they know.
#[derive(Clone)]
pub struct Breaker(Arc<Inner>);

struct Inner {
    objects: Arc<dyn Objects>,
    store: Arc<dyn Store>,
    publisher: Arc<dyn Publisher>,
    senses: Senses,
    down: Mutex<Option<String>>,
    denial: Mutex<Option<Denial>>,
}

/// What we may not do.
struct Denial {
    what: String,
    pause: Duration,
    until: Instant,
}

const PATIENCE: Duration = Duration::from_secs(10);
/// How long nobody polls after a refusal: at first, and at most.
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Breaker {
    /// Watches over these.
    pub fn new(
        objects: Arc<dyn Objects>,
        store: Arc<dyn Store>,
        publisher: Arc<dyn Publisher>,
        senses: Senses,
    ) -> Self {
        let (down, denial) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { objects, store, publisher, senses, down, denial }))
    }

    /// What is down, if anything, as far as is known.
    pub fn down(&self) -> Option<String> {
        self.0.down.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks everything we depend on whether it answers; says whether something is down.
    pub async fn is_down(&self) -> bool {
        // Somebody may have been refused something while we asked.
        let found = self.ask().await.err().or_else(|| self.refusal());
        let is_denied = self.denial().is_some();
        let mut down = self.0.down.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*down, &found) {
            (None, Some(reason)) => {
                tracing::error!(reason, "something we depend on is down: no more messages until it is back")
            }
            (Some(_), None) if is_denied => tracing::info!("trying whether we are allowed to by now"),
            (Some(_), None) => tracing::info!("everything answers again"),
            _ => {}
        }
        *down = found;
        down.is_some()
    }

    /// Somebody was refused something that every message needs: nobody polls for a while.
    pub fn denied(&self, what: &str) {
        let mut denial = self.denial();
        let now = Instant::now();
        let pause = match &*denial {
            // Those who began before are refused as well: that is no news.
            Some(denial) if denial.until > now => return,
            Some(denial) => LONGEST_PAUSE.min(denial.pause * 2),
            None => SHORTEST_PAUSE,
        };
        tracing::error!(reason = what, seconds = pause.as_secs(), "we lack a permission: no more messages for a while");
        *denial = Some(Denial { what: what.to_owned(), pause, until: now + pause });
        drop(denial);
        *self.0.down.lock().unwrap_or_else(PoisonError::into_inner) = Some(what.to_owned());
    }

    /// A message was worked off, so nothing that we lack stands in the way.
    pub fn allowed(&self) {
        let mut denial = self.denial();
        if denial.as_ref().is_some_and(|denial| denial.until <= Instant::now()) {
            *denial = None;
            tracing::info!("messages are worked off again");
        }
    }

    /// What we were refused, while nobody polls for it.
    fn refusal(&self) -> Option<String> {
        self.denial().as_ref().filter(|denial| denial.until > Instant::now()).map(|denial| denial.what.clone())
    }

    fn denial(&self) -> MutexGuard<'_, Option<Denial>> {
        self.0.denial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is down. Asks again soon at first, then every few seconds.
    pub async fn closed(&self) {
        if self.down().is_none() {
            return;
        }
        let mut pauses = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(Duration::from_millis(200))
            .with_max_delay(Duration::from_secs(2))
            .without_max_times()
            .build();
        while self.is_down().await {
            tokio::time::sleep(pauses.next().unwrap_or(PATIENCE)).await;
        }
    }

    async fn ask(&self) -> Result<(), String> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        let silent = |what: &str| format!("{what} does not answer");
        let objects = timeout(PATIENCE, self.0.objects.check()).await.map_err(|_| silent("the object store"))?;
        objects.map_err(|error| error.to_string())?;
        let store = timeout(PATIENCE, self.0.store.check()).await.map_err(|_| silent("the store"))?;
        store.map_err(|error| error.to_string())?;
        let publisher = timeout(PATIENCE, self.0.publisher.check()).await.map_err(|_| silent("the publisher"))?;
        publisher.map_err(|error| error.to_string())?;
        let senses =
            timeout(PATIENCE, self.0.senses.check()).await.map_err(|_| silent("the service that knows faces"))?;
        senses.map_err(|error| error.to_string())
    }
}
