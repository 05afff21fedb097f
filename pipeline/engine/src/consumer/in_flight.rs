//! The messages in flight.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Consumer, ReceivedMessage, SettledMessage};
use crate::{Delivery, MessageId, Settlement};

/// The tasks that process messages, and their messages.
#[derive(Default)]
pub(super) struct InFlightMessages {
    tasks: JoinSet<Option<SettledMessage>>,
    messages: Arc<Mutex<BTreeMap<MessageId, Delivery>>>,
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

    /// Starts a task that handles this message.
    pub fn start(&mut self, consumer: Consumer, message: ReceivedMessage) {
        let (messages, id) = (Arc::clone(&self.messages), message.delivery.id.clone());
        messages.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), message.delivery.clone());
        self.tasks.spawn(async move {
            let settled = consumer.handle(message).await;
            messages.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            match settled {
                Ok(settled) => Some(settled),
                Err(error) => {
                    tracing::warn!(%error, "failed to settle a message; it is delivered again after its visibility timeout");
                    None
                }
            }
        });
    }

    /// Waits until one of them ends. Returns `None` where it could not be settled, or where there is none.
    pub async fn next(&mut self) -> Option<SettledMessage> {
        match self.tasks.join_next().await? {
            Ok(settled) => settled,
            Err(error) => {
                tracing::error!(%error, "a task panicked; its message is delivered again after its visibility timeout");
                None
            }
        }
    }

    /// Waits until one of them ends, at most this long.
    pub async fn next_within(&mut self, longest: Duration) -> Option<SettledMessage> {
        if self.is_empty() {
            sleep(longest).await;
            return None;
        }
        timeout(longest, self.next()).await.ok().flatten()
    }

    /// Waits for all of them during the grace period, and releases the rest, so that other workers receive them at once. `settled` is
    /// called for each that ends.
    pub async fn finish(mut self, grace: Duration, consumer: &Consumer, mut settled: impl FnMut(SettledMessage)) {
        let all_done = async {
            while !self.is_empty() {
                self.next().await.into_iter().for_each(&mut settled);
            }
        };
        if timeout(grace, all_done).await.is_ok() {
            return;
        }
        self.tasks.shutdown().await;
        let rest = std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner));
        tracing::warn!(messages = rest.len(), "grace period ended: releasing the messages in flight");
        for (id, delivery) in rest {
            if let Err(error) = consumer.queue.settle(delivery, Settlement::Release).await {
                tracing::warn!(message_id = %id.0, %error, "failed to release a message");
            }
        }
    }
}
