//! Adoption of persons.

use std::{collections::HashMap, sync::Arc};

use sparks_domain::{
    AdoptionIssue, Attributes, CropAnalysis, Event, FaceId, Item, Key, Merges, NumbersReserved, PersonId,
    PersonPictured, PersonRow, ProjectionContext, Signature, Version, object_keys,
};

use super::{Adoption, AdoptionRun, adoption_state::AdoptionState};
use crate::{
    AnalyzeError, Cause, Commit, CommitError, Failure, ImageError, ObjectsError, Pipeline, StoredFace,
    stages::{Images, Notifier, conflict_backoff, wait_after_conflict},
};

/// The crop of a person, analyzed.
struct AnalyzedCrop {
    analysis: CropAnalysis,
    signature: Option<Signature>,
}

/// An identity event to record.
struct EventDraft<'r> {
    event: Event,
    /// The row that the event was made of. What it already contains is not written again.
    row: Option<&'r Attributes>,
}

impl Adoption {
    /// Records that all numbers up to `highest` are allocated, unless the event log implies it.
    pub(super) async fn reserve_numbers(&self, highest: u32, run: &mut AdoptionRun<'_>) -> Result<(), Failure> {
        let draft = |state: &AdoptionState| {
            let (up_to, identity_seq) = (highest.max(state.identity.counter), state.seq());
            let event = Event::NumbersReserved(NumbersReserved { v: Version, up_to, identity_seq });
            (up_to > state.people.highest_number()).then_some(EventDraft { event, row: None })
        };
        if let Some(Event::NumbersReserved(event)) = self.record(&mut run.state, None, draft).await? {
            run.report.reserved = Some(event.up_to);
        }
        Ok(())
    }

    /// Adopts those of these persons that are not in the event log.
    pub(super) async fn adopt_persons(&self, persons: &[PersonId], run: &mut AdoptionRun<'_>) -> Result<(), Failure> {
        let mut wanted = Vec::new();
        for person in persons {
            let (people, is_absorbed) = (&run.state.people, run.state.people.merges().is_absorbed(*person));
            match people.is_recorded(*person) {
                true if people.is_forgotten(*person) || is_absorbed => {
                    run.report.add_issues([AdoptionIssue::ForgottenOrMerged(*person)]);
                }
                true if self.lacks_template(*person, &run.state).await? => wanted.push(*person),
                true => run.report.known += 1,
                false => wanted.push(*person),
            }
        }
        let keys: Vec<Key> = wanted.iter().map(|person| Key::person(*person)).collect();
        let rows = self.store.batch_get(&keys).await?;
        let mut rows: HashMap<Key, Item> = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
        for (person, crop) in self.analyze_crops(wanted).await? {
            let Some(row) = rows.remove(&Key::person(person)) else { continue };
            self.adopt_person(person, &row, crop, run).await?;
        }
        Ok(())
    }

    /// Whether the person was adopted without a template and has no stored face since.
    async fn lacks_template(&self, person: PersonId, state: &AdoptionState) -> Result<bool, Failure> {
        Ok(state.unrecognisable.contains(&person) && self.store.faces_of(&[person]).await?.is_empty())
    }

    async fn adopt_person(
        &self,
        person: PersonId,
        row: &Item,
        crop: AnalyzedCrop,
        run: &mut AdoptionRun<'_>,
    ) -> Result<(), Failure> {
        let now = self.pipeline.ports.clock.now();
        let Ok(person_row) = PersonRow::read(row, now) else { return Ok(()) };
        let analyzer = self.pipeline.ports.analyzer.name();
        let AnalyzedCrop { analysis, signature } = crop;
        let face = FaceId::of_crop(person);
        let template = match &analysis {
            CropAnalysis::Usable(crop) => signature.map(|signature| StoredFace {
                face: face.clone(),
                model: crop.model.clone(),
                signature,
                person: Some(person),
                template: true,
            }),
            _ => None,
        };
        let draft = |state: &AdoptionState| match state.people.is_recorded(person) {
            false => {
                let event = person_row.clone().into_event(analyzer, analysis.clone(), state.seq());
                Some(EventDraft { event: Event::PersonAdopted(event), row: Some(&row.attributes) })
            }
            // Adopted earlier without a template, which the crop provides now.
            true if template.is_some() && state.unrecognisable.contains(&person) => {
                let (face, identity_seq) = (face.clone(), state.seq());
                let event = Event::PersonPictured(PersonPictured { v: Version, person, face, identity_seq });
                Some(EventDraft { event, row: None })
            }
            // Adopted by another process meanwhile, or nothing has changed.
            true => None,
        };
        match self.record(&mut run.state, template.clone(), draft).await? {
            Some(Event::PersonPictured(_)) => run.report.newly_enrolled.push(person),
            Some(_) => run.report.persons += 1,
            None => run.report.known += 1,
        }
        if let Some(template) = template {
            run.duplicates.add(person, &template.model, &template.signature);
        }
        run.report.unrecognisable.extend(analysis.problem().map(|problem| (person, problem)));
        Ok(())
    }

    /// Records an identity event that is drafted from the current state, again after each conflict. Returns the event, or `None`
    /// if the draft is.
    async fn record<'r>(
        &self,
        state: &mut AdoptionState,
        template: Option<StoredFace>,
        draft: impl Fn(&AdoptionState) -> Option<EventDraft<'r>>,
    ) -> Result<Option<Event>, Failure> {
        let (ports, config) = (&self.pipeline.ports, &self.pipeline.config);
        let mut backoff = conflict_backoff();
        loop {
            let Some(EventDraft { event, row }) = draft(state) else { return Ok(None) };
            let when = ports.clock.now();
            if state.is_dry_run {
                state.apply(&event, when, &[]);
                return Ok(Some(event));
            }
            let mutations = config.projection.project(&event, &ProjectionContext::new(when, &Merges::default()));
            let commit = Commit {
                identity: Some(state.identity.clone()),
                actor: config.actor.clone(),
                mutations: mutations.into_iter().filter_map(|change| change.without_unchanged(row)).collect(),
                events: vec![event.clone()],
                signatures: template.clone().into_iter().collect(),
                ..Commit::without_events(when, None)
            };
            match self.store.commit(&commit).await {
                Ok(recorded) => {
                    state.apply(&event, when, &recorded);
                    Notifier(&self.pipeline).publish_once(&recorded).await;
                    return Ok(Some(event));
                }
                Err(CommitError::IdentityMoved) => state.catch_up(self.store.as_ref()).await?,
                // The platform has deleted the row.
                Err(CommitError::RowMissing(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            wait_after_conflict(&mut backoff, "the set of known persons").await?;
        }
    }

    /// Analyzes the crops of these persons concurrently.
    async fn analyze_crops(&self, persons: Vec<PersonId>) -> Result<Vec<(PersonId, AnalyzedCrop)>, Failure> {
        let analyze = |person: PersonId| {
            let pipeline = Arc::clone(&self.pipeline);
            (person, tokio::spawn(async move { analyze_crop(&pipeline, person).await }))
        };
        let tasks: Vec<_> = persons.into_iter().map(analyze).collect();
        let mut crops = Vec::with_capacity(tasks.len());
        for (person, task) in tasks {
            let crop = task.await.map_err(|error| Failure::new(Cause::Fault, error.to_string()))?;
            crops.push((person, crop?));
        }
        Ok(crops)
    }
}

/// Detects the face in the crop of a person. A missing or unreadable crop is a result, not a failure.
async fn analyze_crop(pipeline: &Pipeline, person: PersonId) -> Result<AnalyzedCrop, Failure> {
    let Pipeline { ports, config, .. } = pipeline;
    let without_signature = |analysis| Ok(AnalyzedCrop { analysis, signature: None });
    let unreadable = |reason: String| without_signature(CropAnalysis::Unreadable(reason));
    let object = match ports.objects.get(&object_keys::crop(person), config.max_bytes).await {
        Ok(object) => object,
        Err(ObjectsError::NotFound(_)) => return without_signature(CropAnalysis::NoCrop),
        Err(error @ ObjectsError::TooLarge { .. }) => return unreadable(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    let (bytes, version) = (object.bytes, object.version);
    let pixels = match Images(pipeline).run(move |processor| processor.decode(&bytes)).await {
        Ok(pixels) => Arc::new(pixels),
        Err(ImageError::Rejected(reason)) => return unreadable(reason.message),
        Err(unavailable) => return Err(unavailable.into()),
    };
    match ports.analyzer.analyze(pixels).await {
        Ok(faces) => {
            let (analysis, signature) = CropAnalysis::new(version, faces, &config.policy);
            Ok(AnalyzedCrop { analysis, signature })
        }
        Err(AnalyzeError::Panicked(panic)) => unreadable(panic.to_string()),
        Err(error) => Err(error.into()),
    }
}
