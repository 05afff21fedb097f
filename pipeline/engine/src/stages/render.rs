//! Stage: the variants of a photo.

use std::sync::Arc;

use sparks_domain::{SourceObject, TakenAt, Variant, Variants, object_keys};

use super::{
    fetch::FetchedPhoto, images::Images, look_up::LookedUpPhoto, outcome::StageError, process::PhotoProcessor,
};
use crate::{Failure, FinishedVariants, ImageError, ObjectsError, Pixels, variant_store::StoredPair};

/// A photo whose variants are in the bucket.
#[derive(Debug)]
pub(super) struct RenderedPhoto {
    pub looked_up: LookedUpPhoto,
    pub source: SourceObject,
    pub dimensions: (u32, u32),
    pub taken_at: Option<TakenAt>,
    pub variants: Variants,
    pub pixels: Arc<Pixels>,
}

impl PhotoProcessor<'_> {
    /// Renders and stores the variants, or reuses those that the message names. `before` is what was stored before the original was
    /// read: where that has changed, the photo is processed again from there.
    pub(super) async fn render(&self, fetched: FetchedPhoto, before: &StoredPair) -> Result<RenderedPhoto, StageError> {
        let FetchedPhoto { looked_up, mut source, bytes } = fetched;
        let info = self.0.ports.image_processor.inspect(&bytes);
        source.mime_type = info.mime_type.map(str::to_owned);
        let original = match self.reuse_variants(looked_up.photo.finished.as_ref(), bytes).await? {
            VariantReuse::Reused { dimensions, variants, pixels } => {
                let taken_at = info.taken_at;
                return Ok(RenderedPhoto { looked_up, source, dimensions, taken_at, variants, pixels });
            }
            VariantReuse::NotReusable(original) => original,
        };
        let mut image = match Images(self.0).run(move |processor| processor.render(&original)).await {
            Ok(image) => image,
            Err(ImageError::Rejected(reason)) => return Err(looked_up.rejected(source, reason)),
            Err(unavailable) => return Err(Failure::from(unavailable).into()),
        };
        let store = self.0.variants();
        let [large_key, medium_key] = object_keys::variants(&looked_up.photo.image);
        let stored = tokio::try_join!(
            store.put(&large_key, &mut image.large, before[0].as_ref()),
            store.put(&medium_key, &mut image.medium, before[1].as_ref()),
        )?;
        let (Some(large), Some(medium)) = stored else { return Err(StageError::Moved) };
        let variants = Variants { large, medium };
        let (dimensions, taken_at) = ((image.width, image.height), image.taken_at);
        Ok(RenderedPhoto { looked_up, source, dimensions, taken_at, variants, pixels: Arc::new(image.pixels) })
    }

    /// Reuses the variants that another program has rendered, unless they are missing or cannot be decoded.
    async fn reuse_variants(
        &self,
        finished: Option<&FinishedVariants>,
        original: Vec<u8>,
    ) -> Result<VariantReuse, StageError> {
        let Some(finished) = finished else { return Ok(VariantReuse::NotReusable(original)) };
        let stored = (self.stored_variant(&finished.large).await?, self.stored_variant(&finished.medium).await?);
        let (Some(large), Some(medium)) = stored else { return Ok(VariantReuse::NotReusable(original)) };
        let (large_size, medium_size) = (large.len() as u64, medium.len() as u64);
        let images = Images(self.0);
        let decoded = images.run(move |processor| {
            let dimensions = processor.dimensions(&original).unwrap_or_default();
            let medium = processor.dimensions(&medium);
            match processor.decode(&large) {
                Err(ImageError::Unavailable(reason)) => Err(ImageError::Unavailable(reason)),
                pixels => Ok((pixels.ok(), medium, dimensions, original)),
            }
        });
        let (pixels, medium_dimensions, dimensions, original) = match decoded.await {
            Ok(decoded) => decoded,
            // The decoder panicked, and the bytes are lost with the task. Rendering no bytes rejects the photo.
            Err(ImageError::Rejected(_)) => return Ok(VariantReuse::NotReusable(Vec::new())),
            Err(unavailable) => return Err(Failure::from(unavailable).into()),
        };
        let (Some(pixels), Some((width, height))) = (pixels, medium_dimensions) else {
            return Ok(VariantReuse::NotReusable(original));
        };
        let (large_key, medium_key) = (finished.large.clone(), finished.medium.clone());
        let variants = Variants {
            large: Variant {
                key: large_key,
                width: pixels.width,
                height: pixels.height,
                bytes: large_size,
                sha256: None,
            },
            medium: Variant { key: medium_key, width, height, bytes: medium_size, sha256: None },
        };
        Ok(VariantReuse::Reused { dimensions, variants, pixels: Arc::new(pixels) })
    }

    async fn stored_variant(&self, key: &str) -> Result<Option<Vec<u8>>, StageError> {
        match self.0.ports.objects.get(key, self.0.config.max_bytes).await {
            Ok(object) => Ok(Some(object.bytes)),
            Err(ObjectsError::NotFound(_) | ObjectsError::TooLarge { .. } | ObjectsError::BadKey(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The result of an attempt to reuse variants.
enum VariantReuse {
    Reused {
        dimensions: (u32, u32),
        variants: Variants,
        pixels: Arc<Pixels>,
    },
    /// The bytes of the original, to be rendered.
    NotReusable(Vec<u8>),
}
