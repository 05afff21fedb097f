//! The failure of a service that the worker depends on.

/// A dependency (store, bucket, queue, topic, face service) did not do what was asked. No message is to blame;
/// [`crate::Cause`] says what each means for a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DependencyError {
    /// No answer, a timeout, or an answer of no use. A retry may succeed.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The service answers and limits the rate of requests. A retry succeeds once load or limits allow it.
    #[error("throttled: {0}")]
    Throttled(String),
    /// The worker lacks a permission. A retry succeeds once an operator grants it.
    #[error("access denied: {0}")]
    AccessDenied(String),
}
