//! The index inside this process: the gallery of everybody the log knows.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use async_trait::async_trait;
use sparks_domain::{Event, FaceId, Gallery, Identity, Merges, People, PersonId, Position, Recorded, SeenFace};

use crate::{FaceIndex, Found, IndexError, Reach, Standing, Store, StoreError, StoredFace, Templates};

/// Everybody known, in memory, complete up to an identity event. It follows the log and is never ahead of it.
pub struct GalleryIndex {
    store: Arc<dyn Store>,
    candidates: usize,
    known: RwLock<Known>,
    following: tokio::sync::Mutex<()>,
}

/// What has been learnt.
#[derive(Default)]
pub struct Known {
    /// What everybody looks like.
    pub gallery: Gallery,
    /// Who everybody is.
    pub people: People,
    /// Up to which identity event that is everybody.
    pub identity: Identity,
    merges: Arc<Merges>,
    templates: Position,
}

/// Templates are learnt this many at a time.
const BATCH: usize = 8192;

impl GalleryIndex {
    /// The index of everybody this store knows by now, answering with so many candidates a face.
    pub async fn load(store: Arc<dyn Store>, candidates: usize) -> Result<Self, StoreError> {
        let (known, following) = (RwLock::default(), tokio::sync::Mutex::default());
        let index = Self { store, candidates, known, following };
        index.follow().await?;
        Ok(index)
    }

    /// What has been learnt so far.
    pub fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns all that has been committed since the last time.
    pub async fn follow(&self) -> Result<(), StoreError> {
        self.learn(Reach::Everything).await
    }

    /// Learns what has been committed since the last time: who is who, then what they look like, so that whoever is known
    /// is also recognised. One at a time: two would teach the same template twice.
    async fn learn(&self, reach: Reach) -> Result<(), StoreError> {
        let _alone = self.following.lock().await;
        let (identity, mut templates) = {
            let known = self.known();
            (known.identity.seq, known.templates.clone())
        };
        let tail = self.store.identity(identity).await?;
        let anew = self.forget(&tail.events, &templates).await?;
        loop {
            let Templates { faces, read } = self.store.templates(&templates, reach, BATCH).await?;
            if read == templates {
                break;
            }
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            for kept in faces.into_iter().filter(|kept| !anew.contains(&kept.face)) {
                if let Some(person) = kept.person {
                    known.gallery.learn(person, &kept.model, &kept.signature);
                }
            }
            known.templates.clone_from(&read);
            templates = read;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let Known { gallery, people, identity, merges, .. } = &mut *known;
        for recorded in &tail.events {
            people.evolve(&recorded.event, recorded.when);
        }
        if **merges != *people.merges() {
            *merges = Arc::new(people.merges().clone());
            gallery.follow(merges);
        }
        *identity = Identity { seq: tail.seq, counter: tail.counter, ..Identity::default() };
        Ok(())
    }
}

impl GalleryIndex {
    /// Forgets those who were forgotten, and learns what they are known by since: a photo of them may have come before the
    /// event was read. Says which faces that were.
    async fn forget(&self, events: &[Recorded], read: &Position) -> Result<BTreeSet<FaceId>, StoreError> {
        let forgotten = events.iter().filter_map(|recorded| match &recorded.event {
            Event::PersonsForgotten(event) => Some(&event.persons),
            _ => None,
        });
        let forgotten: Vec<PersonId> = forgotten.flatten().copied().collect();
        // Whoever has learnt nothing yet reads all that is kept.
        if forgotten.is_empty() || *read == Position::default() {
            return Ok(BTreeSet::new());
        }
        let kept = self.store.faces_of(&forgotten).await?.into_iter().map(|decided| decided.kept);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        forgotten.iter().for_each(|person| known.gallery.forget(*person));
        let mut learnt = BTreeSet::new();
        for StoredFace { face, model, signature, person, .. } in kept.filter(|kept| kept.template) {
            if let Some(person) = person {
                known.gallery.learn(person, &model, &signature);
                learnt.insert(face);
            }
        }
        Ok(learnt)
    }
}

#[async_trait]
impl FaceIndex for GalleryIndex {
    async fn search(&self, faces: &[SeenFace]) -> Result<Found, IndexError> {
        let known = self.known();
        let search = known.gallery.search(faces, self.candidates, known.people.len());
        Ok(Found { search, identity: known.identity.clone() })
    }

    async fn refresh(&self) -> Result<(), IndexError> {
        Ok(self.learn(Reach::Persons).await?)
    }

    fn merges(&self) -> Arc<Merges> {
        Arc::clone(&self.known().merges)
    }

    fn standing(&self, person: PersonId) -> Standing {
        let known = self.known();
        match (known.people.get(person), known.people.remembered(person)) {
            _ if known.merges.is_absorbed(person) => Standing::Unknown,
            (Some(person), _) => Standing::Known(person),
            (None, Some(person)) => Standing::Forgotten(person),
            (None, None) => Standing::Unknown,
        }
    }

    fn identity(&self) -> Identity {
        self.known().identity.clone()
    }
}
