//! The face index of a face service, completed by the gallery for persons that the service cannot find yet.
//!
//! A service finds enrolled faces only after a while (eventual consistency). The gallery reads the event log and has them at once.
//! So each face is searched at the service and among the newest persons of the gallery. Where signatures are missing, the service
//! compares the face with the crops of the newest persons.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use sparks_domain::{
    Candidate, DetectedFace, FaceBox, FaceCandidates, FaceId, FacePairSimilarity, IdentityHead, Merges, PersonId,
    Threshold, Timestamp,
};

use crate::{
    Clock, CropLoader, DependencyError, Enrollment, FaceCollection, FaceEnrollment, FaceSearch, GalleryIndex,
    IndexError, PersonStatus, Pixels, Probe, ProbeSet, RemovedFaces, SearchCache, SearchResult, Store, StoredFace,
    similarity_mapping::SimilarityMapping, stages::conflict_backoff,
};

/// Searches a face service, and the gallery for persons that the service cannot find yet.
pub struct ServiceIndex {
    gallery: Arc<GalleryIndex>,
    collection: Arc<dyn FaceCollection>,
    store: Arc<dyn Store>,
    crops: CropLoader,
    clock: Arc<dyn Clock>,
    config: ServiceIndexConfig,
    /// The newest persons that the service has returned in a search: it can find them.
    searchable: Mutex<BTreeSet<PersonId>>,
    /// Numbers of persons that are enrolled at the service and not in the event log. They must not be allocated.
    foreign_numbers: Mutex<BTreeSet<u32>>,
}

/// The configuration of a service index.
#[derive(Debug, Clone)]
pub struct ServiceIndexConfig {
    /// The number of candidates per face.
    pub candidates: usize,
    /// How long the service may not find an enrolled face.
    pub recent: Duration,
    /// The similarity threshold of the service.
    pub threshold: Threshold,
    /// The similarity threshold of the gallery, where the service has a similarity scale of its own.
    pub gallery_threshold: Option<Threshold>,
    /// What is enrolled at the service.
    pub enrollment_mode: EnrollmentMode,
}

/// What is enrolled at a face service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnrollmentMode {
    /// Pixels of a face: one face per person, since each costs a call.
    Pixels,
    /// Signatures: all templates.
    Signatures,
}

/// A consistent view of the gallery for one search.
struct GalleryView {
    identity: IdentityHead,
    merges: Arc<Merges>,
    persons: usize,
    /// Forgotten persons, which the service may still return.
    forgotten: BTreeSet<PersonId>,
    /// The persons that the service may not find yet, with the faces that represent them.
    recent: Vec<(PersonId, FaceId)>,
    mapping: SimilarityMapping,
}

/// The number of concurrent requests to the service for one photo.
pub(crate) const MAX_CONCURRENT_SEARCHES: usize = 4;

impl ServiceIndex {
    /// Creates an index over this service and this gallery.
    pub fn new(
        gallery: Arc<GalleryIndex>,
        collection: Arc<dyn FaceCollection>,
        store: Arc<dyn Store>,
        crops: CropLoader,
        clock: Arc<dyn Clock>,
        config: ServiceIndexConfig,
    ) -> Self {
        let (searchable, foreign_numbers) = (Mutex::default(), Mutex::default());
        Self { gallery, collection, store, crops, clock, config, searchable, foreign_numbers }
    }

    fn view(&self) -> GalleryView {
        let since = self.clock.now().as_millis() - i64::try_from(self.config.recent.as_millis()).unwrap_or(i64::MAX);
        let state = self.gallery.state();
        let recent = state.allocated_since(Timestamp::from_millis(since));
        let recent = recent.filter_map(|person| Some((person, state.people.get(person)?.face)));
        let persons = state.people.len();
        let service = self.config.threshold.among(persons);
        let gallery = self.config.gallery_threshold.map_or(service, |threshold| threshold.among(persons));
        GalleryView {
            identity: state.identity.clone(),
            merges: Arc::clone(&state.merges),
            persons,
            forgotten: state.people.forgotten().collect(),
            recent: recent.collect(),
            mapping: SimilarityMapping { gallery, service },
        }
    }

    /// Searches the service for every face that has no cached result.
    async fn search_service(&self, probes: &ProbeSet, cache: &mut SearchCache) -> Result<(), IndexError> {
        // Taken before the search: persons that become searchable later may be missing from its results.
        cache.enrolled.get_or_insert_with(|| self.searchable().clone());
        let uncached = (0..probes.faces.len()).filter(|position| !cache.nearest.contains_key(position));
        let uncached = uncached.filter_map(|position| Some((position, probes.probe(position)?)));
        let searches = stream::iter(uncached.collect::<Vec<_>>())
            .map(|(position, probe)| async move {
                // At least two: the margin between the nearest two decides whether a face is ambiguous.
                Ok((position, self.collection.nearest(&probe, self.config.candidates.max(2)).await?))
            })
            .buffer_unordered(MAX_CONCURRENT_SEARCHES)
            .try_for_each(|(position, nearest)| {
                self.searchable().extend(nearest.iter().map(|candidate| candidate.person));
                cache.nearest.insert(position, nearest);
                async { Ok(()) }
            });
        searches.await
    }

    /// Returns candidates from the gallery: among the newest persons. Where the service has the gallery's similarity scale, among
    /// all persons, so that a person whose enrollment failed is not allocated a second time.
    fn search_gallery(&self, face: &DetectedFace, view: &GalleryView) -> Vec<Candidate> {
        let Some(signature) = &face.signature else { return Vec::new() };
        let gallery = &self.gallery.state().gallery;
        if self.config.enrollment_mode == EnrollmentMode::Signatures {
            return gallery.nearest(&face.model, signature, self.config.candidates.max(2));
        }
        let recent: Vec<PersonId> = view.recent.iter().map(|(person, _)| *person).collect();
        let mut candidates = gallery.nearest_among(&face.model, signature, &recent);
        candidates.iter_mut().for_each(|candidate| candidate.similarity = view.mapping.map(candidate.similarity));
        candidates
    }

    /// Returns candidates among the newest persons that have no comparable signature, by comparison of pixels at the service.
    async fn compare_pixels(
        &self,
        position: usize,
        probes: &ProbeSet,
        view: &GalleryView,
        cache: &mut SearchCache,
    ) -> Result<Vec<Candidate>, IndexError> {
        let (Some(face), Some(probe)) = (probes.faces.get(position), probes.probe(position)) else {
            return Ok(Vec::new());
        };
        if self.config.enrollment_mode != EnrollmentMode::Pixels {
            return Ok(Vec::new());
        }
        let persons = self.persons_to_compare(face, view, cache);
        let mut others: Vec<(PersonId, Probe)> = Vec::new();
        for (person, face) in &persons {
            if cache.compared.contains_key(&(position, *person)) {
                continue;
            }
            match self.crops.load(*person, face).await? {
                Some(crop) => others.push((*person, crop)),
                None => drop(cache.compared.insert((position, *person), None)),
            }
        }
        if !others.is_empty() {
            let candidates = self.collection.compare(&probe, &others).await?;
            for (person, _) in &others {
                let candidate = candidates.iter().find(|candidate| candidate.person == *person);
                cache.compared.insert((position, *person), candidate.map(|candidate| candidate.similarity));
            }
        }
        let compared = persons.iter().filter_map(|(person, _)| {
            let similarity = (*cache.compared.get(&(position, *person))?)?;
            Some(Candidate { person: *person, similarity })
        });
        Ok(compared.collect())
    }

    /// Returns the newest persons that neither the service can find nor a signature can be compared with.
    fn persons_to_compare(
        &self,
        face: &DetectedFace,
        view: &GalleryView,
        cache: &SearchCache,
    ) -> Vec<(PersonId, FaceId)> {
        let state = self.gallery.state();
        let is_covered = |person: PersonId| {
            face.signature.is_some() && state.gallery.contains(&face.model, person)
                || cache.enrolled.as_ref().is_some_and(|enrolled| enrolled.contains(&person))
        };
        view.recent.iter().filter(|(person, _)| !is_covered(*person)).cloned().collect()
    }

    /// Records the persons in the results that the event log does not have. Returns the numbers of all such persons so far.
    fn record_foreign_numbers(&self, cache: &SearchCache) -> BTreeSet<u32> {
        let state = self.gallery.state();
        let returned = cache.nearest.values().flatten().map(|candidate| candidate.person);
        let mut numbers = self.foreign_numbers.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.extend(returned.filter(|person| !state.people.is_recorded(*person)).map(PersonId::number));
        numbers.clone()
    }

    fn searchable(&self) -> MutexGuard<'_, BTreeSet<PersonId>> {
        self.searchable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns these persons and all that are merged with them: the service does not know of merges.
    fn with_merged(&self, persons: &[PersonId]) -> Vec<PersonId> {
        let merges = self.gallery.merges();
        let all: BTreeSet<PersonId> = persons
            .iter()
            .flat_map(|person| merges.members(merges.current(*person)))
            .chain(persons.iter().copied())
            .collect();
        all.into_iter().collect()
    }

    /// Replaces the templates of these persons by this face, again where another worker did at the same time. One template is left:
    /// the last that was added, since templates are only removed by a worker that listed them before it added its own.
    async fn replace_templates(&self, enrollment: &Enrollment, persons: &[PersonId]) -> Result<(), IndexError> {
        let mut backoff = conflict_backoff();
        while !self.collection.replace(enrollment, persons).await? {
            let contended = || {
                let person = enrollment.person;
                DependencyError::Throttled(format!("other workers replace the template of {person} on every attempt"))
            };
            tokio::time::sleep(backoff.next().ok_or_else(contended)?).await;
        }
        Ok(())
    }

    /// Returns those of the merged persons whose one face at the service, where pixels are enrolled, is one of these. That
    /// of the person they are merged into is replaced with the crop.
    fn absorbed_with_face_in(&self, removed: &RemovedFaces<'_>, members: &[PersonId]) -> Vec<PersonId> {
        if self.config.enrollment_mode != EnrollmentMode::Pixels {
            return Vec::new();
        }
        let state = self.gallery.state();
        let is_removed = |person: PersonId| state.people.get(person).is_some_and(|known| removed.contains(&known.face));
        let absorbed = members.iter().filter(|person| state.merges.is_absorbed(**person));
        absorbed.copied().filter(|person| is_removed(*person)).collect()
    }

    /// Enrolls the persons of these enrollments who have no template, where pixels are enrolled. A search would not do to find them: it
    /// misses templates that were just added, and finds some that were just removed.
    async fn enroll_missing(&self, enrollments: &[Enrollment]) -> Result<(), IndexError> {
        let persons: Vec<PersonId> = enrollments.iter().map(|enrollment| enrollment.person).collect();
        let counts = self.collection.template_counts(&persons).await?;
        for enrollment in enrollments.iter().filter(|enrollment| !counts.contains_key(&enrollment.person)) {
            self.replace_templates(enrollment, &[enrollment.person]).await?;
        }
        Ok(())
    }

    /// Returns those of the enrollments that the service needs, with what it needs of them.
    async fn enrollments_for_service(&self, enrollments: &[Enrollment]) -> Result<Vec<Enrollment>, IndexError> {
        if self.config.enrollment_mode == EnrollmentMode::Pixels {
            return Ok(enrollments.iter().filter(|enrollment| enrollment.is_first).cloned().collect());
        }
        let faces: Vec<FaceId> = enrollments.iter().map(|enrollment| enrollment.face.clone()).collect();
        let stored = self.store.signatures(&faces).await?;
        let with_signature = |enrollment: &Enrollment| {
            // This worker may be slow: the face may be another person's by now, or no template.
            let is_current = |stored: &&StoredFace| {
                stored.face == enrollment.face && stored.template && stored.person == Some(enrollment.person)
            };
            let stored = stored.iter().find(is_current)?;
            let (model, signature) = (stored.model.clone(), Some(stored.signature.clone()));
            Some(Enrollment { probe: Probe { model, signature, ..enrollment.probe.clone() }, ..enrollment.clone() })
        };
        Ok(enrollments.iter().filter_map(with_signature).collect())
    }
}

#[async_trait]
impl FaceSearch for ServiceIndex {
    async fn search(&self, probes: &ProbeSet) -> Result<SearchResult, IndexError> {
        // Taken before the service is searched: a person allocated from here on makes the commit fail with a conflict.
        let view = self.view();
        let mut cache = probes.cache.lock().await;
        self.search_service(probes, &mut cache).await?;
        let mut all_candidates = Vec::with_capacity(probes.faces.len());
        for (position, face) in probes.faces.iter().enumerate() {
            let mut candidates = cache.nearest.get(&position).cloned().unwrap_or_default();
            candidates.retain(|candidate| !view.forgotten.contains(&candidate.person));
            candidates.extend(self.search_gallery(face, &view));
            if !candidates.iter().any(|candidate| candidate.similarity >= view.mapping.service) {
                candidates.extend(self.compare_pixels(position, probes, &view, &mut cache).await?);
            }
            all_candidates.push(nearest(candidates, &view.merges, self.config.candidates.max(2)));
        }
        let signatures = probes.faces.iter().map(|face| (face.model.as_str(), face.signature.as_ref()));
        let similarities = FaceCandidates::pairwise_similarities(signatures).into_iter();
        let similarities =
            similarities.map(|pair| FacePairSimilarity { similarity: view.mapping.map(pair.similarity), ..pair });
        let search = FaceCandidates {
            candidates: all_candidates,
            similarities: similarities.collect(),
            persons: view.persons,
            ..FaceCandidates::default()
        };
        let identity = IdentityHead { taken: self.record_foreign_numbers(&cache), ..view.identity };
        Ok(SearchResult { search, identity })
    }

    async fn refresh(&self) -> Result<(), IndexError> {
        self.gallery.refresh().await?;
        let recent: BTreeSet<PersonId> = self.view().recent.into_iter().map(|(person, _)| person).collect();
        self.crops.retain(&recent);
        self.searchable().retain(|person| recent.contains(person));
        Ok(())
    }

    fn merges(&self) -> Arc<Merges> {
        self.gallery.merges()
    }

    fn person_status(&self, person: PersonId) -> PersonStatus {
        self.gallery.person_status(person)
    }

    fn identity(&self) -> IdentityHead {
        self.gallery.identity()
    }

    fn is_paid(&self) -> bool {
        true
    }

    async fn check(&self) -> Result<(), IndexError> {
        self.gallery.check().await?;
        self.collection.check().await
    }
}

#[async_trait]
impl FaceEnrollment for ServiceIndex {
    async fn enroll(&self, enrollments: &[Enrollment], again: bool) -> Result<bool, IndexError> {
        let enrollments = self.enrollments_for_service(enrollments).await?;
        if enrollments.is_empty() {
            return Ok(false);
        }
        match self.config.enrollment_mode {
            EnrollmentMode::Pixels if again => self.enroll_missing(&enrollments).await?,
            _ => self.collection.enroll(&enrollments, again).await?,
        }
        Ok(true)
    }

    async fn replace(&self, enrollment: &Enrollment) -> Result<(), IndexError> {
        match self.config.enrollment_mode {
            EnrollmentMode::Pixels => self.replace_templates(enrollment, &self.with_merged(&[enrollment.person])).await,
            EnrollmentMode::Signatures => Ok(()),
        }
    }

    async fn template_count(&self, person: PersonId) -> Result<Option<usize>, IndexError> {
        match self.config.enrollment_mode {
            EnrollmentMode::Pixels => Ok(Some(self.collection.template_counts(&[person]).await?.values().sum())),
            EnrollmentMode::Signatures => Ok(None),
        }
    }

    async fn promote(&self, faces: &[FaceId]) -> Result<(), IndexError> {
        if self.config.enrollment_mode == EnrollmentMode::Pixels || faces.is_empty() {
            return Ok(());
        }
        let enrollment = |stored: StoredFace| {
            let pixels = Arc::new(Pixels { width: 0, height: 0, rgb: Vec::new() });
            let (bounds, others) = (FaceBox { x: 0.0, y: 0.0, width: 0.0, height: 0.0 }, Vec::new());
            let probe = Probe { pixels, bounds, others, model: stored.model, signature: Some(stored.signature) };
            Some(Enrollment { person: stored.person?, face: stored.face, is_first: false, probe })
        };
        let mut faces = faces.to_vec();
        loop {
            let stored = self.store.signatures(&faces).await?;
            let enrollments: Vec<Enrollment> = stored.into_iter().filter_map(enrollment).collect();
            if enrollments.is_empty() {
                return Ok(());
            }
            self.collection.enroll(&enrollments, true).await?;
            // Where a photo was deleted or decided again meanwhile, that did not see these templates.
            let left: Vec<StoredFace> = self.store.signatures(&faces).await?;
            let is_gone = |enrollment: &&Enrollment| {
                !left.iter().any(|face| face.face == enrollment.face && face.person == Some(enrollment.person))
            };
            let gone: Vec<&Enrollment> = enrollments.iter().filter(is_gone).collect();
            if gone.is_empty() {
                return Ok(());
            }
            for Enrollment { person, face, .. } in &gone {
                self.collection.remove_faces(&RemovedFaces::all(&face.image), &[*person]).await?;
            }
            // Other templates from these photos were removed as well, such as those of a version decided meanwhile.
            let persons: Vec<PersonId> = gone.iter().map(|enrollment| enrollment.person).collect();
            let decided = self.store.faces_of(&persons).await?.into_iter().map(|decided| decided.kept);
            let left =
                decided.filter(|kept| kept.template && gone.iter().any(|gone| gone.face.image == kept.face.image));
            faces = left.map(|kept| kept.face).collect();
        }
    }

    async fn remove_faces(&self, removed: &RemovedFaces<'_>, persons: &[PersonId]) -> Result<(), IndexError> {
        let members = self.with_merged(persons);
        self.collection.remove_faces(removed, &members).await?;
        let absorbed = self.absorbed_with_face_in(removed, &members);
        if !absorbed.is_empty() {
            self.collection.remove_persons(&absorbed).await?;
        }
        Ok(())
    }

    async fn remove_persons(&self, persons: &[PersonId]) -> Result<(), IndexError> {
        self.searchable().retain(|person| !persons.contains(person));
        self.collection.remove_persons(&self.with_merged(persons)).await
    }
}

/// Resolves merges and returns the `most` nearest candidates, each person once. Ties go to the lower number.
pub(crate) fn nearest(candidates: Vec<Candidate>, merges: &Merges, most: usize) -> Vec<Candidate> {
    let current = |candidate: Candidate| Candidate { person: merges.current(candidate.person), ..candidate };
    let mut candidates: Vec<Candidate> = candidates.into_iter().map(current).collect();
    candidates.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.person.cmp(&b.person)));
    let mut seen = BTreeSet::new();
    candidates.retain(|candidate| seen.insert(candidate.person));
    candidates.truncate(most);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_person_is_among_the_nearest_once() {
        let person = |number| PersonId::new(number).expect("a number");
        let candidate = |number, similarity| Candidate { person: person(number), similarity };
        let found = nearest(
            vec![candidate(3, 0.5), candidate(1, 0.9), candidate(3, 0.95), candidate(2, 0.9)],
            &Merges::default(),
            3,
        );
        assert_eq!(found, [candidate(3, 0.95), candidate(1, 0.9), candidate(2, 0.9)]);
    }
}
