//! Review of unidentified faces with the templates enrolled since.

use std::sync::{Arc, MutexGuard, PoisonError};

use sparks_domain::{
    Event, FaceId, Gallery, IdentityHead, ImageId, PersonRegistry, PhotoState, ProjectionContext, ReviewInput,
    Reviewer, review,
};

use super::{ConsolidationConfig, Consolidator, MergeError, PAGE};
use crate::{Commit, CommitError, DecidedFace, FaceSearch, PhotoGuard};

/// The number of pages per batch, so that other work does not wait for long.
const PAGES: usize = 16;

/// The number of photos that are reviewed at a time: tens of milliseconds of CPU time.
const PHOTOS: usize = 32;

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
    /// Whether a conflict has prevented the identification of a face, so that another review is needed.
    has_conflict: bool,
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
            let has_conflict = std::mem::take(&mut self.has_conflict);
            self.completed = self.started.take().filter(|_| !has_conflict);
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
            for reviewed in self.review_faces(&page).await? {
                identified += self.commit_review(reviewed).await?;
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

    /// Reviews these faces. Returns the photos in which a face is identified now.
    async fn review_faces(&self, faces: &[DecidedFace]) -> Result<Vec<ReviewedPhoto>, MergeError> {
        let photos: Vec<&[DecidedFace]> = faces.chunk_by(|a, b| a.kept.face.image == b.kept.face.image).collect();
        let images: Vec<ImageId> = photos.iter().map(|faces| faces[0].kept.face.image.clone()).collect();
        let states = self.store.photos(&images).await?;
        let photos = photos.into_iter().zip(states).filter_map(|(faces, state)| Some((faces.to_vec(), state?)));
        let photos: Vec<(Vec<DecidedFace>, PhotoState)> = photos.collect();
        let mut reviewed = Vec::new();
        for photos in photos.chunks(PHOTOS) {
            let (photos, gallery, config) = (photos.to_vec(), self.reviewed_gallery(), self.config.clone());
            reviewed.extend(self.on_cpu(move || gallery.review(photos, &config)).await?);
        }
        Ok(reviewed)
    }

    fn reviewed_gallery(&self) -> ReviewedGallery {
        let state = self.index.state();
        let (gallery, people) = (state.gallery.clone(), Arc::clone(&state.people));
        ReviewedGallery { gallery, people, identity: state.identity.clone() }
    }

    /// Commits a review, unless the state of the photo has changed since. Returns the number of faces identified.
    async fn commit_review(&self, photo: ReviewedPhoto) -> Result<usize, MergeError> {
        let ReviewedPhoto { state, event, identity } = photo;
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
        let mut merges = self.index.merges();
        // An unmerge may identify a face otherwise. The condition is set where it costs nothing.
        let is_conditional =
            self.store.has_serial_commits() && reviewed.persons().any(|person| merges.has_absorbed(person));
        let when = self.clock.now();
        let context = ProjectionContext {
            before: Some(&state),
            projected: Some(&projected),
            ..ProjectionContext::new(when, &merges)
        };
        let commit = Commit {
            identity: is_conditional.then_some(identity),
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
            Err(CommitError::IdentityMoved) => {
                self.review_cursor().has_conflict = true;
                return Ok(0);
            }
            Err(error) => return Err(error.into()),
        }
        // A merge or unmerge recorded since the decision found no tag of this photo to update, so the rows are written again here.
        loop {
            self.index.catch_up().await?;
            let written = std::mem::replace(&mut merges, self.index.merges());
            if merges == written {
                return Ok(commit.identified.len());
            }
            self.photo_rows().rewrite(&image, &merges).await?;
        }
    }
}

/// A photo in which a review identifies faces.
struct ReviewedPhoto {
    /// The state of the photo that the event follows.
    state: PhotoState,
    event: Event,
    /// The identity event up to which persons were considered.
    identity: IdentityHead,
}

/// The gallery and the persons at the time of a review.
struct ReviewedGallery {
    gallery: Gallery,
    people: Arc<PersonRegistry>,
    identity: IdentityHead,
}

impl ReviewedGallery {
    /// Reviews the unidentified faces of these photos.
    fn review(&self, photos: Vec<(Vec<DecidedFace>, PhotoState)>, config: &ConsolidationConfig) -> Vec<ReviewedPhoto> {
        let reviewer = Reviewer::new(&self.gallery, config.scale, &config.policy);
        let review_photo = |(faces, state): (Vec<DecidedFace>, PhotoState)| {
            let present = self.people.merges().all_current(&state.persons);
            let search = |DecidedFace { kept, .. }: &DecidedFace| {
                reviewer.search(kept.face.n, &kept.model, &kept.signature, &present)
            };
            let current = faces.iter().filter(|decided| Some(decided.seq) == state.projected_seq);
            let photo = ReviewInput {
                image_id: faces.first()?.kept.face.image.clone(),
                follows: state.seq,
                identity_seq: self.identity.seq,
                faces: current.map(search).collect(),
                persons: self.people.len(),
            };
            let event = review(photo, &config.policy)?;
            Some(ReviewedPhoto { state, event, identity: self.identity.clone() })
        };
        photos.into_iter().filter_map(review_photo).collect()
    }
}
