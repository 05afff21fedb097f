//! A lease that is kept while somebody works, and dies when dropped.

use std::{sync::Arc, time::Duration};

use sparks_engine::{Delivery, Queue};
use tokio::task::JoinHandle;

/// Extends the lease on a delivery at a third of its time.
pub struct Lease(JoinHandle<()>);

impl Lease {
    /// Keeps the lease from now on.
    pub fn keep(queue: Arc<dyn Queue>, delivery: Delivery, visibility: Duration) -> Self {
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(visibility / 3).await;
                if let Err(error) = queue.extend(&delivery).await {
                    tracing::warn!(message_id = %delivery.id.0, %error, "cannot extend the lease");
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
