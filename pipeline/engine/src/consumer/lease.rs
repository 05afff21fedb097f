//! Keeps the lease on a message while it is processed.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{Delivery, DependencyError, Queue, QueueError};

/// Extends the visibility timeout of a message after each third of it. Returns why, once the lease is lost, or will be before an extension
/// can succeed: from then on another worker may process the message, so this one must stop.
pub(super) async fn keep_lease(queue: &dyn Queue, delivery: &Delivery, visibility: Duration) -> QueueError {
    let mut extended = Instant::now();
    let mut last_failure =
        DependencyError::Unavailable("the visibility timeout could not be extended: no reply".into()).into();
    loop {
        // Less than the visibility timeout, since what is stopped may take a moment.
        let end = extended + visibility.mul_f64(0.9);
        let next = Instant::now() + visibility / 3;
        if next >= end {
            sleep_until(end).await;
            return last_failure;
        }
        sleep_until(next).await;
        let began = Instant::now();
        match timeout_at(end, queue.extend(delivery)).await {
            Ok(Ok(())) => extended = began,
            Ok(Err(error @ QueueError::LeaseLost(_))) => return error,
            Ok(Err(error)) => {
                tracing::warn!(message_id = %delivery.id.0, %error, "failed to extend the visibility timeout");
                last_failure = error;
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use sparks_domain::Timestamp;

    use super::*;
    use crate::{MessageId, QueueDepth, Settlement};

    const VISIBILITY: Duration = Duration::from_secs(30);

    /// Extends the lease this many times, then fails in one way.
    struct FailingQueue {
        extensions: AtomicU32,
        failure: Failure,
    }

    enum Failure {
        LeaseLost,
        Outage,
        NoReply,
    }

    #[async_trait]
    impl Queue for FailingQueue {
        async fn send(&self, _: &str, _: &str) -> Result<MessageId, QueueError> {
            unreachable!()
        }

        async fn receive(&self, _: usize) -> Result<Vec<Delivery>, QueueError> {
            unreachable!()
        }

        async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
            if self.extensions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                return Ok(());
            }
            match self.failure {
                Failure::LeaseLost => Err(QueueError::LeaseLost(delivery.id.clone())),
                Failure::Outage => Err(DependencyError::Unavailable("down".into()).into()),
                Failure::NoReply => std::future::pending().await,
            }
        }

        async fn settle(&self, _: Delivery, _: Settlement) -> Result<(), QueueError> {
            unreachable!()
        }

        async fn depth(&self) -> Result<QueueDepth, QueueError> {
            unreachable!()
        }
    }

    /// Returns after how many seconds the lease counts as lost.
    async fn lost_after(extensions: u32, failure: Failure) -> u64 {
        let queue = FailingQueue { extensions: extensions.into(), failure };
        let delivery = Delivery {
            id: MessageId("1".into()),
            body: String::new(),
            receives: 1,
            sent: Timestamp::from_millis(0),
            receipt: String::new(),
        };
        let began = Instant::now();
        keep_lease(&queue, &delivery, VISIBILITY).await;
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_lease_is_noticed_with_the_next_extension() {
        assert_eq!(lost_after(3, Failure::LeaseLost).await, 40);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_cannot_be_extended_ends_before_the_visibility_timeout() {
        assert_eq!(lost_after(0, Failure::Outage).await, 27);
        assert_eq!(lost_after(2, Failure::Outage).await, 20 + 27);
        assert_eq!(lost_after(2, Failure::NoReply).await, 20 + 27);
    }
}
