//! Everybody as the engine knows them that is tried: a gallery beside the real one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::{StreamExt, TryStreamExt, stream};
use sparks_domain::{
    Candidate, Consolidation, Event, Gallery, Identity, Merges, PersonId, PhotoProcessed, Scale, Search, SeenFace,
    Similarity, Threshold, consolidate,
};

use crate::{
    Collection, FaceIndex, GalleryIndex, IndexError, Looked, Store,
    service_index::{Likeness, nearest},
};

/// A service whose answers count, and how both measures are read.
#[derive(Clone)]
pub struct AskedService {
    /// The service.
    pub collection: Arc<dyn Collection>,
    /// The similarity from which it takes two faces for one person.
    pub threshold: Threshold,
    /// The same of our own signatures.
    pub gallery_threshold: Threshold,
}

/// What has been learnt anew. It begins empty, so that nobody is recognised by a decision that is in question.
pub(super) struct Shadow {
    gallery: Gallery,
    merges: Arc<Merges>,
    candidates: usize,
    service: Option<AskedService>,
    /// Where the numbering of persons stands.
    pub identity: Identity,
    /// Everybody who has been met.
    met: BTreeSet<PersonId>,
    /// Those who are known by a face.
    known: BTreeSet<PersonId>,
    /// Who was seen beside whom.
    company: BTreeSet<(PersonId, PersonId)>,
    /// The models that said what faces look like.
    pub models: BTreeSet<String>,
}

/// Questions on their way at once, for one photo.
const AT_ONCE: usize = 4;

impl Shadow {
    pub fn new(index: &GalleryIndex, candidates: usize, service: Option<AskedService>) -> Self {
        let mut shadow = Self {
            gallery: Gallery::default(),
            merges: Arc::default(),
            candidates: candidates.max(2),
            service,
            identity: index.identity(),
            met: BTreeSet::new(),
            known: BTreeSet::new(),
            company: BTreeSet::new(),
            models: BTreeSet::new(),
        };
        shadow.merge(index);
        shadow
    }

    pub fn merges(&self) -> Arc<Merges> {
        Arc::clone(&self.merges)
    }

    /// How many persons have been met.
    pub fn persons(&self) -> usize {
        self.met.len()
    }

    /// Whether somebody is known by a face already.
    pub fn knows(&self, person: PersonId) -> bool {
        self.known.contains(&self.merges.now(person))
    }

    /// Whom the faces are like, among everybody who has been met.
    pub async fn search(&self, looked: &Looked) -> Result<Search, IndexError> {
        let own = self.gallery.search(&looked.faces, self.candidates, self.met.len());
        let Some(service) = &self.service else { return Ok(own) };
        let likeness = Likeness {
            gallery: service.gallery_threshold.among(self.met.len()),
            service: service.threshold.among(self.met.len()),
        };
        let mut answers = looked.answers.lock().await;
        let unasked = (0..looked.faces.len()).filter(|place| !answers.nearest.contains_key(place));
        let probes = unasked.filter_map(|place| Some((place, looked.probe(place)?)));
        let asked: Vec<(usize, Vec<Candidate>)> = stream::iter(probes.collect::<Vec<_>>())
            .map(|(place, probe)| async move {
                Ok::<_, IndexError>((place, service.collection.nearest(&probe, self.candidates).await?))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        answers.nearest.extend(asked);
        let read = |near: &Candidate| Candidate { similarity: likeness.read(near.similarity), ..*near };
        let candidates = own.candidates.iter().enumerate().map(|(place, ours)| {
            let theirs = answers.nearest.get(&place).into_iter().flatten().copied();
            nearest(theirs.chain(ours.iter().map(read)).collect(), &self.merges, self.candidates)
        });
        let candidates = candidates.collect();
        let alike = own.alike.iter().map(|pair| Similarity { similarity: likeness.read(pair.similarity), ..*pair });
        Ok(Search { candidates, alike: alike.collect(), persons: own.persons })
    }

    /// Learns what was decided.
    pub fn learn(&mut self, photo: &PhotoProcessed, faces: &[SeenFace]) {
        for (decided, seen) in photo.faces.iter().zip(faces) {
            self.models.insert(seen.model.clone());
            let Some(person) = decided.verdict.person() else { continue };
            self.met.insert(self.merges.now(person));
            if decided.template {
                self.known.insert(self.merges.now(person));
                if let Some(signature) = &seen.signature {
                    self.gallery.learn(person, &seen.model, signature);
                }
            }
        }
        let persons: Vec<PersonId> = photo.faces.iter().filter_map(|face| face.verdict.person()).collect();
        for (n, a) in persons.iter().enumerate() {
            self.company.extend(persons[..n].iter().filter(|b| *b != a).map(|b| (*a.min(b), *a.max(b))));
        }
    }

    /// Persons were numbered who are nowhere but in what is only tried.
    pub fn suppose(&mut self, events: &[Event]) {
        let highest = events.iter().filter_map(|event| match event {
            Event::PersonsAllocated(event) => event.persons.iter().map(|new| new.person.number()).max(),
            _ => None,
        });
        self.identity.counter = highest.fold(self.identity.counter, u32::max);
    }

    /// Hears of what others did meanwhile: whom they founded, and whom they joined.
    pub async fn follow(&mut self, index: &GalleryIndex, store: &dyn Store) -> Result<(), IndexError> {
        let identity = index.identity();
        if identity.seq == self.identity.seq {
            return Ok(());
        }
        let tail = store.identity(self.identity.seq).await?;
        let founded = tail.events.iter().filter_map(|recorded| match &recorded.event {
            Event::PersonsAllocated(event) => Some(event.persons.iter().map(|new| new.person)),
            _ => None,
        });
        let strangers: Vec<PersonId> = founded.flatten().filter(|person| !self.met.contains(person)).collect();
        if !strangers.is_empty() {
            for kept in store.faces_of(&strangers).await?.into_iter().map(|decided| decided.kept) {
                if let (Some(person), true) = (kept.person, kept.template) {
                    self.met.insert(person);
                    self.known.insert(person);
                    self.gallery.learn(person, &kept.model, &kept.signature);
                }
            }
        }
        self.merge(index);
        self.identity = identity;
        Ok(())
    }

    fn merge(&mut self, index: &GalleryIndex) {
        self.merges = index.merges();
        self.gallery.follow(&self.merges);
    }

    /// Who is one by what has been learnt anew.
    pub fn consolidate(&self, scale: fn(&str) -> Option<Scale>) -> Consolidation {
        let apart = self.company.iter().map(|(a, b)| (self.merges.now(*a), self.merges.now(*b)));
        let apart: BTreeSet<_> = apart.chain(self.merges.parted()).filter(|(a, b)| a != b).collect();
        let mut found = Consolidation::default();
        let models: BTreeMap<&str, Scale> =
            self.models.iter().filter_map(|model| Some((model.as_str(), scale(model)?))).collect();
        for (model, scale) in models {
            let of_model = consolidate(&self.gallery, model, scale, &apart, None);
            found.joins.extend(of_model.joins);
            found.suggestions.extend(of_model.suggestions);
        }
        found
    }
}
