//! New decisions about photos that are decided already: by another analyzer or another threshold.
//!
//! The trial gallery starts empty and is filled photo by photo, in the order of the first decisions. So the result depends only on
//! the photos, the analyzer and the earlier decisions: a repeated run has the same result, and an interrupted run is continued by
//! repeating it.

mod decided_photos;
mod report;
mod trial_gallery;

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{StreamExt, stream};
use sparks_domain::{
    Event, Face, IdentificationInput, IdentityHead, ImageId, Key, PersonId, PhotoProcessed, PhotoStatus,
    RedecidedPhoto, Scale, Verdict, redecide,
};

use crate::{
    CommitError, CommitReceipt, FaceSearch, Failure, GalleryIndex, Maintenance, Pipeline, ProbeSet, RemovedFaces,
    stages::{PersonLifecycle, RedecidedCommit, Reprocessor, conflict_backoff, wait_after_conflict},
};

use self::{decided_photos::DecidedPhoto, report::PhotoComparison, trial_gallery::TrialGallery};
pub use decided_photos::RedecideSurvey;
pub use report::{FaceChange, FaceDifference, PersonFaceCounts, RedecideReport};
pub use trial_gallery::SearchService;

/// Decides photos again, or reports what would change.
pub struct Redecision {
    /// The event log.
    pub store: Arc<dyn Maintenance>,
    /// The pipeline with the new analyzer and policy.
    pub pipeline: Arc<Pipeline>,
    /// The gallery of the current decisions.
    pub index: Arc<GalleryIndex>,
    /// Returns the similarity scale of a model.
    pub scale: fn(&str) -> Option<Scale>,
    /// The face service that is searched too, if it has a similarity scale of its own.
    pub service: Option<SearchService>,
    /// The number of candidates per face.
    pub candidates: usize,
    /// The number of photos analyzed concurrently.
    pub jobs: usize,
}

/// A photo that was read and analyzed.
struct ReanalyzedPhoto {
    decided: DecidedPhoto,
    probes: ProbeSet,
}

/// The result of reading a photo.
enum ReadResult {
    Analyzed(Box<ReanalyzedPhoto>),
    Unreadable {
        image: ImageId,
        reason: String,
        persons: Vec<PersonId>,
    },
    /// The rows of the photo are not projected from a decision of a worker.
    Undecided,
}

impl Redecision {
    /// Lists the photos to decide again. `progress` receives the number of events read.
    pub async fn survey(&self, progress: impl Fn(u64)) -> Result<RedecideSurvey, Failure> {
        Ok(RedecideSurvey::of(self.store.as_ref(), progress).await?)
    }

    /// Decides these photos again, and with `apply` commits what has changed. `progress` receives the number of photos done.
    pub async fn run(
        &self,
        survey: &RedecideSurvey,
        apply: bool,
        progress: impl Fn(u64),
    ) -> Result<RedecideReport, Failure> {
        let mut report = RedecideReport::default();
        let mut gallery = TrialGallery::new(&self.index, self.candidates, self.service.clone());
        let mut photos = stream::iter(&survey.photos).map(|image| self.read(image)).buffered(self.jobs.max(1));
        while let Some(photo) = photos.next().await {
            match photo? {
                ReadResult::Analyzed(photo) => {
                    report.photos += 1;
                    self.decide(*photo, apply, &mut gallery, &mut report).await?;
                }
                ReadResult::Unreadable { image, reason, persons } => {
                    report.present.extend(gallery.merges().all_current(&persons));
                    report.unreadable.push((image, reason));
                }
                ReadResult::Undecided => {}
            }
            progress(report.photos + report.unreadable.len() as u64);
        }
        report.merges = gallery.consolidate(self.scale);
        if apply {
            self.update_persons(survey, &mut report).await?;
        }
        Ok(report)
    }

    async fn read(&self, image: &ImageId) -> Result<ReadResult, Failure> {
        let Some(decided) = DecidedPhoto::read(self.store.as_ref(), image).await? else {
            return Ok(ReadResult::Undecided);
        };
        Ok(match Reprocessor(&self.pipeline).analyze_variant(&decided.event.variants.large).await? {
            Ok(probes) => ReadResult::Analyzed(Box::new(ReanalyzedPhoto { decided, probes })),
            Err(reason) => ReadResult::Unreadable { image: image.clone(), reason, persons: decided.state.persons },
        })
    }

    async fn decide(
        &self,
        photo: ReanalyzedPhoto,
        apply: bool,
        gallery: &mut TrialGallery,
        report: &mut RedecideReport,
    ) -> Result<(), Failure> {
        let ReanalyzedPhoto { mut decided, probes } = photo;
        let Some((redecided, receipt)) = self.decide_and_commit(&mut decided, &probes, apply, gallery).await? else {
            report.changed_meanwhile += 1;
            return Ok(());
        };
        let Some(Event::PhotoProcessed(now)) = redecided.events.last() else { return Ok(()) };
        report.changed += u64::from(redecided.has_changes);
        let (policy, persons) = (&self.pipeline.config.policy, gallery.persons());
        let is_match = |face: &Face| matches!(policy.identify(&face.candidates, persons), Some(Verdict::Matched(_)));
        let merges = gallery.merges();
        let comparison = PhotoComparison { before: &decided.event, now, pairs: &redecided.pairs, merges: &merges };
        report.compare(&comparison, |person| gallery.has_template(person), is_match);
        let first_templates = first_templates(now, gallery);
        gallery.enroll(now, &probes.faces);
        let reprocessor = Reprocessor(&self.pipeline);
        match &receipt {
            None if !apply => gallery.reserve_numbers(&redecided.events),
            None => {
                let before = &decided.event;
                let position_before = |position: &usize| {
                    redecided.pairs.iter().find(|(_, now)| now == position).map(|(before, _)| *before)
                };
                let positions: Vec<usize> = first_templates.iter().filter_map(position_before).collect();
                reprocessor.publish_again(&decided.recorded).await?;
                if let Some(rejected) = decided.undone_rejection(self.store.as_ref()).await? {
                    reprocessor.reject_again(rejected).await?;
                }
                reprocessor.complete_effects(before, &probes.pixels).await?;
                reprocessor.enroll(before, decided.recorded.seq, &positions, &probes.pixels).await?;
            }
            Some(receipt) => {
                if let Some(rejected) = decided.rejection.take() {
                    reprocessor.reject_again(rejected).await?;
                }
                reprocessor.apply_effects(receipt, Arc::clone(&probes.pixels)).await?;
                if let Some((now, recorded)) = receipt.photo() {
                    reprocessor.enroll(now, recorded.seq, &first_templates, &probes.pixels).await?;
                }
            }
        }
        Ok(())
    }

    /// Decides and commits, again after each conflict. Returns `None` if the photo was replaced or deleted meanwhile.
    async fn decide_and_commit(
        &self,
        decided: &mut DecidedPhoto,
        probes: &ProbeSet,
        apply: bool,
        gallery: &mut TrialGallery,
    ) -> Result<Option<(RedecidedPhoto, Option<CommitReceipt>)>, Failure> {
        let (mut taken, mut backoff) = (BTreeSet::new(), conflict_backoff());
        let image = decided.event.image_id.clone();
        loop {
            if apply {
                gallery.catch_up(&self.index, self.store.as_ref()).await?;
            }
            let identity = IdentityHead { taken: taken.clone(), ..gallery.identity.clone() };
            let identification = IdentificationInput {
                analyzer: self.pipeline.ports.analyzer.name().to_owned(),
                faces: probes.faces.clone(),
                search: gallery.search(probes).await?,
                identity: identity.clone(),
            };
            let policy = &self.pipeline.config.policy;
            let redecided = redecide(&decided.state, &decided.event, identification, &gallery.merges(), policy);
            let Ok(redecided) = redecided else { return Ok(None) };
            if !apply || !redecided.has_changes {
                return Ok(Some((redecided, None)));
            }
            let mut models = gallery.models.clone();
            models.extend(probes.faces.iter().map(|face| face.model.clone()));
            let reprocessor = Reprocessor(&self.pipeline);
            let commit = reprocessor.commit(RedecidedCommit {
                image: &image,
                state: &decided.state,
                events: redecided.events.clone(),
                identity,
                faces: &probes.faces,
                models: &models,
            });
            match commit.await {
                Ok(receipt) => return Ok(Some((redecided, Some(receipt)))),
                Err(CommitError::IdentityMoved) => {}
                Err(CommitError::NumberTaken(person)) => drop(taken.insert(person.number())),
                Err(CommitError::PhotoMoved) => match DecidedPhoto::read(self.store.as_ref(), &image).await? {
                    Some(now) if now.event.source.version == decided.event.source.version => *decided = now,
                    _ => return Ok(None),
                },
                Err(CommitError::RowMissing(_)) => return Ok(None),
                Err(error @ CommitError::Store(_)) => return Err(error.into()),
            }
            self.pipeline.count_conflict();
            wait_after_conflict(&mut backoff, "the set of known persons").await?;
            // After the wait: others may have allocated persons meanwhile.
            self.index.refresh().await?;
        }
    }

    /// After all photos: a person whose crop shows a face that is no longer theirs gets another crop. A person in no photo is
    /// forgotten, unless they have a display name.
    async fn update_persons(&self, survey: &RedecideSurvey, report: &mut RedecideReport) -> Result<(), Failure> {
        self.index.refresh().await?;
        let photos: BTreeSet<&ImageId> = survey.photos.iter().collect();
        let (people, merges) = (self.index.state().people.clone(), self.index.merges());
        for (id, person) in people.iter().filter(|(_, person)| photos.contains(&person.face.image)) {
            let image = &person.face.image;
            let Some(state) = self.store.photo(image).await? else { continue };
            if state.status == PhotoStatus::Deleted || merges.all_current(&state.persons).contains(&id) {
                continue;
            }
            if !report.present.contains(&id) && self.is_named(id).await? {
                report.without_photos.push(id);
            } else {
                PersonLifecycle(&self.pipeline).after_faces_removed(&RemovedFaces::all(image), &[id]).await?;
            }
        }
        // An interrupted run may have forgotten persons and not erased all their signatures.
        for (id, person) in people.forgotten().filter_map(|id| Some((id, people.get_forgotten(id)?))) {
            if photos.contains(&person.face.image) {
                let removed = RemovedFaces::all(&person.face.image);
                PersonLifecycle(&self.pipeline).after_faces_removed(&removed, &[id]).await?;
            }
        }
        Ok(())
    }

    async fn is_named(&self, person: PersonId) -> Result<bool, Failure> {
        let row = self.store.get(&Key::person(person)).await?;
        Ok(row.is_some_and(|row| row.text("displayName").is_some_and(|name| name != person.to_string())))
    }
}

/// Returns the positions of the faces that are the first template of their person: a face service may not have them enrolled.
fn first_templates(photo: &PhotoProcessed, gallery: &TrialGallery) -> Vec<usize> {
    let is_first = |position: &usize| {
        let face = &photo.faces[*position];
        let is_match = face.candidates.first().is_some_and(|candidate| candidate.similarity >= face.threshold);
        face.template && !is_match && face.verdict.person().is_some_and(|person| !gallery.has_template(person))
    };
    (0..photo.faces.len()).filter(is_first).collect()
}
