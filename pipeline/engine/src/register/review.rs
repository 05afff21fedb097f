//! Faces that nobody knew, looked at again.

use sparks_domain::{Event, FaceId, PersonId, Review, review};

use super::{PAGE, Register, RegisterError};
use crate::{Commit, CommitError, DecidedFace, PhotoGuard};

impl Register {
    /// Looks again at the faces that nobody knew. Says how many are somebody now.
    pub async fn review(&self) -> Result<usize, RegisterError> {
        self.index.follow().await?;
        let (mut identified, mut after) = (0, None);
        loop {
            let page = self.store.unidentified(after.as_ref(), PAGE).await?;
            let Some(last) = page.last().map(|decided| decided.kept.face.clone()) else { return Ok(identified) };
            for photo in page.chunk_by(|a, b| a.kept.face.image == b.kept.face.image) {
                identified += self.review_photo(photo).await?;
            }
            after = Some(last);
        }
    }

    async fn review_photo(&self, faces: &[DecidedFace]) -> Result<usize, RegisterError> {
        let Some(image_id) = faces.first().map(|decided| decided.kept.face.image.clone()) else { return Ok(0) };
        let Some(shown) = self.shown().photo(&image_id).await? else { return Ok(0) };
        let (photo, merges, policy) = {
            let known = self.index.known();
            let merges = known.people.merges();
            // Two faces of one photo are two persons.
            let present = merges.all_now(&shown.state.persons);
            let nearest = |decided: &DecidedFace| {
                let kept = &decided.kept;
                let most = self.rules.policy.candidates.max(2) + present.len();
                let mut candidates = known.gallery.nearest(&kept.model, &kept.signature, most);
                candidates.retain(|candidate| !present.contains(&candidate.person));
                (kept.face.n, candidates)
            };
            let current = faces.iter().filter(|decided| Some(decided.seq) == shown.state.shows);
            let photo = Review {
                image_id: image_id.clone(),
                follows: shown.state.seq,
                identity_seq: known.identity.seq,
                faces: current.map(nearest).collect(),
                persons: known.people.len(),
            };
            (photo, merges.clone(), &self.rules.policy)
        };
        let Some(event) = review(photo, policy) else { return Ok(0) };
        let Event::FacesReviewed(reviewed) = &event else { return Ok(0) };
        let persons: Vec<PersonId> = shown.state.persons.iter().copied().chain(reviewed.persons()).collect();
        let identified = reviewed
            .faces
            .iter()
            .filter_map(|face| Some((FaceId { image: image_id.clone(), n: face.n }, face.verdict.person()?)));
        let commit = Commit {
            actor: self.rules.actor.clone(),
            identified: identified.collect(),
            mutations: self.rules.projection.photo(&shown.event, shown.when, &persons, &[], &merges),
            events: vec![event],
            ..Commit::without_events(self.clock.now(), Some(PhotoGuard { image: image_id, before: Some(shown.state) }))
        };
        match self.store.commit(&commit).await {
            Ok(_) => Ok(commit.identified.len()),
            // Somebody was faster, or the platform removed the photo: another time, or never.
            Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}
