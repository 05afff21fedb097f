//! The index inside this process: the gallery of everybody the log knows.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use async_trait::async_trait;
use sparks_domain::{Event, FaceId, Gallery, Identity, PersonId, Search, SeenFace};

use crate::{FaceIndex, Found, IndexError, Store, StoreError, StoredFace};

/// Everybody known, in memory, complete up to an identity event. It follows the log and is never ahead of it.
pub struct GalleryIndex {
    store: Arc<dyn Store>,
    candidates: usize,
    known: RwLock<Known>,
    following: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    gallery: Gallery,
    identity: Identity,
}

impl GalleryIndex {
    /// The index of everybody this store knows by now, answering with so many candidates a face.
    pub async fn load(store: Arc<dyn Store>, candidates: usize) -> Result<Self, StoreError> {
        let index = Self { store, candidates, known: RwLock::default(), following: tokio::sync::Mutex::default() };
        index.follow().await?;
        Ok(index)
    }

    /// How many templates are known.
    pub fn templates(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).gallery.len()
    }

    /// Learns the identity events since the last time. One at a time: two would teach the same template twice.
    async fn follow(&self) -> Result<(), StoreError> {
        let _alone = self.following.lock().await;
        let after = self.known.read().unwrap_or_else(PoisonError::into_inner).identity.seq;
        let tail = self.store.identity(after).await?;
        let templates: Vec<(PersonId, FaceId)> =
            tail.events.iter().flat_map(|recorded| templates(&recorded.event)).collect();
        let faces: Vec<FaceId> = templates.iter().map(|(_, face)| face.clone()).collect();
        let signatures = self.store.signatures(&faces).await?;
        let signatures: HashMap<&FaceId, &StoredFace> =
            signatures.iter().map(|stored| (&stored.face, stored)).collect();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for (person, face) in templates {
            // An erased signature is no longer there: the person is not recognised by it any more.
            if let Some(stored) = signatures.get(&face) {
                known.gallery.learn(person, &stored.model, &stored.signature);
            }
        }
        known.identity = Identity { seq: tail.seq, counter: tail.counter, ..Identity::default() };
        Ok(())
    }
}

fn templates(event: &Event) -> Vec<(PersonId, FaceId)> {
    match event {
        Event::PersonsAllocated(e) => {
            e.persons.iter().flat_map(|a| a.templates.iter().map(|face| (a.person, face.clone()))).collect()
        }
        _ => Vec::new(),
    }
}

#[async_trait]
impl FaceIndex for GalleryIndex {
    async fn search(&self, faces: &[SeenFace]) -> Result<Found, IndexError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let nearest = |face: &SeenFace| match &face.signature {
            Some(signature) => known.gallery.nearest(&face.model, signature, self.candidates),
            None => Vec::new(),
        };
        let search = Search {
            candidates: faces.iter().map(nearest).collect(),
            alike: Search::among(faces.iter().map(|face| (face.model.as_str(), face.signature.as_ref()))),
        };
        Ok(Found { search, identity: known.identity.clone() })
    }

    async fn refresh(&self) -> Result<(), IndexError> {
        Ok(self.follow().await?)
    }
}
