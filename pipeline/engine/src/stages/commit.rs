//! The one thing that happens once.

use std::{collections::BTreeSet, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};
use sparks_domain::{
    Command, Email, Event, FaceId, Identity, ImageId, Outcome::Processed, PhotoProcessed, PhotoState, Recognition,
    Recorded, Refusal, Rejection, Source, decide,
};

use super::{
    Outcome,
    analyze::AnalyzedPhoto,
    outcome::{Failure, Unfit},
};
use crate::{Commit, CommitError, PhotoGuard, Pipeline, StoredFace, Ticket};

/// Proof that a decision is in the log. Only a commit makes it.
#[derive(Debug)]
pub struct Committed {
    recorded: Vec<Recorded>,
}

impl Committed {
    /// What was decided about the photo.
    pub fn photo(&self) -> Option<&PhotoProcessed> {
        self.recorded.iter().find_map(|recorded| match &recorded.event {
            Event::PhotoProcessed(photo) => Some(photo),
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
    pub(super) async fn commit(&self, photo: AnalyzedPhoto, turn: &Ticket) -> Result<Outcome, Failure> {
        let mut state = photo.known.state.clone();
        let mut taken = BTreeSet::new();
        let mut pauses = conflict_pauses();
        loop {
            let found = self.ports.index.search(&photo.faces).await?;
            let identity = Identity { taken: taken.clone(), ..found.identity };
            let command = photo.command(Recognition {
                analyzer: photo.analyzer.clone(),
                faces: photo.faces.clone(),
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
            let mut commit = self.draft(&photo.known.photo.image, state.as_ref(), events);
            commit.identity = somebody_is_new.then_some(identity);
            commit.signatures = photo.signatures(&commit.events);
            let conflict = match self.ports.store.commit(&commit).await {
                Ok(recorded) => return Ok(Outcome::Committed(Committed { recorded })),
                Err(conflict) => conflict,
            };
            match conflict {
                CommitError::IdentityMoved => self.ports.index.refresh().await?,
                CommitError::NumberTaken(person) => drop(taken.insert(person.number())),
                CommitError::PhotoMoved => state = self.ports.store.photo(&photo.known.photo.image).await?,
                CommitError::RowMissing(_) | CommitError::Store(_) => return Err(conflict.into()),
            }
            self.count_conflict();
            tracing::debug!(image = %photo.known.photo.image, %conflict, "deciding again");
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
                Ok(_) => rejected,
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
        }
    }
}

impl AnalyzedPhoto {
    fn command(&self, recognition: Recognition) -> Command {
        Command::Process {
            image_id: self.known.photo.image.clone(),
            uploader: self.known.uploader.clone(),
            source: self.source.clone(),
            dimensions: self.dimensions,
            taken_at: self.taken_at.clone(),
            variants: self.variants.clone(),
            recognition,
        }
    }

    /// What the faces look like and who they are, under the numbers that the decision gave them.
    fn signatures(&self, decided: &[Event]) -> Vec<StoredFace> {
        let photo = decided.iter().find_map(|event| match event {
            Event::PhotoProcessed(photo) => Some(photo),
            _ => None,
        });
        let Some(photo) = photo else { return Vec::new() };
        let faces = (photo.first_face..).zip(&photo.faces).zip(&self.faces);
        let stored = faces.filter_map(|((n, decided), seen)| {
            Some(StoredFace {
                face: FaceId { image: photo.image_id.clone(), n },
                model: seen.model.clone(),
                signature: seen.signature.clone()?,
                person: decided.verdict.person(),
                template: decided.template,
            })
        });
        stored.collect()
    }
}

fn refused(refusal: &Refusal) -> Outcome {
    match refusal {
        Refusal::AlreadyCommitted(_) => Outcome::AlreadyCommitted,
        Refusal::Outdated(_) => Outcome::Outdated,
    }
}

/// Pauses between attempts, so that many who want the same number do not meet again and again.
fn conflict_pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_jitter()
        .with_factor(1.5)
        .with_min_delay(Duration::from_millis(1))
        .with_max_delay(Duration::from_millis(200))
        .with_max_times(64)
        .build()
}
