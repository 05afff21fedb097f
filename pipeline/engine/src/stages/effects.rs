//! What follows a commit: safe to repeat, and repeated when the message comes again.

use std::sync::Arc;

use sparks_domain::{FaceBox, ImageId, PersonId, PhotoProcessed, Projection, Rejection, Verdict};

use super::{Committed, outcome::Failure};
use crate::{Content, Darkroom, Pipeline, Pixels, PutMode, shown::Shown};

impl Pipeline {
    /// Learns what was committed, sees to it that the photo shows who its persons are by now, and shows the new ones.
    pub(super) async fn effects(&self, committed: &Committed, pixels: Arc<Pixels>) -> Result<(), Failure> {
        let Some(photo) = committed.photo() else { return Ok(()) };
        if photo.faces.is_empty() {
            return Ok(());
        }
        // Persons may have been joined since the decision: the join saw no photo to follow it, so the photo does.
        self.ports.index.refresh().await?;
        let merges = self.ports.index.merges();
        if photo.persons().iter().any(|person| merges.is_absorbed(*person)) {
            self.reassert(&photo.image_id).await?;
        }
        for (person, bounds) in founded(photo).filter(|(person, _)| !merges.is_absorbed(*person)) {
            self.store_crop(person, bounds, Arc::clone(&pixels)).await?;
        }
        Ok(())
    }

    /// Does again what a crash after the commit may have left undone: reads the committed event, asserts its rows, and
    /// makes the crops that are missing from the large picture.
    pub(super) async fn repeat_effects(&self, image: &ImageId) -> Result<(), Failure> {
        self.ports.index.refresh().await?;
        let Some(photo) = self.reassert(image).await? else { return Ok(()) };
        let merges = self.ports.index.merges();
        for (person, bounds) in founded(&photo).filter(|(person, _)| !merges.is_absorbed(*person)) {
            if self.ports.objects.head(&Projection::crop_key(person)).await?.is_none() {
                let key = &photo.variants.large.key;
                let large = self.ports.objects.get(key, self.rules.max_bytes).await?;
                let pixels = self.on_cpu(key, move |darkroom| darkroom.open(&large.bytes)).await?;
                self.store_crop(person, bounds, Arc::new(pixels)).await?;
            }
        }
        Ok(())
    }

    /// Says again what the log says of the photo: the platform's own PutItem may have wiped it from its row.
    async fn reassert(&self, image: &ImageId) -> Result<Option<PhotoProcessed>, Failure> {
        let shown = Shown { store: self.ports.store.as_ref(), projection: self.rules.projection };
        Ok(shown.reassert(image, &self.ports.index.merges()).await?)
    }

    async fn store_crop(&self, person: PersonId, bounds: FaceBox, pixels: Arc<Pixels>) -> Result<(), Failure> {
        let key = Projection::crop_key(person);
        let jpeg = self.on_cpu(&key, move |darkroom| darkroom.crop(&pixels, bounds)).await?;
        self.ports.objects.put(&key, jpeg, Content::picture("image/jpeg"), PutMode::Replace).await?;
        Ok(())
    }

    /// Pixels of our own making that cannot be worked on are a fault for a human.
    async fn on_cpu<T: Send + 'static>(
        &self,
        key: &str,
        work: impl FnOnce(&dyn Darkroom) -> Result<T, Rejection> + Send + 'static,
    ) -> Result<T, Failure> {
        let darkroom = Arc::clone(&self.ports.darkroom);
        let done = self.cpu.run(move || work(darkroom.as_ref())).await;
        let fault = |reason: String| Failure::Poison(format!("{key}: {reason}"));
        done.map_err(|crashed| fault(crashed.to_string()))?.map_err(|rejection| fault(rejection.message))
    }
}

fn founded(photo: &PhotoProcessed) -> impl Iterator<Item = (PersonId, FaceBox)> {
    photo.faces.iter().filter_map(|face| match face.verdict {
        Verdict::Founded(person) => Some((person, face.bounds)),
        _ => None,
    })
}
