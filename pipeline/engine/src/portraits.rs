//! The faces that persons are shown by, cut from their photos.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sparks_domain::{Event, FaceBox, FaceId, PersonId};

use crate::{Cpu, Darkroom, IndexError, Objects, ObjectsError, Probe, Store, shown::Shown};

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
    pub fn retain(&self, persons: &[PersonId]) {
        self.seen().retain(|person, _| persons.contains(person));
    }

    async fn find(&self, face: &FaceId) -> Result<Option<Probe>, IndexError> {
        let Some(Place { key, bounds, others, model }) = self.place(face).await? else { return Ok(None) };
        let picture = match self.objects.get(&key, self.max_bytes).await {
            Ok(picture) => picture,
            Err(ObjectsError::NotFound(_)) => return Ok(None),
            Err(ObjectsError::Busy { .. }) => return Err(IndexError::Busy(format!("{key} cannot be read now"))),
            Err(error) => return Err(IndexError::Unavailable(error.to_string())),
        };
        let darkroom = Arc::clone(&self.darkroom);
        let opened = self.cpu.run(move || darkroom.open(&picture.bytes)).await;
        let pixels = match opened {
            Ok(Ok(pixels)) => Arc::new(pixels),
            Ok(Err(error)) => return Err(IndexError::Unavailable(format!("{key}: {error}"))),
            Err(crashed) => return Err(IndexError::Unavailable(format!("{key}: {crashed}"))),
        };
        Ok(Some(Probe { pixels, bounds, others, model, signature: None }))
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
