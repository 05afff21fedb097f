//! From bytes to pictures.

use std::sync::Arc;

use sparks_domain::{ImageId, RejectCode, Rejection, Source, Variant, Variants};

use super::{fetch::FetchedPhoto, look_up::KnownPhoto, outcome::Setback};
use crate::{Content, Developed, Pipeline, PutMode, Rendered};

/// A photo whose pictures are in the bucket.
#[derive(Debug)]
pub(super) struct RenderedPhoto {
    pub known: KnownPhoto,
    pub source: Source,
    pub developed: Developed,
    pub variants: Variants,
}

impl Pipeline {
    /// Develops the photo and stores its pictures. They are the same for the same bytes, so storing them again is harmless.
    pub(super) async fn render(&self, fetched: FetchedPhoto) -> Result<RenderedPhoto, Setback> {
        let FetchedPhoto { known, mut source, bytes } = fetched;
        source.mime_type = self.ports.darkroom.describe(&bytes).mime_type.map(str::to_owned);
        let darkroom = Arc::clone(&self.ports.darkroom);
        let developed = self.cpu.run(move || darkroom.develop(&bytes)).await;
        let developed = developed.unwrap_or_else(|crashed| {
            Err(Rejection { code: RejectCode::Damaged, message: format!("it makes the decoder crash: {crashed}") })
        });
        let mut developed = match developed {
            Ok(developed) => developed,
            Err(reason) => return Err(known.unfit(source, reason)),
        };
        let variants = Variants {
            large: self.store_variant(&known.photo.image, "large", &mut developed.large).await?,
            medium: self.store_variant(&known.photo.image, "medium", &mut developed.medium).await?,
        };
        Ok(RenderedPhoto { known, source, developed, variants })
    }

    async fn store_variant(&self, image: &ImageId, name: &str, picture: &mut Rendered) -> Result<Variant, Setback> {
        let key = format!("processed/{image}_{name}.webp");
        let webp = std::mem::take(&mut picture.webp);
        let bytes = webp.len() as u64;
        self.ports.objects.put(&key, webp, Content::picture("image/webp"), PutMode::Replace).await?;
        Ok(Variant { key, width: picture.width, height: picture.height, bytes })
    }
}
