//! The choice of the face that a person's crop is made of.

use std::{cmp::Ordering, sync::Arc};

use sparks_domain::{Event, FaceBox, FaceId, ImageId, PersonId};

use super::{
    effects::{IdentifiedFace, identified_faces},
    table::Table,
};
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
    /// The key of the image that shows it.
    pub object: String,
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
            None => self.in_profiles(person).await,
            found => Ok(found),
        }
    }

    async fn in_photos(&self, person: PersonId) -> Result<Option<CropFace>, Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let merges = ports.index.merges();
        let rows = PhotoRows { store: ports.store.as_ref(), projection: config.projection };
        let mut best: Option<CropFace> = None;
        for image in Table(self.0).photos_of_person(person, SEARCHED_PHOTOS).await? {
            let Some(photo) = rows.current_photo(&image).await? else { continue };
            let faces = photo.faces.iter().filter(|face| face.verdict.person().is_some());
            for (face, identified) in faces.zip(identified_faces(&photo)) {
                let size = face.quality.size;
                let is_larger = best.as_ref().is_none_or(|best| best.size.total_cmp(&size) == Ordering::Less);
                if merges.current(identified.person) == person && is_larger {
                    let object = photo.variants.large.key.clone();
                    let IdentifiedFace { face, bounds, others, .. } = identified;
                    best = Some(CropFace { face, bounds, others, object, size });
                }
            }
        }
        Ok(best)
    }

    async fn in_profiles(&self, person: PersonId) -> Result<Option<CropFace>, Failure> {
        let Pipeline { ports, .. } = self.0;
        let merges = ports.index.merges();
        for user in users_of_person(ports.store.as_ref(), person).await? {
            let image = ImageId::of_profile(&user);
            let Some(state) = ports.store.photo(&image).await? else { continue };
            let Some(seq) = state.projected_seq else { continue };
            let recorded = ports.store.event(&image, seq).await?;
            let Some(Event::ProfileProcessed(profile)) = recorded.map(|recorded| recorded.event) else { continue };
            let Some((face, identified)) = profile.face.as_ref().zip(profile.person()) else { continue };
            if merges.current(identified) == person && ports.objects.head(&profile.source.key).await?.is_some() {
                let (bounds, size) = (face.bounds, face.quality.size);
                let face = FaceId { image: profile.image_id.clone(), n: profile.first_face };
                return Ok(Some(CropFace { face, bounds, others: Vec::new(), object: profile.source.key, size }));
            }
        }
        Ok(None)
    }
}
