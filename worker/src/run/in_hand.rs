//! The messages that are being worked on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sparks_engine::{Delivery, MessageId, Settlement};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::consumer::Consumer;

/// Tasks, and the messages they work on.
#[derive(Default)]
pub struct InHand {
    tasks: JoinSet<()>,
    messages: Arc<Mutex<HashMap<MessageId, Delivery>>>,
}

impl InHand {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Works on this message from now on.
    pub fn spawn(&mut self, delivery: Delivery, work: impl Future<Output = ()> + Send + 'static) {
        let (messages, id) = (Arc::clone(&self.messages), delivery.id.clone());
        messages.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), delivery);
        self.tasks.spawn(async move {
            work.await;
            messages.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
    }

    /// Waits until one of them is done with.
    pub async fn next(&mut self) {
        if let Some(Err(error)) = self.tasks.join_next().await {
            tracing::error!(%error, "a task stopped; its message comes again");
        }
    }

    /// Waits until one of them is done with, or this long.
    pub async fn next_within(&mut self, longest: Duration) {
        if self.is_empty() {
            sleep(longest).await;
        } else {
            let _ = timeout(longest, self.next()).await;
        }
    }

    /// Lets everything end within the grace period, and gives the rest back, so that others have it at once.
    pub async fn finish(mut self, grace: Duration, consumer: &Consumer) {
        let all_done = async {
            while !self.is_empty() {
                self.next().await;
            }
        };
        if timeout(grace, all_done).await.is_ok() {
            return;
        }
        self.tasks.shutdown().await;
        let rest: Vec<Delivery> = self
            .messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain()
            .map(|(_, delivery)| delivery)
            .collect();
        tracing::warn!(messages = rest.len(), "the grace period is over: the rest is given back");
        for delivery in rest {
            let id = delivery.id.clone();
            if let Err(error) = consumer.queue.settle(delivery, Settlement::Release).await {
                tracing::warn!(message_id = %id.0, %error, "cannot give back");
            }
        }
    }
}
