//! Whether a service is there, as far as calls have told.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::trouble::Trouble;

/// Remembers the last trouble until a call goes well. While nothing is wrong, nobody needs to ask.
#[derive(Default)]
pub(crate) struct Health(Mutex<Option<(Trouble, Instant)>>);

/// After a refusal for too many calls nobody calls for so long.
const REST: Duration = Duration::from_secs(2);

/// What is known.
pub(crate) enum State {
    /// The last call went well.
    Well,
    /// It was not there: ask.
    Doubtful,
    /// It had too much to do a moment ago: wait.
    Resting(Trouble),
}

/// Whether what is missing is the collection.
pub(crate) fn is_missing(trouble: &Trouble) -> bool {
    trouble.is(&["ResourceNotFoundException"])
}

impl Health {
    /// A call was answered. One that needs no collection does not tell that there is one.
    pub fn is_well(&self, with_collection: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if with_collection || known.as_ref().is_some_and(|(trouble, _)| !is_missing(trouble)) {
            *known = None;
        }
    }

    /// A call was not answered.
    pub fn is_ill(&self, trouble: &Trouble) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((trouble.clone(), Instant::now()));
    }

    /// What is known.
    pub fn state(&self) -> State {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            None => State::Well,
            Some((trouble, when)) if trouble.is_busy() && when.elapsed() < REST => State::Resting(trouble.clone()),
            Some(_) => State::Doubtful,
        }
    }
}
