//! Faces that nobody knew, looked at again.

use sparks_domain::{Event, FaceId, PersonId, Review, SecondLook, review};

use super::{PAGE, Register, RegisterError};
use crate::{Commit, CommitError, DecidedFace, FaceIndex, PhotoGuard, shown::ShownPhoto};

impl Register {
    /// Looks again at the faces that nobody knew. Says how many are somebody now.
    pub async fn review(&self) -> Result<usize, RegisterError> {
        self.index.follow().await?;
        let (mut identified, mut after) = (0, None);
        loop {
            let page = self.store.unidentified(after.as_ref(), PAGE).await?;
            let Some(last) = page.last().map(|decided| decided.kept.face.clone()) else { return Ok(identified) };
            let mut photos = Vec::new();
            for faces in page.chunk_by(|a, b| a.kept.face.image == b.kept.face.image) {
                let shown = self.shown().photo(&faces[0].kept.face.image).await?;
                photos.extend(shown.map(|shown| (shown, faces)));
            }
            for (shown, event) in self.look_again(photos) {
                identified += self.record_review(shown, event).await?;
            }
            after = Some(last);
        }
    }

    /// The photos in which somebody is recognised now, with the events that say so.
    fn look_again(&self, photos: Vec<(ShownPhoto, &[DecidedFace])>) -> Vec<(ShownPhoto, Event)> {
        let known = self.index.known();
        let second_look = SecondLook::new(&known.gallery, self.rules.scale, &self.rules.policy);
        let look = |(shown, faces): (ShownPhoto, &[DecidedFace])| {
            let present = known.people.merges().all_now(&shown.state.persons);
            let unknown = |DecidedFace { kept, .. }: &DecidedFace| {
                second_look.face(kept.face.n, &kept.model, &kept.signature, &present)
            };
            let current = faces.iter().filter(|decided| Some(decided.seq) == shown.state.shows);
            let photo = Review {
                image_id: shown.event.image_id.clone(),
                follows: shown.state.seq,
                identity_seq: known.identity.seq,
                faces: current.map(unknown).collect(),
                persons: known.people.len(),
            };
            review(photo, &self.rules.policy).map(|event| (shown, event))
        };
        photos.into_iter().filter_map(look).collect()
    }

    /// Says how many faces are somebody by this event.
    async fn record_review(&self, shown: ShownPhoto, event: Event) -> Result<usize, RegisterError> {
        let Event::FacesReviewed(reviewed) = &event else { return Ok(0) };
        let image = reviewed.image_id.clone();
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
