//! Stops the polling while something we depend on is down: an outage must not drain the queue into the dead letters.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBuilder};
use sparks_engine::{Objects, Publisher, Store};
use tokio::time::timeout;

/// Knows whether what we depend on answers. Clones share what they know.
#[derive(Clone)]
pub struct Breaker(Arc<Inner>);

struct Inner {
    objects: Arc<dyn Objects>,
    store: Arc<dyn Store>,
    publisher: Arc<dyn Publisher>,
    down: Mutex<Option<String>>,
}

const PATIENCE: Duration = Duration::from_secs(10);

impl Breaker {
    /// Watches over these.
    pub fn new(objects: Arc<dyn Objects>, store: Arc<dyn Store>, publisher: Arc<dyn Publisher>) -> Self {
        Self(Arc::new(Inner { objects, store, publisher, down: Mutex::new(None) }))
    }

    /// What is down, if anything, as far as is known.
    pub fn down(&self) -> Option<String> {
        self.0.down.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks everything we depend on whether it answers; says whether something is down.
    pub async fn is_down(&self) -> bool {
        let found = self.ask().await.err();
        let mut down = self.0.down.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*down, &found) {
            (None, Some(reason)) => {
                tracing::error!(reason, "something we depend on is down: no more messages until it is back")
            }
            (Some(_), None) => tracing::info!("everything answers again"),
            _ => {}
        }
        *down = found;
        down.is_some()
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
        let silent = |what: &str| format!("{what} does not answer");
        let objects = timeout(PATIENCE, self.0.objects.check()).await.map_err(|_| silent("the object store"))?;
        objects.map_err(|error| error.to_string())?;
        let store = timeout(PATIENCE, self.0.store.check()).await.map_err(|_| silent("the store"))?;
        store.map_err(|error| error.to_string())?;
        let publisher = timeout(PATIENCE, self.0.publisher.check()).await.map_err(|_| silent("the publisher"))?;
        publisher.map_err(|error| error.to_string())
    }
}
