//! The gallery of the new decisions, beside the real one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::{StreamExt, TryStreamExt, stream};
use sparks_domain::{
    Candidate, Consolidation, DetectedFace, Event, FaceCandidates, FacePairSimilarity, Gallery, IdentityHead, Merges,
    PersonId, PhotoProcessed, Scale, Threshold, consolidate,
};

use crate::{
    FaceCollection, FaceSearch, GalleryIndex, IndexError, ProbeSet, Store,
    service_index::{MAX_CONCURRENT_SEARCHES, nearest},
    similarity_mapping::SimilarityMapping,
};

/// A face service that is searched beside the trial gallery, and the thresholds of both.
#[derive(Clone)]
pub struct SearchService {
    /// The service.
    pub collection: Arc<dyn FaceCollection>,
    /// The similarity threshold of the service.
    pub threshold: Threshold,
    /// The similarity threshold of the gallery.
    pub gallery_threshold: Threshold,
}

/// The templates of the new decisions. It starts empty, so that no face is matched with a template whose decision is in question.
pub(super) struct TrialGallery {
    gallery: Gallery,
    merges: Arc<Merges>,
    candidates: usize,
    service: Option<SearchService>,
    /// The head of person allocation.
    pub identity: IdentityHead,
    /// All persons in the new decisions.
    persons: BTreeSet<PersonId>,
    /// The persons with a template.
    enrolled: BTreeSet<PersonId>,
    /// Pairs of persons that are different faces of one photo.
    co_occurrences: BTreeSet<(PersonId, PersonId)>,
    /// The models of all signatures.
    pub models: BTreeSet<String>,
}

impl TrialGallery {
    pub fn new(index: &GalleryIndex, candidates: usize, service: Option<SearchService>) -> Self {
        let mut gallery = Self {
            gallery: Gallery::default(),
            merges: Arc::default(),
            candidates: candidates.max(2),
            service,
            identity: index.identity(),
            persons: BTreeSet::new(),
            enrolled: BTreeSet::new(),
            co_occurrences: BTreeSet::new(),
            models: BTreeSet::new(),
        };
        gallery.apply_merges(index);
        gallery
    }

    pub fn merges(&self) -> Arc<Merges> {
        Arc::clone(&self.merges)
    }

    /// Returns the number of persons.
    pub fn persons(&self) -> usize {
        self.persons.len()
    }

    /// Whether the person has a template.
    pub fn has_template(&self, person: PersonId) -> bool {
        self.enrolled.contains(&self.merges.current(person))
    }

    /// Returns the nearest persons of each face, in the gallery and at the service.
    pub async fn search(&self, probes: &ProbeSet) -> Result<FaceCandidates, IndexError> {
        let own = self.gallery.search(&probes.faces, self.candidates, self.persons.len());
        let Some(service) = &self.service else { return Ok(own) };
        let mapping = SimilarityMapping {
            gallery: service.gallery_threshold.among(self.persons.len()),
            service: service.threshold.among(self.persons.len()),
        };
        let mut cache = probes.cache.lock().await;
        let uncached = (0..probes.faces.len()).filter(|position| !cache.nearest.contains_key(position));
        let uncached = uncached.filter_map(|position| Some((position, probes.probe(position)?)));
        let found: Vec<(usize, Vec<Candidate>)> = stream::iter(uncached.collect::<Vec<_>>())
            .map(|(position, probe)| async move {
                Ok::<_, IndexError>((position, service.collection.nearest(&probe, self.candidates).await?))
            })
            .buffer_unordered(MAX_CONCURRENT_SEARCHES)
            .try_collect()
            .await?;
        cache.nearest.extend(found);
        let to_service_scale =
            |candidate: &Candidate| Candidate { similarity: mapping.map(candidate.similarity), ..*candidate };
        let candidates = own.candidates.iter().enumerate().map(|(position, own)| {
            let of_service = cache.nearest.get(&position).into_iter().flatten().copied();
            nearest(of_service.chain(own.iter().map(to_service_scale)).collect(), &self.merges, self.candidates)
        });
        let candidates = candidates.collect();
        let similarities = own.similarities.iter();
        let similarities =
            similarities.map(|pair| FacePairSimilarity { similarity: mapping.map(pair.similarity), ..*pair });
        Ok(FaceCandidates {
            candidates,
            members: Vec::new(),
            similarities: similarities.collect(),
            persons: own.persons,
        })
    }

    /// Enrolls the templates of a new decision.
    pub fn enroll(&mut self, photo: &PhotoProcessed, faces: &[DetectedFace]) {
        for (decided, detected) in photo.faces.iter().zip(faces) {
            self.models.insert(detected.model.clone());
            let Some(person) = decided.verdict.person() else { continue };
            self.persons.insert(self.merges.current(person));
            if decided.template {
                self.enrolled.insert(self.merges.current(person));
                if let Some(signature) = &detected.signature {
                    self.gallery.enroll(person, &detected.model, signature);
                }
            }
        }
        let persons: Vec<PersonId> = photo.faces.iter().filter_map(|face| face.verdict.person()).collect();
        for (n, a) in persons.iter().enumerate() {
            self.co_occurrences.extend(persons[..n].iter().filter(|b| *b != a).map(|b| (*a.min(b), *a.max(b))));
        }
    }

    /// Reserves the numbers of persons that a dry run has allocated, since nothing is recorded.
    pub fn reserve_numbers(&mut self, events: &[Event]) {
        let highest = events.iter().filter_map(|event| match event {
            Event::PersonsAllocated(event) => event.persons.iter().map(|new| new.person.number()).max(),
            _ => None,
        });
        self.identity.counter = highest.fold(self.identity.counter, u32::max);
    }

    /// Applies the identity events of other workers: new persons and merges.
    pub async fn catch_up(&mut self, index: &GalleryIndex, store: &dyn Store) -> Result<(), IndexError> {
        let identity = index.identity();
        if identity.seq == self.identity.seq {
            return Ok(());
        }
        let tail = store.identity(self.identity.seq).await?;
        let allocated = tail.events.iter().filter_map(|recorded| match &recorded.event {
            Event::PersonsAllocated(event) => Some(event.persons.iter().map(|new| new.person)),
            _ => None,
        });
        let new_persons: Vec<PersonId> = allocated.flatten().filter(|person| !self.persons.contains(person)).collect();
        if !new_persons.is_empty() {
            for stored in store.faces_of(&new_persons).await?.into_iter().map(|decided| decided.kept) {
                if let (Some(person), true) = (stored.person, stored.template) {
                    self.persons.insert(person);
                    self.enrolled.insert(person);
                    self.gallery.enroll(person, &stored.model, &stored.signature);
                }
            }
        }
        self.apply_merges(index);
        self.identity = identity;
        Ok(())
    }

    fn apply_merges(&mut self, index: &GalleryIndex) {
        self.merges = index.merges();
        self.gallery.apply_merges(&self.merges);
    }

    /// Returns merges and suggestions from the templates of the new decisions.
    pub fn consolidate(&self, scale: fn(&str) -> Option<Scale>) -> Consolidation {
        let seen_together = self.co_occurrences.iter().map(|(a, b)| (self.merges.current(*a), self.merges.current(*b)));
        let apart: BTreeSet<_> = seen_together.chain(self.merges.undone_pairs()).filter(|(a, b)| a != b).collect();
        let mut found = Consolidation::default();
        let models: BTreeMap<&str, Scale> =
            self.models.iter().filter_map(|model| Some((model.as_str(), scale(model)?))).collect();
        for (model, scale) in models {
            let of_model = consolidate(&self.gallery, model, scale, &apart, None);
            found.merges.extend(of_model.merges);
            found.suggestions.extend(of_model.suggestions);
        }
        found
    }
}
