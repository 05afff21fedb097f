//! The messages in flight.

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

/// The tasks that process messages, and their messages.
#[derive(Default)]
pub struct InFlightMessages {
    tasks: JoinSet<()>,
    messages: Arc<Mutex<HashMap<MessageId, Delivery>>>,
}

impl InFlightMessages {
    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts a task that processes this message.
    pub fn spawn(&mut self, delivery: Delivery, work: impl Future<Output = ()> + Send + 'static) {
        let (messages, id) = (Arc::clone(&self.messages), delivery.id.clone());
        messages.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), delivery);
        self.tasks.spawn(async move {
            work.await;
            messages.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
    }

    /// Waits until one of them ends.
    pub async fn next(&mut self) {
        if let Some(Err(error)) = self.tasks.join_next().await {
            tracing::error!(%error, "a task panicked; its message is delivered again after its visibility timeout");
        }
    }

    /// Waits until one of them ends, at most this long.
    pub async fn next_within(&mut self, longest: Duration) {
        if self.is_empty() {
            sleep(longest).await;
        } else {
            let _ = timeout(longest, self.next()).await;
        }
    }

    /// Waits for all of them during the grace period, and releases the rest, so that other workers receive them at once.
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
        tracing::warn!(messages = rest.len(), "grace period ended: releasing the messages in flight");
        for delivery in rest {
            let id = delivery.id.clone();
            if let Err(error) = consumer.queue.settle(delivery, Settlement::Release).await {
                tracing::warn!(message_id = %id.0, %error, "failed to release a message");
            }
        }
    }
}
