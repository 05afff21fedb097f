//! The variants of photos in the bucket: stored under a condition, compared with the event log, and rendered again.

use std::sync::Arc;

use sparks_domain::{PhotoProcessed, Variant};

use crate::{
    Content, CpuPool, EncodedVariant, Failure, ImageError, ImageProcessor, ObjectInfo, Objects, ObjectsError, PutMode,
    sha256,
    stages::{conflict_backoff, wait_after_conflict},
};

/// Stores, compares and restores variants.
#[derive(Clone)]
pub struct VariantStore {
    /// The bucket.
    pub objects: Arc<dyn Objects>,
    /// Renders variants.
    pub image_processor: Arc<dyn ImageProcessor>,
    /// The threads that it runs on.
    pub cpu: CpuPool,
    /// The size limit of an original.
    pub max_bytes: u64,
}

/// The result of restoring the variants of a photo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restoration {
    /// They are those of the event log.
    Unchanged,
    /// They were rendered again.
    Restored,
    /// They differ and cannot be rendered again, for this reason.
    Impossible(String),
}

/// What is stored under the keys of the large and the medium variant.
pub(crate) type StoredPair = [Option<ObjectInfo>; 2];

impl VariantStore {
    /// Returns what is stored under these keys.
    pub(crate) async fn stored(&self, [large, medium]: [&str; 2]) -> Result<StoredPair, ObjectsError> {
        let (large, medium) = tokio::try_join!(self.objects.head(large), self.objects.head(medium))?;
        Ok([large, medium])
    }

    /// Stores a variant if its key still holds what it held before the original was read: otherwise another worker has stored a variant
    /// of a version that may be newer. Returns whether the variant is stored.
    pub(crate) async fn put(
        &self,
        key: &str,
        encoded: &mut EncodedVariant,
        before: Option<&ObjectInfo>,
    ) -> Result<Option<Variant>, ObjectsError> {
        let webp = std::mem::take(&mut encoded.webp);
        let (bytes, digest) = (webp.len() as u64, sha256(&webp));
        let is_same = |stored: &ObjectInfo| stored.sha256.as_ref() == Some(&digest);
        let mode = before.map_or(PutMode::IfAbsent, |before| PutMode::IfVersion(before.version.clone()));
        let is_stored = before.is_some_and(is_same)
            || self.objects.put(key, webp, Content::image("image/webp"), mode).await?
            // An earlier attempt, or this one, whose answer was lost, may have stored the same bytes.
            || self.objects.head(key).await?.as_ref().is_some_and(is_same);
        let (key, width, height) = (key.to_owned(), encoded.width, encoded.height);
        Ok(is_stored.then_some(Variant { key, width, height, bytes, sha256: Some(digest) }))
    }

    /// Returns how the stored variants of a photo differ from the event log.
    pub async fn differences(&self, photo: &PhotoProcessed) -> Result<Vec<String>, ObjectsError> {
        let variants = [&photo.variants.large, &photo.variants.medium];
        let stored = self.stored(variants.map(|variant| variant.key.as_str())).await?;
        Ok(variants
            .into_iter()
            .zip(&stored)
            .filter_map(|(variant, stored)| difference(variant, stored.as_ref()))
            .collect())
    }

    /// Renders the variants of a photo again from its original where they differ from the event log.
    pub async fn restore(&self, photo: &PhotoProcessed) -> Result<Restoration, Failure> {
        let variants = [&photo.variants.large, &photo.variants.medium];
        let keys = variants.map(|variant| variant.key.as_str());
        let mut backoff = conflict_backoff();
        loop {
            let stored = self.stored(keys).await?;
            let differs = |n: usize| difference(variants[n], stored[n].as_ref()).is_some();
            let differing: Vec<usize> = (0..keys.len()).filter(|n| differs(*n)).collect();
            if differing.is_empty() {
                return Ok(Restoration::Unchanged);
            }
            let mut encoded = match self.render(photo).await? {
                Ok(encoded) => encoded,
                Err(reason) => return Ok(Restoration::Impossible(reason)),
            };
            let mut is_stored = true;
            for n in differing {
                is_stored &= self.put(keys[n], &mut encoded[n], stored[n].as_ref()).await?.is_some();
            }
            if is_stored {
                return Ok(Restoration::Restored);
            }
            wait_after_conflict(&mut backoff, &format!("a variant of {}", photo.image_id)).await?;
        }
    }

    /// Renders the version of the original that the event records; a reason where it is not the current one.
    async fn render(&self, photo: &PhotoProcessed) -> Result<Result<[EncodedVariant; 2], String>, Failure> {
        let original = match self.objects.get(&photo.source.key, self.max_bytes).await {
            Ok(original) => original,
            Err(error @ (ObjectsError::NotFound(_) | ObjectsError::TooLarge { .. } | ObjectsError::BadKey(_))) => {
                return Ok(Err(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        if original.version != photo.source.version {
            return Ok(Err(format!("{} has a newer version, which is not processed yet", photo.source.key)));
        }
        let processor = Arc::clone(&self.image_processor);
        match self.cpu.run(move || processor.render(&original.bytes)).await {
            Ok(Ok(image)) => Ok(Ok([image.large, image.medium])),
            Ok(Err(ImageError::Rejected(reason))) => Ok(Err(reason.message)),
            Ok(Err(unavailable)) => Err(unavailable.into()),
            Err(panicked) => Ok(Err(panicked.to_string())),
        }
    }
}

/// Returns how a stored variant differs from the event log: by digest, or by size where a digest is missing.
fn difference(variant: &Variant, stored: Option<&ObjectInfo>) -> Option<String> {
    let key = &variant.key;
    let Some(stored) = stored else { return Some(format!("{key} is missing")) };
    match (&variant.sha256, &stored.sha256) {
        (Some(expected), Some(found)) if expected != found => Some(format!("{key} has other bytes than in the log")),
        (Some(_), Some(_)) => None,
        _ if variant.bytes != stored.bytes => {
            Some(format!("{key} has {} bytes, and {} in the log", stored.bytes, variant.bytes))
        }
        _ => None,
    }
}
