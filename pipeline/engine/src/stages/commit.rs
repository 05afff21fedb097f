//! Stage: the transaction, which happens once.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use sparks_domain::{
    Command, Event, ImageId, Key, Mutation, PhotoProcessed, PhotoState, PhotoStatus, ProjectionContext, RecordedEvent,
    Refusal, decide,
};

use super::{Outcome, earlier_versions::EarlierVersions, notify::Notifier, outcome::RejectedPhoto};
use crate::{Cause, Commit, CommitError, Failure, PhotoGuard, Pipeline};

/// Prepares and commits transactions.
pub(crate) struct Committer<'a>(pub &'a Pipeline);

/// Proof that a decision is in the log: only a commit creates it.
#[derive(Debug)]
pub struct CommitReceipt {
    events: Vec<RecordedEvent>,
}

impl CommitReceipt {
    /// Returns the decision about the photo.
    pub fn photo(&self) -> Option<(&PhotoProcessed, &RecordedEvent)> {
        self.events.iter().find_map(|recorded| match &recorded.event {
            Event::PhotoProcessed(photo) => Some((photo, recorded)),
            _ => None,
        })
    }

    /// Returns the events as the log has them.
    pub fn events(&self) -> &[RecordedEvent] {
        &self.events
    }
}

impl Committer<'_> {
    /// Returns a commit of these events about a photo with the rows that they change, under the condition that the photo's state
    /// is still `before`.
    pub fn prepare(&self, image: &ImageId, before: Option<&PhotoState>, events: Vec<Event>) -> Commit {
        let Pipeline { ports, config, .. } = self.0;
        let (when, merges) = (ports.clock.now(), ports.index.merges());
        let context = ProjectionContext { before, ..ProjectionContext::new(when, &merges) };
        Commit {
            actor: config.actor.clone(),
            mutations: events.iter().flat_map(|event| config.projection.project(event, &context)).collect(),
            events,
            ..Commit::without_events(when, Some(PhotoGuard { image: image.clone(), before: before.cloned() }))
        }
    }

    /// Commits, and logs each event.
    pub async fn commit(&self, commit: &Commit) -> Result<CommitReceipt, CommitError> {
        let events = self.0.ports.store.commit(commit).await?;
        for RecordedEvent { id, event, seq, .. } in &events {
            tracing::info!(event = %id, event_type = event.event_type(), seq = seq.0, "committed");
        }
        Ok(CommitReceipt { events })
    }

    /// Commits the rejection of a photo.
    pub async fn reject(&self, rejected: RejectedPhoto) -> Result<Outcome, Failure> {
        let RejectedPhoto { image, uploader, source, state, reason } = rejected;
        let owner = uploader.clone();
        let command = Command::Reject { image_id: image.clone(), uploader, source, reason: reason.clone() };
        match decide(state.as_ref(), command, &self.0.config.policy) {
            Ok(events) => {
                let mut commit = self.prepare(&image, state.as_ref(), events);
                if state.is_some_and(|state| state.status == PhotoStatus::Deleted) {
                    // Uploaded again, if the row exists: the reader may have seen a row that the deletion has removed since.
                    commit.mutations.push(Mutation::require_row(Key::image(&image, &owner)));
                }
                let receipt = self.commit(&commit).await?;
                Notifier(self.0).publish(receipt.events(), None).await?;
                Ok(Outcome::Rejected(reason))
            }
            Err(Refusal::AlreadyCommitted(state)) if state.status != PhotoStatus::Processed => {
                EarlierVersions(self.0).repeat_last_effects(&image).await?;
                Ok(Outcome::Rejected(reason))
            }
            Err(refusal) => {
                if let Refusal::Outdated(_) = refusal {
                    EarlierVersions(self.0).repeat_last_effects(&image).await?;
                }
                Ok(outcome_of(&refusal))
            }
        }
    }
}

/// Returns the outcome of a command that the domain refused.
pub(super) fn outcome_of(refusal: &Refusal) -> Outcome {
    match refusal {
        Refusal::AlreadyCommitted(_) => Outcome::AlreadyCommitted,
        Refusal::Outdated(_) => Outcome::Outdated,
        Refusal::Deleted => Outcome::Deleted,
    }
}

/// The time that attempts after conflicts wait in all, before the message is deferred.
pub(crate) const MAX_CONFLICT_DELAY: Duration = Duration::from_secs(120);

/// Returns the delays between attempts after conflicts, with jitter, so that workers that want the same number do not collide again.
/// They grow until the attempts of hundreds of workers seldom meet, and end after some minutes: only the commit is repeated, which
/// costs less than to render and analyze the photo again.
pub(crate) fn conflict_backoff() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_jitter()
        .with_factor(2.0)
        .with_min_delay(Duration::from_millis(2))
        .with_max_delay(Duration::from_secs(4))
        .without_max_times()
        .with_total_delay(Some(MAX_CONFLICT_DELAY))
        .build()
}

/// Waits before the next attempt after a conflict. Fails when the attempts are used up.
pub(crate) async fn wait_after_conflict(
    backoff: &mut impl Iterator<Item = Duration>,
    subject: &str,
) -> Result<(), Failure> {
    let contended =
        || Failure::new(Cause::Contended, format!("conflict: {subject} was changed by others on every attempt"));
    tokio::time::sleep(backoff.next().ok_or_else(contended)?).await;
    Ok(())
}
