//! The faces that persons are shown by, cut from their photos.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sparks_domain::{Event, FaceBox, FaceId, PersonId};

use crate::{Cpu, Darkroom, DarkroomError, IndexError, Objects, ObjectsError, Probe, Store, Window, shown::Shown};

/// Finds the face that somebody is shown by. What a photo of theirs looks like is kept in mind for as long as they are new.
pub struct Portraits {
    store: Arc<dyn Store>,
    objects: Arc<dyn Objects>,
    darkroom: Arc<dyn Darkroom>,
    cpu: Cpu,
    max_bytes: u64,
    seen: Mutex<BTreeMap<PersonId, Probe>>,
}

/// A face and the picture it is in.
struct Place {
    key: String,
    bounds: FaceBox,
    others: Vec<FaceBox>,
    model: String,
}

/// How much of what is around a face is kept in mind with it, as a share of its size.
const AROUND: f32 = 0.5;

/// Whoever cannot be looked at is like nobody; that is no fault of whom they would be compared with.
fn unseen(key: &str, why: &dyn std::fmt::Display) -> Option<Probe> {
    tracing::warn!(key, %why, "a new person cannot be looked at");
    None
}

impl Portraits {
    /// Portraits from the pictures that this log speaks of.
    pub fn new(
        store: Arc<dyn Store>,
        objects: Arc<dyn Objects>,
        darkroom: Arc<dyn Darkroom>,
        cpu: Cpu,
        max_bytes: u64,
    ) -> Self {
        Self { store, objects, darkroom, cpu, max_bytes, seen: Mutex::default() }
    }

    /// The face that this person is shown by; nothing where the picture is gone.
    pub async fn of(&self, person: PersonId, face: &FaceId) -> Result<Option<Probe>, IndexError> {
        if let Some(seen) = self.seen().get(&person) {
            return Ok(Some(seen.clone()));
        }
        let Some(probe) = self.find(face).await? else { return Ok(None) };
        self.seen().insert(person, probe.clone());
        Ok(Some(probe))
    }

    /// Keeps in mind only these.
    pub fn retain(&self, persons: &BTreeSet<PersonId>) {
        self.seen().retain(|person, _| persons.contains(person));
    }

    async fn find(&self, face: &FaceId) -> Result<Option<Probe>, IndexError> {
        let Some(Place { key, bounds, others, model }) = self.place(face).await? else { return Ok(None) };
        let picture = match self.objects.get(&key, self.max_bytes).await {
            Ok(picture) => picture,
            Err(error @ ObjectsError::Busy { .. }) => return Err(IndexError::Busy(error.to_string())),
            Err(error @ ObjectsError::Unavailable { .. }) => return Err(IndexError::Unavailable(error.to_string())),
            Err(error @ ObjectsError::Denied { .. }) => return Err(IndexError::Denied(error.to_string())),
            Err(error) => return Ok(unseen(&key, &error)),
        };
        let darkroom = Arc::clone(&self.darkroom);
        let cut = self.cpu.run(move || {
            let pixels = Arc::new(darkroom.open(&picture.bytes)?);
            let whole = Probe { pixels, bounds, others, model, signature: None };
            // The face alone is kept in mind: photos are large, and many may be new.
            let window = whole.window(AROUND, 1).map(|Window { pixels, bounds }| (Arc::new(pixels), bounds));
            Ok(window.map(|(pixels, bounds)| Probe { pixels, bounds, others: Vec::new(), ..whole }))
        });
        match cut.await {
            Ok(Ok(probe)) => Ok(probe),
            Ok(Err(DarkroomError::Unavailable(reason))) => Err(IndexError::Unavailable(format!("{key}: {reason}"))),
            Ok(Err(error)) => Ok(unseen(&key, &error)),
            Err(crashed) => Ok(unseen(&key, &crashed)),
        }
    }

    async fn place(&self, face: &FaceId) -> Result<Option<Place>, IndexError> {
        let shown = Shown { store: self.store.as_ref(), projection: Default::default() };
        let (first, key, faces) = match shown.event(&face.image).await?.map(|(recorded, _)| recorded.event) {
            Some(Event::PhotoProcessed(photo)) => (photo.first_face, photo.variants.large.key, photo.faces),
            Some(Event::ProfileProcessed(profile)) => {
                (profile.first_face, profile.source.key, profile.face.into_iter().collect())
            }
            _ => return Ok(None),
        };
        let Some(place) = face.n.checked_sub(first).map(usize::from) else { return Ok(None) };
        let Some(found) = faces.get(place) else { return Ok(None) };
        let others = faces.iter().enumerate().filter(|(n, _)| *n != place).map(|(_, other)| other.bounds).collect();
        Ok(Some(Place { key, bounds: found.bounds, others, model: found.model.clone() }))
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<PersonId, Probe>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
