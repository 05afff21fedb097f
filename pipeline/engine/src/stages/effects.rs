//! What follows a commit: safe to repeat, and repeated when the message comes again.

use sparks_domain::{Event, FaceBox, PersonId, PhotoProcessed, Projection, Seq, Verdict};

use super::{Committed, look_up::KnownPhoto, outcome::Failure};
use crate::{Content, Pipeline, Pixels, PutMode};

impl Pipeline {
    /// Shows the new persons.
    pub(super) async fn effects(&self, committed: &Committed, pixels: &Pixels) -> Result<(), Failure> {
        for (person, bounds) in committed.photo().into_iter().flat_map(founded) {
            self.store_crop(person, bounds, pixels).await?;
        }
        Ok(())
    }

    /// Does again what a crash after the commit may have left undone: reads the committed event, and makes the crops that are
    /// missing from the large picture.
    pub(super) async fn repeat_effects(&self, known: &KnownPhoto) -> Result<(), Failure> {
        let Some(photo) = self.committed_photo(known).await? else { return Ok(()) };
        for (person, bounds) in founded(&photo) {
            if self.ports.objects.head(&Projection::crop_key(person)).await?.is_none() {
                let large = self.ports.objects.get(&photo.variants.large.key, self.rules.max_bytes).await?;
                let pixels = self.ports.darkroom.reopen(&large.bytes);
                let pixels =
                    pixels.map_err(|e| Failure::Poison(format!("{}: {}", photo.variants.large.key, e.message)))?;
                self.store_crop(person, bounds, &pixels).await?;
            }
        }
        Ok(())
    }

    async fn committed_photo(&self, known: &KnownPhoto) -> Result<Option<PhotoProcessed>, Failure> {
        let Some(state) = &known.state else { return Ok(None) };
        let recorded = self.ports.store.read_log(Seq(state.seq.0.saturating_sub(1)), 1).await?;
        Ok(recorded.into_iter().find_map(|recorded| match recorded.event {
            Event::PhotoProcessed(photo) => Some(photo),
            _ => None,
        }))
    }

    async fn store_crop(&self, person: PersonId, bounds: FaceBox, pixels: &Pixels) -> Result<(), Failure> {
        let key = Projection::crop_key(person);
        let jpeg = self.ports.darkroom.crop(pixels, bounds);
        let jpeg = jpeg.map_err(|e| Failure::Poison(format!("the crop of {person}: {}", e.message)))?;
        self.ports.objects.put(&key, jpeg, Content::picture("image/jpeg"), PutMode::Replace).await?;
        Ok(())
    }
}

fn founded(photo: &PhotoProcessed) -> impl Iterator<Item = (PersonId, FaceBox)> {
    photo.faces.iter().filter_map(|face| match face.verdict {
        Verdict::Founded(person) => Some((person, face.bounds)),
        _ => None,
    })
}
