//! Loading of the face that a person's crop shows, from its photo.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sparks_domain::{Event, FaceBox, FaceId, PersonId, Projection};

use crate::{
    CpuPool, CropWindow, DependencyError, ImageError, ImageProcessor, IndexError, Objects, ObjectsError, Probe, Store,
    photo_rows::PhotoRows, stages::StoredImage,
};

/// Loads the faces that represent new persons, as probes for a face service, and caches them while the persons are new.
pub struct CropLoader {
    store: Arc<dyn Store>,
    objects: Arc<dyn Objects>,
    image_processor: Arc<dyn ImageProcessor>,
    cpu: CpuPool,
    max_bytes: u64,
    cache: Mutex<BTreeMap<PersonId, Probe>>,
}

/// The object that contains a face, and the position of the face in it.
struct FaceLocation {
    image: StoredImage,
    bounds: FaceBox,
    others: Vec<FaceBox>,
    model: String,
}

/// The padding around a cached face, as a share of its size.
const PADDING: f32 = 0.5;

impl CropLoader {
    /// Creates a loader that reads images of at most `max_bytes`.
    pub fn new(
        store: Arc<dyn Store>,
        objects: Arc<dyn Objects>,
        image_processor: Arc<dyn ImageProcessor>,
        cpu: CpuPool,
        max_bytes: u64,
    ) -> Self {
        Self { store, objects, image_processor, cpu, max_bytes, cache: Mutex::default() }
    }

    /// Returns the face that represents this person. `None` if its image is missing or unreadable.
    pub async fn load(&self, person: PersonId, face: &FaceId) -> Result<Option<Probe>, IndexError> {
        if let Some(cached) = self.cache().get(&person) {
            return Ok(Some(cached.clone()));
        }
        let Some(probe) = self.read(face).await? else { return Ok(None) };
        self.cache().insert(person, probe.clone());
        Ok(Some(probe))
    }

    /// Removes all other persons from the cache.
    pub fn retain(&self, persons: &BTreeSet<PersonId>) {
        self.cache().retain(|person, _| persons.contains(person));
    }

    async fn read(&self, face: &FaceId) -> Result<Option<Probe>, IndexError> {
        let Some(FaceLocation { image, bounds, others, model }) = self.locate(face).await? else { return Ok(None) };
        let (key, expected) = (image.key.clone(), image);
        let image = match self.objects.get(&key, self.max_bytes).await {
            Ok(image) => image,
            Err(ObjectsError::Dependency { error, .. }) => return Err(with_key(&key, error).into()),
            Err(error) => return Ok(unreadable(&key, &error)),
        };
        if !expected.is_right(&image.bytes) {
            return Ok(unreadable(&key, &"a later version of the photo is not committed yet"));
        }
        let image_processor = Arc::clone(&self.image_processor);
        let cropped = self.cpu.run(move || {
            let pixels = Arc::new(image_processor.decode(&image.bytes)?);
            let probe = Probe { pixels, bounds, others, model, signature: None };
            // Only the window is cached: photos are large, and there may be many new persons.
            let window = probe.window(PADDING, 1).map(|CropWindow { pixels, bounds }| (Arc::new(pixels), bounds));
            Ok(window.map(|(pixels, bounds)| Probe { pixels, bounds, others: Vec::new(), ..probe }))
        });
        match cropped.await {
            Ok(Ok(probe)) => Ok(probe),
            Ok(Err(ImageError::Unavailable(reason))) => {
                Err(DependencyError::Unavailable(format!("{key}: {reason}")).into())
            }
            Ok(Err(error)) => Ok(unreadable(&key, &error)),
            Err(panic) => Ok(unreadable(&key, &panic)),
        }
    }

    async fn locate(&self, face: &FaceId) -> Result<Option<FaceLocation>, IndexError> {
        let rows = PhotoRows { store: self.store.as_ref(), projection: Projection::default() };
        let (first, image, faces) = match rows.current_event(&face.image).await?.map(|(recorded, _)| recorded.event) {
            Some(Event::PhotoProcessed(photo)) => (photo.first_face, (&photo.variants.large).into(), photo.faces),
            Some(Event::ProfileProcessed(profile)) => {
                let image = StoredImage { key: profile.source.key, sha256: None };
                (profile.first_face, image, profile.face.into_iter().collect())
            }
            _ => return Ok(None),
        };
        let Some(position) = face.n.checked_sub(first).map(usize::from) else { return Ok(None) };
        let Some(found) = faces.get(position) else { return Ok(None) };
        let others = faces.iter().enumerate().filter(|(n, _)| *n != position).map(|(_, other)| other.bounds).collect();
        Ok(Some(FaceLocation { image, bounds: found.bounds, others, model: found.model.clone() }))
    }

    fn cache(&self) -> MutexGuard<'_, BTreeMap<PersonId, Probe>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An unreadable image matches no face. It must not fail the photo whose face is compared with it.
fn unreadable(key: &str, error: &dyn std::fmt::Display) -> Option<Probe> {
    tracing::warn!(key, %error, "failed to read the face of a new person; it is not compared");
    None
}

fn with_key(key: &str, error: DependencyError) -> DependencyError {
    let message = |reason| format!("object {key}: {reason}");
    match error {
        DependencyError::Unavailable(reason) => DependencyError::Unavailable(message(reason)),
        DependencyError::Throttled(reason) => DependencyError::Throttled(message(reason)),
        DependencyError::AccessDenied(reason) => DependencyError::AccessDenied(message(reason)),
    }
}
