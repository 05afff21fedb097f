//! What follows a commit: safe to repeat, and repeated when the message comes again.

use std::sync::Arc;

use sparks_domain::{Event, FaceBox, ImageId, PersonId, PhotoProcessed, Projection, Rejection, Seq, Verdict};

use super::{Committed, outcome::Failure};
use crate::{Content, Darkroom, Pipeline, Pixels, PutMode};

impl Pipeline {
    /// Shows the new persons.
    pub(super) async fn effects(&self, committed: &Committed, pixels: Arc<Pixels>) -> Result<(), Failure> {
        for (person, bounds) in committed.photo().into_iter().flat_map(founded) {
            self.store_crop(person, bounds, Arc::clone(&pixels)).await?;
        }
        Ok(())
    }

    /// Does again what a crash after the commit may have left undone: reads the committed event, and makes the crops that are
    /// missing from the large picture.
    pub(super) async fn repeat_effects(&self, image: &ImageId) -> Result<(), Failure> {
        let Some(photo) = self.committed_photo(image).await? else { return Ok(()) };
        for (person, bounds) in founded(&photo) {
            if self.ports.objects.head(&Projection::crop_key(person)).await?.is_none() {
                let key = &photo.variants.large.key;
                let large = self.ports.objects.get(key, self.rules.max_bytes).await?;
                let pixels = self.on_cpu(key, move |darkroom| darkroom.reopen(&large.bytes)).await?;
                self.store_crop(person, bounds, Arc::new(pixels)).await?;
            }
        }
        Ok(())
    }

    async fn committed_photo(&self, image: &ImageId) -> Result<Option<PhotoProcessed>, Failure> {
        let state = self.ports.store.photo(image).await?;
        let Some(Seq(seq)) = state.and_then(|state| state.shows) else { return Ok(None) };
        let recorded = self.ports.store.read_log(Seq(seq.saturating_sub(1)), 1).await?;
        Ok(recorded.into_iter().find_map(|recorded| match recorded.event {
            Event::PhotoProcessed(photo) => Some(photo),
            _ => None,
        }))
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
