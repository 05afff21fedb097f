//! The choice of the face that a person's crop is made of.

use std::{collections::BTreeSet, sync::Arc};

use sparks_domain::{Event, FaceBox, FaceId, ImageId, PersonId};

use super::{images::StoredImage, person_photos::PersonPhotos, table::Table};
use crate::{Enrollment, Failure, Pipeline, Pixels, Probe, photo_rows::PhotoRows, users::users_of_person};

/// The number of newest photos that are searched for a face.
const SEARCHED_PHOTOS: usize = 32;

/// Chooses faces for crops.
pub(super) struct CropChoice<'a>(pub &'a Pipeline);

/// A face to make a crop of.
pub(super) struct CropFace {
    pub face: FaceId,
    pub bounds: FaceBox,
    others: Vec<FaceBox>,
    /// The image that shows it; `None` where it is lost (see [`super::images::PixelSource::Lost`]).
    pub image: Option<StoredImage>,
    size: f32,
}

impl CropFace {
    /// Returns the enrollment of this face at a service.
    pub fn enrollment(&self, person: PersonId, pixels: Arc<Pixels>) -> Enrollment {
        let probe = Probe::unsigned(pixels, self.bounds, self.others.clone());
        Enrollment { person, face: self.face.clone(), is_first: true, probe }
    }
}

impl CropChoice<'_> {
    /// Returns the largest face of the person in their photos, or else that of their profile picture.
    pub async fn best_face(&self, person: PersonId) -> Result<Option<CropFace>, Failure> {
        match self.in_photos(person).await? {
            Some(found) if found.image.is_some() => Ok(Some(found)),
            lost => Ok(self.in_profiles(person).await?.or(lost)),
        }
    }

    async fn in_photos(&self, person: PersonId) -> Result<Option<CropFace>, Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let merges = ports.index.merges();
        let rows = PhotoRows { store: ports.store.as_ref(), projection: config.projection };
        let mut faces: Vec<(CropFace, bool)> = Vec::new();
        // The index of tags may lag behind; stored faces do not, but not every analyzer stores them.
        let stored = PersonPhotos(self.0).faces(person).await?;
        let mut images = Table(self.0).photos_of_person(person, SEARCHED_PHOTOS).await?;
        let unlisted: Vec<ImageId> = stored.keys().filter(|image| !images.contains(image)).cloned().collect();
        images.extend(unlisted.into_iter().take(SEARCHED_PHOTOS));
        for image in images {
            let Some((recorded, state)) = rows.current_event(&image).await? else { continue };
            let Event::PhotoProcessed(photo) = recorded.event else { continue };
            let is_rejected_since = state.seq != recorded.seq;
            for (n, face) in (photo.first_face..).zip(&photo.faces) {
                let (id, size) = (FaceId { image: image.clone(), n }, face.quality.size);
                // A review may have identified the face since.
                let is_theirs = face.verdict.person().is_some_and(|identified| merges.current(identified) == person)
                    || stored.get(&image).is_some_and(|faces| faces.contains(&id));
                if is_theirs {
                    let (bounds, image) = (face.bounds, Some((&photo.variants.large).into()));
                    let others = photo.faces.iter().map(|other| other.bounds).filter(|other| *other != bounds);
                    let face = CropFace { face: id, bounds, others: others.collect(), image, size };
                    faces.push((face, is_rejected_since));
                }
            }
        }
        // The first of equals, so that a repeat chooses the same.
        faces.sort_by(|(a, _), (b, _)| b.size.total_cmp(&a.size));
        let mut unusable: Option<CropFace> = None;
        for (mut face, is_rejected_since) in faces {
            if self.is_replaced(face.image.as_ref()).await? {
                if is_rejected_since {
                    face.image = None;
                }
                // One that is not lost is better: it can be used once the later version is committed.
                if unusable.as_ref().is_none_or(|unusable| unusable.image.is_none()) {
                    unusable = Some(face);
                }
            } else {
                return Ok(Some(face));
            }
        }
        Ok(unusable)
    }

    /// Returns whether a later version of the photo, which is not committed yet, replaced this variant.
    async fn is_replaced(&self, image: Option<&StoredImage>) -> Result<bool, Failure> {
        let Some(StoredImage { key, sha256: Some(digest) }) = image else { return Ok(false) };
        let stored = self.0.ports.objects.head(key).await?.and_then(|stored| stored.sha256);
        Ok(stored.is_some_and(|stored| stored != *digest))
    }

    async fn in_profiles(&self, person: PersonId) -> Result<Option<CropFace>, Failure> {
        let Pipeline { ports, .. } = self.0;
        let merges = ports.index.merges();
        let users = users_of_person(ports.store.as_ref(), person).await?;
        let mut images: BTreeSet<ImageId> = users.iter().map(ImageId::of_profile).collect();
        // The index of users may lag behind, too.
        for image in PersonPhotos(self.0).faces(person).await?.into_keys() {
            if PersonPhotos(self.0).is_shown_in(person, &image).await? {
                images.insert(image);
            }
        }
        for image in images {
            let Some(state) = ports.store.photo(&image).await? else { continue };
            let Some(seq) = state.projected_seq else { continue };
            let recorded = ports.store.event(&image, seq).await?;
            let Some(Event::ProfileProcessed(profile)) = recorded.map(|recorded| recorded.event) else { continue };
            let Some((face, identified)) = profile.face.as_ref().zip(profile.person()) else { continue };
            if merges.current(identified) == person && ports.objects.head(&profile.source.key).await?.is_some() {
                let (bounds, size) = (face.bounds, face.quality.size);
                let image = Some(StoredImage { key: profile.source.key, sha256: None });
                let face = FaceId { image: profile.image_id.clone(), n: profile.first_face };
                return Ok(Some(CropFace { face, bounds, others: Vec::new(), image, size }));
            }
        }
        Ok(None)
    }
}
