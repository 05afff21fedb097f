//! Observation of transactions.

use sparks_domain::{Mutation, PhotoState, RecordedEvent};
use sparks_engine::{Commit, CommitError};

/// Sees every transaction at the moment it is accepted or refused, before any reader sees a part of it.
pub trait CommitObserver: Send + Sync {
    /// A transaction was accepted. `after`: the state of its photo from now on.
    fn accepted(&self, commit: &Commit, recorded: &[RecordedEvent], after: Option<&PhotoState>);

    /// A transaction was refused.
    fn refused(&self, error: &CommitError);

    /// A repair changes rows.
    fn repaired(&self, mutations: &[Mutation]);
}
