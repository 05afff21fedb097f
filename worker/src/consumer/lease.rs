//! A lease that is kept while somebody works, and dies when dropped.

use std::{sync::Arc, time::Duration};

use sparks_engine::{Delivery, Queue, QueueError};
use tokio::task::JoinHandle;

/// Extends the lease on a delivery at a third of its time.
pub struct Lease(JoinHandle<()>);

impl Lease {
    /// Keeps the lease from now on, until somebody else has the message.
    pub fn keep(queue: Arc<dyn Queue>, delivery: Delivery, visibility: Duration) -> Self {
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(visibility / 3).await;
                match queue.extend(&delivery).await {
                    Ok(()) => {}
                    Err(error @ QueueError::LeaseLost(_)) => {
                        tracing::warn!(message_id = %delivery.id.0, %error);
                        return;
                    }
                    Err(error) => tracing::warn!(message_id = %delivery.id.0, %error, "cannot extend the lease"),
                }
            }
        }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.abort();
    }
}
