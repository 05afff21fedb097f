//! Faces that nobody knew, looked at again.

use std::sync::{MutexGuard, PoisonError};

use sparks_domain::{Event, FaceId, ImageId, PersonId, PhotoState, Review, SecondLook, review};

use super::{PAGE, Register, RegisterError};
use crate::{Commit, CommitError, DecidedFace, FaceIndex, PhotoGuard};

/// Pages at a time, so that nothing else waits for long.
const PAGES: usize = 16;

/// What came of looking again.
#[derive(Debug, Default)]
pub(super) struct Reviewed {
    /// How many faces are somebody now.
    pub recognised: usize,
    /// Whether there are faces that have not been looked at with what is known by now.
    pub more: bool,
}

/// A look at all faces that nobody knew, in steps.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// How much had been learnt when it began, while it lasts.
    began: Option<u64>,
    /// How much had been learnt when the last one began that is complete.
    complete: Option<u64>,
    /// The last face that was looked at.
    after: Option<FaceId>,
}

impl Round {
    /// The face after which to go on, or from the first one on; nothing where there is no need to look.
    fn next(&mut self, learnt: u64) -> Option<Option<FaceId>> {
        if self.began.is_none() && self.complete == Some(learnt) {
            return None;
        }
        self.began.get_or_insert(learnt);
        Some(self.after.clone())
    }

    /// All up to this face have been looked at, or all there are.
    fn pass(&mut self, after: Option<FaceId>) {
        if after.is_none() {
            self.complete = self.began.take();
        }
        self.after = after;
    }
}

impl Register {
    /// Looks again at the faces that nobody knew, to the last. Says how many are somebody now.
    pub async fn review(&self) -> Result<usize, RegisterError> {
        let mut recognised = 0;
        loop {
            let reviewed = self.review_some().await?;
            recognised += reviewed.recognised;
            if !reviewed.more {
                return Ok(recognised);
            }
        }
    }

    /// Looks again at some of the faces that nobody knew, and goes on the next time. Whoever has learnt nothing since the last
    /// round sees nothing new, and does not look.
    pub(super) async fn review_some(&self) -> Result<Reviewed, RegisterError> {
        self.index.follow().await?;
        let learnt = self.index.known().learnt();
        let Some(mut after) = self.round().next(learnt) else { return Ok(Reviewed::default()) };
        let mut recognised = 0;
        for _ in 0..PAGES {
            let page = self.store.unidentified(after.as_ref(), PAGE).await?;
            after = page.last().map(|decided| decided.kept.face.clone());
            for (state, event) in self.look_again(&page).await? {
                recognised += self.record_review(state, event).await?;
            }
            self.round().pass(after.clone());
            if after.is_none() {
                break;
            }
        }
        let learnt = self.index.known().learnt();
        Ok(Reviewed { recognised, more: self.round().complete != Some(learnt) })
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The photos in which somebody is recognised now: where they stand, and the events that say so.
    async fn look_again(&self, faces: &[DecidedFace]) -> Result<Vec<(PhotoState, Event)>, RegisterError> {
        let photos: Vec<&[DecidedFace]> = faces.chunk_by(|a, b| a.kept.face.image == b.kept.face.image).collect();
        let images: Vec<ImageId> = photos.iter().map(|faces| faces[0].kept.face.image.clone()).collect();
        let states = self.store.photos(&images).await?;
        let known = self.index.known();
        let second_look = SecondLook::new(&known.gallery, self.rules.scale, &self.rules.policy);
        let look = |((image_id, state), faces): ((ImageId, Option<PhotoState>), &[DecidedFace])| {
            let state = state?;
            let present = known.people.merges().all_now(&state.persons);
            let unknown = |DecidedFace { kept, .. }: &DecidedFace| {
                second_look.face(kept.face.n, &kept.model, &kept.signature, &present)
            };
            let current = faces.iter().filter(|decided| Some(decided.seq) == state.shows);
            let photo = Review {
                image_id,
                follows: state.seq,
                identity_seq: known.identity.seq,
                faces: current.map(unknown).collect(),
                persons: known.people.len(),
            };
            review(photo, &self.rules.policy).map(|event| (state, event))
        };
        Ok(images.into_iter().zip(states).zip(photos).filter_map(look).collect())
    }

    /// Says how many faces are somebody by this event, unless the photo has moved since it stood there.
    async fn record_review(&self, state: PhotoState, event: Event) -> Result<usize, RegisterError> {
        let Event::FacesReviewed(reviewed) = &event else { return Ok(0) };
        let image = reviewed.image_id.clone();
        let Some(shown) = self.shown().photo(&image).await?.filter(|shown| shown.state == state) else { return Ok(0) };
        let persons: Vec<PersonId> = shown.state.persons.iter().copied().chain(reviewed.persons()).collect();
        let face = |n: u16| FaceId { image: image.clone(), n };
        let identified =
            reviewed.faces.iter().filter_map(|reviewed| Some((face(reviewed.n), reviewed.verdict.person()?)));
        let merges = self.index.known().people.merges().clone();
        let commit = Commit {
            actor: self.rules.actor.clone(),
            identified: identified.collect(),
            mutations: self.rules.projection.photo(&shown.event, shown.when, &persons, &[], &merges),
            events: vec![event],
            ..Commit::without_events(
                self.clock.now(),
                Some(PhotoGuard { image: image.clone(), before: Some(shown.state) }),
            )
        };
        match self.store.commit(&commit).await {
            Ok(recorded) => self.announce(&recorded).await,
            // Somebody was faster, or the platform removed the photo: another time, or never.
            Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        // Persons may have been joined since the decision: the join saw no tag to follow it, so the photo does.
        self.index.follow().await?;
        let now = self.index.merges();
        if *now != merges {
            self.shown().reassert(&image, &now).await?;
        }
        Ok(commit.identified.len())
    }
}
