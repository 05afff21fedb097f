//! Keeps the lease on a message while it is processed.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;

use crate::{Delivery, Queue, QueueError};

/// Extends the visibility timeout of a message after each third of it, until dropped.
pub(super) struct LeaseExtender(JoinHandle<()>);

impl LeaseExtender {
    /// Starts extending. Ends by itself when the lease is lost.
    pub fn start(queue: Arc<dyn Queue>, delivery: Delivery, visibility: Duration) -> Self {
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(visibility / 3).await;
                match queue.extend(&delivery).await {
                    Ok(()) => {}
                    Err(error @ QueueError::LeaseLost(_)) => {
                        tracing::warn!(message_id = %delivery.id.0, %error, "lease lost");
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(message_id = %delivery.id.0, %error, "failed to extend the visibility timeout")
                    }
                }
            }
        }))
    }
}

impl Drop for LeaseExtender {
    fn drop(&mut self) {
        self.0.abort();
    }
}
