//! Options of the server that can change while it runs.

use std::time::Duration;

/// Options of the server. The default has no delay, throttling, failures or authentication.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Time until an indexed face is searchable (eventual consistency). It is listed at once.
    pub visibility_delay: Duration,
    /// The rate limit.
    pub throttle: Option<Throttle>,
    /// The error that every request fails with.
    pub injected_failure: Option<InjectedFailure>,
    /// The only accepted signing keys. If absent, signatures are not verified.
    pub keys: Option<SigningKeys>,
}

/// A rate limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttle {
    /// Requests per second, and the burst size.
    pub per_second: f64,
    /// The error of throttled requests.
    pub error: ThrottleError,
}

/// The error of throttled requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThrottleError {
    /// `ThrottlingException`: a sudden increase of the rate.
    Throttling,
    /// `ProvisionedThroughputExceededException`: the quota of the account is exceeded.
    ProvisionedThroughput,
}

/// An error injected into every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFailure {
    /// `InternalServerError`, with status 500.
    Outage,
    /// `AccessDeniedException`.
    AccessDenied,
}

/// An access key and its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKeys {
    /// The access key ID.
    pub access_key: String,
    /// The secret access key.
    pub secret_key: String,
}

impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKeys({})", self.access_key)
    }
}
