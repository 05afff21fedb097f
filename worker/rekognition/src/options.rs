//! How the server behaves, where that can change while it runs.

use std::time::Duration;

/// How the server behaves. The default is a server that works at once and for everybody.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// How long a face that was indexed is listed but not found by a search.
    pub visibility_delay: Duration,
    /// More requests than this are refused.
    pub throttle: Option<Throttle>,
    /// Every request is refused.
    pub trouble: Option<Trouble>,
    /// The only keys that a request may be signed with. Without them every signature counts, whoever made it.
    pub keys: Option<Keys>,
}

/// How many requests are answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttle {
    /// Each second; those of one second may come at once.
    pub per_second: f64,
    /// What the others are told.
    pub answer: TooMany,
}

/// What whoever asks too often is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMany {
    /// `ThrottlingException`: a sudden increase.
    Throttling,
    /// `ProvisionedThroughputExceededException`: more than the account may.
    ProvisionedThroughput,
}

/// Why every request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// `InternalServerError`, with status 500.
    Outage,
    /// `AccessDeniedException`.
    Denied,
}

/// An access key and its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// The part that a request names.
    pub access_key: String,
    /// The part that it does not.
    pub secret_key: String,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.access_key)
    }
}
