//! A face service: templates that a search finds only after a while, and still finds for a while after they were removed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use sparks_domain::{Candidate, FaceId, PersonId, Signature};
use sparks_engine::{DependencyError, Enrollment, FaceCollection, IndexError, Probe, RemovedFaces};
use tokio::time::Instant;

use crate::{
    link::Linked,
    photo_content::{Look, look_at},
};

/// What a service stores of a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceKind {
    /// Signatures under IDs that the worker chooses, as Pinecone does.
    Signatures,
    /// Faces that it finds in pixels, under IDs of its own, as Rekognition does. It knows persons, but no photos.
    Pixels,
}

/// The templates of a face service. Clones share them.
#[derive(Clone)]
pub(crate) struct FaceService {
    pub kind: ServiceKind,
    /// The longest time until a search notices a change.
    lag: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    templates: BTreeMap<u64, Template>,
    last: u64,
    /// Removed templates, and until when a search finds them.
    removed: Vec<(Instant, Template)>,
}

/// One template.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub person: PersonId,
    /// The ID of the face, where the worker chooses it.
    pub face: Option<FaceId>,
    appearance: Appearance,
    searchable: Instant,
}

/// What a service compares.
#[derive(Debug, Clone)]
enum Appearance {
    /// Of a model: each has a namespace of its own.
    Signature(String, Signature),
    Look(Look),
}

impl Appearance {
    /// Returns the similarity; `None` where both cannot be compared.
    fn similarity(&self, other: &Self) -> Option<f32> {
        match (self, other) {
            (Self::Signature(model, a), Self::Signature(other, b)) => (model == other).then(|| a.similarity(b)),
            (Self::Look(a), Self::Look(b)) => Some(if a == b { 0.99 } else { 0.1 }),
            _ => None,
        }
    }
}

impl FaceService {
    pub fn new(kind: ServiceKind, lag: Duration) -> Self {
        Self { kind, lag, state: Arc::default() }
    }

    /// Returns all templates that are not removed.
    pub fn templates(&self) -> Vec<Template> {
        self.lock().templates.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn noticed(&self) -> Instant {
        Instant::now() + self.lag.mul_f64(fastrand::f64())
    }

    fn appearance(&self, probe: &Probe) -> Option<Appearance> {
        match self.kind {
            ServiceKind::Signatures => {
                let signature = probe.signature.clone()?;
                Some(Appearance::Signature(probe.model.clone(), signature))
            }
            ServiceKind::Pixels => look_at(&probe.pixels, probe.bounds).map(Appearance::Look),
        }
    }

    fn search(&self, probe: &Probe, most: usize) -> Vec<Candidate> {
        let Some(wanted) = self.appearance(probe) else { return Vec::new() };
        let now = Instant::now();
        let mut state = self.lock();
        state.removed.retain(|(until, _)| *until > now);
        let searchable = state.templates.values().filter(|template| template.searchable <= now);
        let found = searchable.chain(state.removed.iter().map(|(_, template)| template));
        let mut nearest: BTreeMap<PersonId, f32> = BTreeMap::new();
        for template in found {
            let Some(similarity) = template.appearance.similarity(&wanted) else { continue };
            nearest.entry(template.person).and_modify(|s| *s = s.max(similarity)).or_insert(similarity);
        }
        let mut found: Vec<Candidate> =
            nearest.into_iter().map(|(person, similarity)| Candidate { person, similarity }).collect();
        found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.person.cmp(&b.person)));
        found.truncate(most);
        found
    }

    /// Adds a template. One of a signature replaces the one with its ID.
    fn add(&self, Enrollment { person, face, probe, .. }: &Enrollment) -> Option<u64> {
        let appearance = self.appearance(probe)?;
        let searchable = self.noticed();
        let face = (self.kind == ServiceKind::Signatures).then(|| face.clone());
        let mut state = self.lock();
        if face.is_some() {
            state.templates.retain(|_, known| (known.person, &known.face) != (*person, &face));
        }
        state.last += 1;
        let id = state.last;
        state.templates.insert(id, Template { person: *person, face, appearance, searchable });
        Some(id)
    }

    fn ids(&self, is_wanted: impl Fn(&Template) -> bool) -> Vec<u64> {
        self.lock().templates.iter().filter(|(_, template)| is_wanted(template)).map(|(id, _)| *id).collect()
    }

    fn remove(&self, ids: &[u64]) {
        let until = self.noticed();
        let mut state = self.lock();
        for id in ids {
            let gone = state.templates.remove(id).filter(|template| template.searchable <= Instant::now());
            state.removed.extend(gone.map(|template| (until, template)));
        }
    }
}

impl Linked<FaceService> {
    async fn call<T>(&self, name: impl Fn() -> String, work: impl FnOnce() -> T) -> Result<T, IndexError> {
        self.link.call(name, async { Ok::<_, DependencyError>(work()) }).await.map_err(IndexError::from)
    }

    async fn remove_where(&self, is_wanted: impl Fn(&Template) -> bool) -> Result<(), IndexError> {
        let ids = self.call(|| "faces.list".into(), || self.inner.ids(is_wanted)).await?;
        match ids.is_empty() {
            true => Ok(()),
            false => self.call(|| format!("faces.delete {ids:?}"), || self.inner.remove(&ids)).await,
        }
    }
}

#[async_trait]
impl FaceCollection for Linked<FaceService> {
    async fn nearest(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError> {
        self.call(|| "faces.search".into(), || self.inner.search(probe, most)).await
    }

    async fn compare(&self, probe: &Probe, others: &[(PersonId, Probe)]) -> Result<Vec<Candidate>, IndexError> {
        let wanted = self.inner.appearance(probe);
        let compare = |(person, other): &(PersonId, Probe)| {
            let similarity = wanted.as_ref()?.similarity(&self.inner.appearance(other)?)?;
            Some(Candidate { person: *person, similarity })
        };
        self.call(|| "faces.compare".into(), || others.iter().filter_map(compare).collect()).await
    }

    async fn enroll(&self, enrollments: &[Enrollment], again: bool) -> Result<(), IndexError> {
        for enrollment in enrollments {
            let person = enrollment.person;
            let is_it = |t: &Template| t.person == person && t.face.as_ref() == Some(&enrollment.face);
            let is_known = again && !self.call(|| "faces.fetch".into(), || self.inner.ids(is_it)).await?.is_empty();
            if !is_known {
                let name = || format!("faces.enroll {person} {}", enrollment.face);
                self.call(name, || self.inner.add(enrollment)).await?;
            }
        }
        Ok(())
    }

    async fn template_counts(&self, persons: &[PersonId]) -> Result<BTreeMap<PersonId, usize>, IndexError> {
        let templates = self.call(|| "faces.list".into(), || self.inner.templates()).await?;
        let mut counts = BTreeMap::new();
        for template in templates.into_iter().filter(|template| persons.contains(&template.person)) {
            *counts.entry(template.person).or_default() += 1;
        }
        Ok(counts)
    }

    async fn replace(&self, enrollment: &Enrollment, persons: &[PersonId]) -> Result<bool, IndexError> {
        let of_persons = |template: &Template| persons.contains(&template.person);
        let before = self.call(|| "faces.list".into(), || self.inner.ids(of_persons)).await?;
        let name = || format!("faces.enroll {} {}", enrollment.person, enrollment.face);
        let Some(now) = self.call(name, || self.inner.add(enrollment)).await? else { return Ok(true) };
        if !before.is_empty() {
            self.call(|| format!("faces.delete {before:?}"), || self.inner.remove(&before)).await?;
        }
        let after = self.call(|| "faces.list".into(), || self.inner.ids(of_persons)).await?;
        Ok(after.into_iter().all(|id| id == now))
    }

    async fn remove_faces(&self, removed: &RemovedFaces<'_>, persons: &[PersonId]) -> Result<(), IndexError> {
        self.remove_where(|template| {
            let is_removed = template.face.as_ref().is_some_and(|face| removed.contains(face));
            is_removed && persons.contains(&template.person)
        })
        .await
    }

    async fn remove_persons(&self, persons: &[PersonId]) -> Result<(), IndexError> {
        self.remove_where(|template| persons.contains(&template.person)).await
    }

    async fn check(&self) -> Result<(), IndexError> {
        self.call(|| "faces.check".into(), || ()).await
    }
}
