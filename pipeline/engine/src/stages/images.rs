//! Image processing on the CPU pool, and crops of persons.

use std::sync::Arc;

use sparks_domain::{FaceBox, PersonId, RejectCode, Rejection, Variant, object_keys};

use crate::{Cause, Content, Failure, ImageError, ImageProcessor, Pipeline, Pixels, PutMode, TaskPanicked, sha256};

/// Decodes images and makes crops.
pub(crate) struct Images<'a>(pub &'a Pipeline);

/// Where pixels come from.
pub(crate) enum PixelSource {
    /// Decoded already.
    Pixels(Arc<Pixels>),
    /// An object, decoded when it is first needed.
    Object(StoredImage),
    /// Pixels that are lost: a later version replaced the variants, and was not decided because one after it was rejected.
    Lost,
}

/// An image in the bucket.
#[derive(Debug, Clone)]
pub(crate) struct StoredImage {
    pub key: String,
    /// The digest of its bytes, where the event log has it.
    pub sha256: Option<String>,
}

impl From<&Variant> for StoredImage {
    fn from(variant: &Variant) -> Self {
        Self { key: variant.key.clone(), sha256: variant.sha256.clone() }
    }
}

impl StoredImage {
    /// Returns whether these are the bytes of the event log. The variants of a later version are stored before it is committed, and
    /// show other faces.
    pub fn is_right(&self, bytes: &[u8]) -> bool {
        self.sha256.as_ref().is_none_or(|digest| *digest == sha256(bytes))
    }
}

impl Images<'_> {
    /// Runs image processing on the CPU pool. A photo that makes the decoder panic is rejected as damaged.
    pub async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&dyn ImageProcessor) -> Result<T, ImageError> + Send + 'static,
    ) -> Result<T, ImageError> {
        let (processor, span) = (Arc::clone(&self.0.ports.image_processor), tracing::Span::current());
        let task = move || span.in_scope(|| task(processor.as_ref()));
        self.0.cpu.run(task).await.unwrap_or_else(|panicked| Err(rejection(&panicked).into()))
    }

    /// Returns the pixels, decoded at most once.
    pub async fn pixels(&self, source: &mut PixelSource) -> Result<Arc<Pixels>, Failure> {
        match source {
            PixelSource::Pixels(pixels) => Ok(Arc::clone(pixels)),
            PixelSource::Lost => Err(Failure::new(Cause::NoObject, "the pixels of the photo are lost")),
            PixelSource::Object(image) => {
                let key = image.key.as_str();
                let object = self.0.ports.objects.get(key, self.0.config.max_bytes).await?;
                if !image.is_right(&object.bytes) {
                    let reason = format!("conflict: {key} is that of a later version, which is not committed yet");
                    return Err(Failure::new(Cause::Contended, reason));
                }
                let pixels = self.run_on_own(key, move |processor| processor.decode(&object.bytes)).await?;
                let pixels = Arc::new(pixels);
                *source = PixelSource::Pixels(Arc::clone(&pixels));
                Ok(pixels)
            }
        }
    }

    /// Makes and stores the crop of a person.
    pub async fn store_crop(&self, person: PersonId, bounds: FaceBox, pixels: Arc<Pixels>) -> Result<(), Failure> {
        let key = object_keys::crop(person);
        let jpeg = self.run_on_own(&key, move |processor| Ok(processor.crop(&pixels, bounds)?)).await?;
        self.0.ports.objects.put(&key, jpeg, Content::image("image/jpeg"), PutMode::Replace).await?;
        Ok(())
    }

    /// Runs image processing on an image that the worker made itself, so that a rejection is a fault and not the photo's.
    async fn run_on_own<T: Send + 'static>(
        &self,
        key: &str,
        task: impl FnOnce(&dyn ImageProcessor) -> Result<T, ImageError> + Send + 'static,
    ) -> Result<T, Failure> {
        self.run(task).await.map_err(|error| {
            let failure = Failure::from(error);
            Failure::new(failure.cause, format!("{key}: {failure}"))
        })
    }
}

fn rejection(panicked: &TaskPanicked) -> Rejection {
    Rejection { code: RejectCode::Damaged, message: format!("the decoder crashed: {panicked}") }
}
