//! What follows a commit: safe to repeat, and repeated when the message comes again.

use std::sync::Arc;

use sparks_domain::{Event, FaceBox, ImageId, PersonId, PhotoProcessed, Projection, Recorded, Rejection, Seq, Verdict};

use super::{Committed, outcome::Failure};
use crate::{CommitError, Content, Darkroom, Pipeline, Pixels, PutMode};

impl Pipeline {
    /// Shows the new persons.
    pub(super) async fn effects(&self, committed: &Committed, pixels: Arc<Pixels>) -> Result<(), Failure> {
        for (person, bounds) in committed.photo().into_iter().flat_map(founded) {
            self.store_crop(person, bounds, Arc::clone(&pixels)).await?;
        }
        Ok(())
    }

    /// Does again what a crash after the commit may have left undone: reads the committed event, asserts its rows, and
    /// makes the crops that are missing from the large picture.
    pub(super) async fn repeat_effects(&self, image: &ImageId) -> Result<(), Failure> {
        let Some(photo) = self.reassert(image).await? else { return Ok(()) };
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

    /// Says again what the log says of the photo: the platform's own PutItem may have wiped it from its row.
    /// A commit without events, so that nobody who is faster is overwritten.
    async fn reassert(&self, image: &ImageId) -> Result<Option<PhotoProcessed>, Failure> {
        let state = self.ports.store.photo(image).await?;
        let Some(Seq(seq)) = state.as_ref().and_then(|state| state.shows) else { return Ok(None) };
        let recorded = self.ports.store.read_log(Seq(seq.saturating_sub(1)), 1).await?.pop();
        let Some(Recorded { when, event, .. }) = recorded else { return Ok(None) };
        let mut commit = self.draft(image, state.as_ref(), Vec::new());
        commit.mutations = self.rules.projection.project(state.as_ref(), &event, when);
        match self.ports.store.commit(&commit).await {
            Ok(_) | Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => {}
            Err(error) => return Err(error.into()),
        }
        match event {
            Event::PhotoProcessed(photo) => Ok(Some(photo)),
            _ => Ok(None),
        }
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
