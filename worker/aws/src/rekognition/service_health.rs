//! The availability of Rekognition, as far as calls show it.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::error::AwsError;

/// Remembers the last error until a call succeeds, so that a check costs no call while calls succeed.
#[derive(Default)]
pub(crate) struct ServiceHealth(Mutex<Option<(AwsError, Instant)>>);

/// The time after a throttled call in which checks make no call.
const THROTTLED_PAUSE: Duration = Duration::from_secs(2);

/// The state of the service.
pub(crate) enum HealthState {
    /// The last call succeeded.
    Healthy,
    /// The last call failed: a check must call the service.
    Unknown,
    /// A call was throttled a moment ago: a check must not call the service.
    Throttled(AwsError),
}

/// Returns whether the collection does not exist.
pub(crate) fn is_collection_missing(error: &AwsError) -> bool {
    error.has_code(&["ResourceNotFoundException"])
}

impl ServiceHealth {
    /// Records a response. One to an operation without a collection does not show that the collection exists.
    pub fn record_success(&self, with_collection: bool) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if with_collection || last.as_ref().is_some_and(|(error, _)| !is_collection_missing(error)) {
            *last = None;
        }
    }

    /// Records a failed call.
    pub fn record_failure(&self, error: &AwsError) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((error.clone(), Instant::now()));
    }

    /// Returns the state.
    pub fn state(&self) -> HealthState {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            None => HealthState::Healthy,
            Some((error, when)) if error.is_throttled() && when.elapsed() < THROTTLED_PAUSE => {
                HealthState::Throttled(error.clone())
            }
            Some(_) => HealthState::Unknown,
        }
    }
}
