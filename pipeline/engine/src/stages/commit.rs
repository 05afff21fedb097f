//! The one thing that happens once.

use std::{collections::BTreeSet, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};
use sparks_domain::{
    Command, Email, Event, Face, FaceId, ImageId,
    Outcome::{Deleted, Processed},
    PhotoProcessed, PhotoState, Recognition, Recorded, Refusal, Rejection, SeenFace, Source, decide,
};

use super::{
    Outcome,
    analyze::{About, Case},
    announce::log,
    outcome::Unfit,
};
use crate::{Cause, Commit, CommitError, Erasure, Failure, PhotoGuard, Pipeline, StoredFace, Ticket};

/// Proof that a decision is in the log. Only a commit makes it.
#[derive(Debug)]
pub struct Committed {
    recorded: Vec<Recorded>,
}

impl Committed {
    pub(super) fn of(recorded: Vec<Recorded>) -> Self {
        Self { recorded }
    }

    /// What was decided about the photo, and its place in the log.
    pub fn photo(&self) -> Option<(&PhotoProcessed, &Recorded)> {
        self.recorded.iter().find_map(|recorded| match &recorded.event {
            Event::PhotoProcessed(photo) => Some((photo, recorded)),
            _ => None,
        })
    }

    /// The events, as the log has them.
    pub fn recorded(&self) -> &[Recorded] {
        &self.recorded
    }
}

impl Pipeline {
    /// Decides who is in the photo and commits it. When somebody else was faster, decides again on what they did:
    /// the photo is neither rendered nor looked at again.
    pub(super) async fn commit(&self, case: &Case, turn: &Ticket) -> Result<Outcome, Failure> {
        let mut state = case.state.clone();
        let mut taken = BTreeSet::new();
        let mut pauses = conflict_pauses();
        loop {
            let found = self.ports.index.search(&case.looked).await?;
            let mut identity = found.identity;
            identity.taken.extend(&taken);
            let command = case.command(Recognition {
                analyzer: case.analyzer.clone(),
                faces: case.looked.faces.clone(),
                search: found.search,
                identity: identity.clone(),
            });
            let events = match decide(state.as_ref(), command, &self.rules.policy) {
                Ok(events) => events,
                Err(refusal) => return Ok(refused(&refusal)),
            };
            let somebody_is_new = events.iter().any(Event::is_identity);
            if somebody_is_new && !turn.is_first() {
                turn.first().await;
                self.ports.index.refresh().await?;
                continue;
            }
            let mut commit = self.draft(&case.image, state.as_ref(), events);
            commit.identity = somebody_is_new.then_some(identity);
            commit.signatures = signatures(&case.image, &case.looked.faces, &commit.events);
            let conflict = match self.ports.store.commit(&commit).await {
                Ok(recorded) => {
                    log(&recorded);
                    return Ok(Outcome::Committed(Committed::of(recorded)));
                }
                Err(conflict) => conflict,
            };
            match conflict {
                CommitError::IdentityMoved => self.ports.index.refresh().await?,
                CommitError::NumberTaken(person) => drop(taken.insert(person.number())),
                CommitError::PhotoMoved => {
                    state = self.ports.store.photo(&case.image).await?;
                    // What was read before the deletion went with it, whatever its version.
                    if state.as_ref().is_some_and(|state| state.outcome == Deleted) {
                        return Ok(Outcome::Deleted);
                    }
                }
                CommitError::RowMissing(_) | CommitError::Store(_) => return Err(conflict.into()),
            }
            self.count_conflict();
            tracing::debug!(image = %case.image, %conflict, "deciding again");
            tokio::time::sleep(pauses.next().ok_or(conflict)?).await;
        }
    }

    /// Commits that a photo cannot be taken, which nobody needs to fetch to see.
    pub async fn refuse(
        &self,
        image: ImageId,
        uploader: Email,
        source: Source,
        reason: Rejection,
    ) -> Result<Outcome, Failure> {
        let state = self.ports.store.photo(&image).await?;
        self.reject(Unfit { image, uploader, source, state, reason }).await
    }

    /// Commits that a photo cannot be taken.
    pub(super) async fn reject(&self, unfit: Unfit) -> Result<Outcome, Failure> {
        let Unfit { image, uploader, source, state, reason } = unfit;
        let command = Command::Reject { image_id: image.clone(), uploader, source, reason: reason.clone() };
        let rejected = Ok(Outcome::Rejected(reason));
        match decide(state.as_ref(), command, &self.rules.policy) {
            Ok(events) => match self.ports.store.commit(&self.draft(&image, state.as_ref(), events)).await {
                Ok(recorded) => {
                    log(&recorded);
                    self.announce(&recorded, None).await?;
                    rejected
                }
                Err(error) => Err(error.into()),
            },
            Err(Refusal::AlreadyCommitted(state)) if state.outcome != Processed => rejected,
            Err(refusal) => Ok(refused(&refusal)),
        }
    }

    pub(super) fn draft(&self, image: &ImageId, before: Option<&PhotoState>, events: Vec<Event>) -> Commit {
        let (when, merges) = (self.ports.clock.now(), self.ports.index.merges());
        let project = |event| self.rules.projection.project(before, event, when, &merges);
        Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: before.cloned() }),
            identity: None,
            actor: self.rules.actor.clone(),
            when,
            mutations: events.iter().flat_map(project).collect(),
            events,
            signatures: Vec::new(),
            identified: Vec::new(),
            promoted: Vec::new(),
            erased: Erasure::default(),
        }
    }
}

impl Case {
    fn command(&self, recognition: Recognition) -> Command {
        match &self.about {
            About::Photo { uploader, source, dimensions, taken_at, variants } => Command::Process {
                image_id: self.image.clone(),
                uploader: uploader.clone(),
                source: source.clone(),
                dimensions: *dimensions,
                taken_at: taken_at.clone(),
                variants: variants.clone(),
                recognition,
            },
            About::Profile { email, source } => {
                Command::Profile { email: email.clone(), source: source.clone(), recognition }
            }
        }
    }
}

/// What the faces look like and who they are, under the numbers that the decision gave them.
pub(super) fn signatures(image: &ImageId, faces: &[SeenFace], decided: &[Event]) -> Vec<StoredFace> {
    let (first, concluded): (u16, &[Face]) = match decided.last() {
        Some(Event::PhotoProcessed(photo)) => (photo.first_face, &photo.faces),
        Some(Event::ProfileProcessed(profile)) => (profile.first_face, profile.face.as_slice()),
        _ => return Vec::new(),
    };
    let stored = (first..).zip(concluded).zip(faces).filter_map(|((n, decided), seen)| {
        Some(StoredFace {
            face: FaceId { image: image.clone(), n },
            model: seen.model.clone(),
            signature: seen.signature.clone()?,
            person: decided.verdict.person(),
            template: decided.template,
        })
    });
    stored.collect()
}

pub(super) fn refused(refusal: &Refusal) -> Outcome {
    match refusal {
        Refusal::AlreadyCommitted(_) => Outcome::AlreadyCommitted,
        Refusal::Outdated(_) => Outcome::Outdated,
        Refusal::Deleted => Outcome::Deleted,
    }
}

/// Pauses between attempts, so that many who want the same number do not meet again and again.
pub(crate) fn conflict_pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_jitter()
        .with_factor(1.5)
        .with_min_delay(Duration::from_millis(1))
        .with_max_delay(Duration::from_millis(200))
        .with_max_times(64)
        .build()
}

/// Waits a little before the next attempt. After many, others are too fast.
pub(crate) async fn pause(pauses: &mut impl Iterator<Item = Duration>, what: &str) -> Result<(), Failure> {
    let contended = || Failure::new(Cause::Contended, format!("{what} changes again and again"));
    tokio::time::sleep(pauses.next().ok_or_else(contended)?).await;
    Ok(())
}
