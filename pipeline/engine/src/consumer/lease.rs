//! Keeps the lease on a message while it is processed.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{Delivery, Queue, QueueError};

/// Extends the visibility timeout of a message after each third of it. Returns why, once the lease is lost, or will be before an extension
/// can succeed: from then on another worker may process the message, so this one must stop.
pub(super) async fn keep_lease(queue: &dyn Queue, delivery: &Delivery, visibility: Duration) -> String {
    let mut extended = Instant::now();
    let mut last_failure = "no reply".to_owned();
    loop {
        // Less than the visibility timeout, since what is stopped may take a moment.
        let end = extended + visibility.mul_f64(0.9);
        sleep_until((Instant::now() + visibility / 3).min(end)).await;
        let began = Instant::now();
        match timeout_at(end, queue.extend(delivery)).await {
            Ok(Ok(())) => extended = began,
            Ok(Err(error @ QueueError::LeaseLost(_))) => return error.to_string(),
            Ok(Err(error)) => {
                tracing::warn!(message_id = %delivery.id.0, %error, "failed to extend the visibility timeout");
                last_failure = error.to_string();
            }
            Err(_) => return format!("the visibility timeout ends and could not be extended: {last_failure}"),
        }
    }
}
