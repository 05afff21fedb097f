//! Review of unidentified faces with the templates enrolled since.

use std::sync::{MutexGuard, PoisonError};

use sparks_domain::{Event, FaceId, ImageId, PhotoState, ProjectionContext, ReviewInput, Reviewer, review};

use super::{Consolidator, MergeError, PAGE};
use crate::{Commit, CommitError, DecidedFace, FaceSearch, PhotoGuard};

/// The number of pages per batch, so that other work does not wait for long.
const PAGES: usize = 16;

/// The result of reviewing a batch of faces.
#[derive(Debug, Default)]
pub(super) struct ReviewReport {
    /// The number of faces identified.
    pub identified: usize,
    /// Whether faces are left that were not reviewed with the current state of the gallery.
    pub has_more: bool,
}

/// The position of a review of all unidentified faces.
#[derive(Debug, Default)]
pub(super) struct ReviewCursor {
    /// The gallery's revision at the start of the current review, if one is in progress.
    started: Option<u64>,
    /// The gallery's revision at the start of the last complete review.
    completed: Option<u64>,
    /// The last reviewed face.
    after: Option<FaceId>,
}

impl ReviewCursor {
    /// Starts or continues a review. Returns the face to continue after (`Some(None)` is the beginning), or `None` if the gallery
    /// has not changed since the last complete review.
    fn next(&mut self, revision: u64) -> Option<Option<FaceId>> {
        if self.started.is_none() && self.completed == Some(revision) {
            return None;
        }
        self.started.get_or_insert(revision);
        Some(self.after.clone())
    }

    /// Records that all faces up to this one are reviewed; `None` means all faces.
    fn advance(&mut self, after: Option<FaceId>) {
        if after.is_none() {
            self.completed = self.started.take();
        }
        self.after = after;
    }
}

impl Consolidator {
    /// Reviews all unidentified faces. Returns the number of faces identified.
    pub async fn review(&self) -> Result<usize, MergeError> {
        let mut identified = 0;
        loop {
            let reviewed = self.review_batch().await?;
            identified += reviewed.identified;
            if !reviewed.has_more {
                return Ok(identified);
            }
        }
    }

    /// Reviews the next batch of unidentified faces. Does nothing if the gallery has not changed since the last complete review.
    pub(super) async fn review_batch(&self) -> Result<ReviewReport, MergeError> {
        self.index.catch_up().await?;
        let revision = self.index.state().revision();
        let Some(mut after) = self.review_cursor().next(revision) else { return Ok(ReviewReport::default()) };
        let mut identified = 0;
        for _ in 0..PAGES {
            let page = self.store.unidentified(after.as_ref(), PAGE).await?;
            after = page.last().map(|decided| decided.kept.face.clone());
            for (state, event) in self.review_faces(&page).await? {
                identified += self.commit_review(state, event).await?;
            }
            self.review_cursor().advance(after.clone());
            if after.is_none() {
                break;
            }
        }
        let revision = self.index.state().revision();
        Ok(ReviewReport { identified, has_more: self.review_cursor().completed != Some(revision) })
    }

    fn review_cursor(&self) -> MutexGuard<'_, ReviewCursor> {
        self.review_cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reviews these faces. Returns the events of the photos in which a face is identified now, with the states they follow.
    async fn review_faces(&self, faces: &[DecidedFace]) -> Result<Vec<(PhotoState, Event)>, MergeError> {
        let photos: Vec<&[DecidedFace]> = faces.chunk_by(|a, b| a.kept.face.image == b.kept.face.image).collect();
        let images: Vec<ImageId> = photos.iter().map(|faces| faces[0].kept.face.image.clone()).collect();
        let states = self.store.photos(&images).await?;
        let gallery = self.index.state();
        let reviewer = Reviewer::new(&gallery.gallery, self.config.scale, &self.config.policy);
        let review_photo = |((image_id, state), faces): ((ImageId, Option<PhotoState>), &[DecidedFace])| {
            let state = state?;
            let present = gallery.people.merges().all_current(&state.persons);
            let search = |DecidedFace { kept, .. }: &DecidedFace| {
                reviewer.search(kept.face.n, &kept.model, &kept.signature, &present)
            };
            let current = faces.iter().filter(|decided| Some(decided.seq) == state.projected_seq);
            let photo = ReviewInput {
                image_id,
                follows: state.seq,
                identity_seq: gallery.identity.seq,
                faces: current.map(search).collect(),
                persons: gallery.people.len(),
            };
            review(photo, &self.config.policy).map(|event| (state, event))
        };
        Ok(images.into_iter().zip(states).zip(photos).filter_map(review_photo).collect())
    }

    /// Commits a review, unless the state of the photo has changed since. Returns the number of faces identified.
    async fn commit_review(&self, state: PhotoState, event: Event) -> Result<usize, MergeError> {
        let Event::FacesReviewed(reviewed) = &event else { return Ok(0) };
        let image = reviewed.image_id.clone();
        let current = self.photo_rows().current_event(&image).await?;
        let Some((projected, state)) = current
            .filter(|(projected, current)| matches!(projected.event, Event::PhotoProcessed(_)) && *current == state)
        else {
            return Ok(0);
        };
        let face = |n: u16| FaceId { image: image.clone(), n };
        let identified =
            reviewed.faces.iter().filter_map(|reviewed| Some((face(reviewed.n), reviewed.verdict.person()?)));
        let merges = self.index.state().people.merges().clone();
        let when = self.clock.now();
        let context = ProjectionContext {
            before: Some(&state),
            projected: Some(&projected),
            ..ProjectionContext::new(when, &merges)
        };
        let commit = Commit {
            actor: self.config.actor.clone(),
            identified: identified.collect(),
            mutations: self.config.projection.project(&event, &context),
            events: vec![event],
            ..Commit::without_events(when, Some(PhotoGuard { image: image.clone(), before: Some(state) }))
        };
        match self.store.commit(&commit).await {
            Ok(recorded) => self.publish(&recorded).await,
            // Conflict, or the platform has deleted the photo: a later review sees the photo as it is then.
            Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        // A merge recorded since the decision found no tag of this photo to update, so the rows are written again here.
        self.index.catch_up().await?;
        let current = self.index.merges();
        if *current != merges {
            self.photo_rows().rewrite(&image, &current).await?;
        }
        Ok(commit.identified.len())
    }
}
