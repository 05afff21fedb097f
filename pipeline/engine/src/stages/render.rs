//! From bytes to pictures.

use std::sync::Arc;

use sparks_domain::{ImageId, RejectCode, Rejection, Source, TakenAt, Variant, Variants};

use super::{fetch::FetchedPhoto, look_up::KnownPhoto, outcome::Setback};
use crate::{
    Content, Crashed, Darkroom, DarkroomError, Failure, FinishedVariants, ObjectsError, Pipeline, Pixels, PutMode,
    Rendered,
};

/// A photo whose pictures are in the bucket.
#[derive(Debug)]
pub(super) struct RenderedPhoto {
    pub known: KnownPhoto,
    pub source: Source,
    pub dimensions: (u32, u32),
    pub taken_at: Option<TakenAt>,
    pub variants: Variants,
    pub pixels: Arc<Pixels>,
}

impl Pipeline {
    /// Develops the photo and stores its pictures, unless somebody else has made them. They are the same for the same
    /// bytes, so storing them again is harmless.
    pub(super) async fn render(&self, fetched: FetchedPhoto) -> Result<RenderedPhoto, Setback> {
        let FetchedPhoto { known, mut source, bytes } = fetched;
        let about = self.ports.darkroom.describe(&bytes);
        source.mime_type = about.mime_type.map(str::to_owned);
        let original = match self.adopt(known.photo.finished.as_ref(), bytes).await? {
            Adoption::Adopted { dimensions, variants, pixels } => {
                let taken_at = about.taken_at;
                return Ok(RenderedPhoto { known, source, dimensions, taken_at, variants, pixels });
            }
            Adoption::Unfinished(original) => original,
        };
        let mut developed = match self.decode(move |darkroom| darkroom.develop(&original)).await {
            Ok(developed) => developed,
            Err(DarkroomError::Rejected(reason)) => return Err(known.unfit(source, reason)),
            Err(unavailable) => return Err(Failure::from(unavailable).into()),
        };
        let image = &known.photo.image;
        let (large, medium) = tokio::try_join!(
            self.store_variant(image, "large", &mut developed.large),
            self.store_variant(image, "medium", &mut developed.medium),
        )?;
        let variants = Variants { large, medium };
        let (dimensions, taken_at) = ((developed.width, developed.height), developed.taken_at);
        Ok(RenderedPhoto { known, source, dimensions, taken_at, variants, pixels: Arc::new(developed.pixels) })
    }

    /// Pixels on one of the cores. A photo that makes the decoder crash is damaged.
    pub(crate) async fn decode<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Darkroom) -> Result<T, DarkroomError> + Send + 'static,
    ) -> Result<T, DarkroomError> {
        let (darkroom, about) = (Arc::clone(&self.ports.darkroom), tracing::Span::current());
        let work = move || about.in_scope(|| work(darkroom.as_ref()));
        self.cpu.run(work).await.unwrap_or_else(|crashed| Err(rejection(&crashed).into()))
    }

    /// Takes over the pictures that somebody else has made. Where they are not there or cannot be read, we make our own.
    async fn adopt(&self, finished: Option<&FinishedVariants>, original: Vec<u8>) -> Result<Adoption, Setback> {
        let Some(FinishedVariants { large, medium }) = finished else { return Ok(Adoption::Unfinished(original)) };
        let (Some(large), Some(medium)) = (self.picture(large).await?, self.picture(medium).await?) else {
            return Ok(Adoption::Unfinished(original));
        };
        let measured = self.decode({
            let (large, medium) = (large.1, medium.1);
            move |darkroom| {
                let dimensions = darkroom.measure(&original).unwrap_or_default();
                let medium = darkroom.measure(&medium);
                match darkroom.open(&large) {
                    Err(DarkroomError::Unavailable(why)) => Err(DarkroomError::Unavailable(why)),
                    pixels => Ok((pixels.ok(), medium, dimensions, original)),
                }
            }
        });
        let (pixels, measured, dimensions, original) = match measured.await {
            Ok(measured) => measured,
            // An original that crashes a decoder is damaged anyway.
            Err(DarkroomError::Rejected(_)) => return Ok(Adoption::Unfinished(Vec::new())),
            Err(unavailable) => return Err(Failure::from(unavailable).into()),
        };
        let (Some(pixels), Some((width, height))) = (pixels, measured) else {
            return Ok(Adoption::Unfinished(original));
        };
        let variants = Variants {
            large: Variant { key: large.0, width: pixels.width, height: pixels.height, bytes: large.2 },
            medium: Variant { key: medium.0, width, height, bytes: medium.2 },
        };
        Ok(Adoption::Adopted { dimensions, variants, pixels: Arc::new(pixels) })
    }

    /// A picture's key, bytes and size, if it is there.
    async fn picture(&self, key: &str) -> Result<Option<(String, Vec<u8>, u64)>, Setback> {
        match self.ports.objects.get(key, self.rules.max_bytes).await {
            Ok(object) => {
                let bytes = object.bytes.len() as u64;
                Ok(Some((key.to_owned(), object.bytes, bytes)))
            }
            Err(ObjectsError::NotFound(_) | ObjectsError::TooLarge { .. } | ObjectsError::BadKey(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn store_variant(&self, image: &ImageId, name: &str, picture: &mut Rendered) -> Result<Variant, Setback> {
        let key = format!("processed/{image}_{name}.webp");
        let webp = std::mem::take(&mut picture.webp);
        let bytes = webp.len() as u64;
        self.ports.objects.put(&key, webp, Content::picture("image/webp"), PutMode::Replace).await?;
        Ok(Variant { key, width: picture.width, height: picture.height, bytes })
    }
}

fn rejection(crashed: &Crashed) -> Rejection {
    Rejection { code: RejectCode::Damaged, message: format!("it makes the decoder crash: {crashed}") }
}

/// Whether somebody else's pictures serve.
enum Adoption {
    Adopted { dimensions: (u32, u32), variants: Variants, pixels: Arc<Pixels> },
    Unfinished(Vec<u8>),
}
