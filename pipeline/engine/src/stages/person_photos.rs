//! The photos that show a person: by tags, by users and by stored faces.

use std::collections::BTreeMap;

use sparks_domain::{Event, FaceId, ImageId, Key, PersonId, PhotoState};

use super::table::Table;
use crate::{Failure, Pipeline, users::users_of_person};

/// The number of tags from which a person counts as shown without a look at the photos.
const VERIFIED_TAGS: usize = 8;

/// Finds the photos of a person.
pub(super) struct PersonPhotos<'a>(pub &'a Pipeline);

impl PersonPhotos<'_> {
    /// Returns the person and all persons merged into them.
    pub fn members(&self, person: PersonId) -> Vec<PersonId> {
        self.0.ports.index.merges().members(person).into_iter().collect()
    }

    /// Returns whether no photo shows the person, and no user is linked to them. A tag may be left of a merge that was undone, or of a
    /// photo that the platform has removed.
    pub async fn has_none(&self, person: PersonId) -> Result<bool, Failure> {
        for member in self.members(person) {
            let tagged = Table(self.0).photos_of_person(member, VERIFIED_TAGS).await?;
            if tagged.len() == VERIFIED_TAGS {
                return Ok(false);
            }
            for image in tagged {
                let is_ours = self.0.ports.store.photo(&image).await?.is_some();
                if !is_ours || self.is_shown_in(person, &image).await? {
                    return Ok(false);
                }
            }
        }
        let store = self.0.ports.store.as_ref();
        Ok(users_of_person(store, person).await?.is_empty() && !self.has_any_by_faces(person).await?)
    }

    /// Returns the stored faces of the person, photo by photo.
    pub async fn faces(&self, person: PersonId) -> Result<BTreeMap<ImageId, Vec<FaceId>>, Failure> {
        let mut photos: BTreeMap<ImageId, Vec<FaceId>> = BTreeMap::new();
        for decided in self.0.ports.store.faces_of(&self.members(person)).await? {
            let face = decided.kept.face;
            photos.entry(face.image.clone()).or_default().push(face);
        }
        Ok(photos)
    }

    /// Returns the stored faces of the person in photos that do not show them, photo by photo. Faces are read before photos, so that they
    /// include none of a photo that is decided from now on.
    pub async fn stale_faces(&self, person: PersonId) -> Result<Vec<Vec<FaceId>>, Failure> {
        let mut stale = Vec::new();
        for (image, faces) in self.faces(person).await? {
            if !self.is_shown_in(person, &image).await? {
                stale.push(faces);
            }
        }
        Ok(stale)
    }

    /// Returns whether an existing photo shows the person, by the stored faces: the index of tags may lag behind.
    async fn has_any_by_faces(&self, person: PersonId) -> Result<bool, Failure> {
        for image in self.faces(person).await?.keys() {
            if self.is_shown_in(person, image).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether this existing photo or profile picture shows the person.
    pub async fn is_shown_in(&self, person: PersonId, image: &ImageId) -> Result<bool, Failure> {
        let Pipeline { ports, .. } = self.0;
        let Some(state) = ports.store.photo(image).await? else { return Ok(false) };
        let is_named =
            state.projected_seq.is_some() && ports.index.merges().all_current(&state.persons).contains(&person);
        Ok(is_named
            && (Table(self.0).image_row(image).await?.is_some() || self.is_profile_of(image, &state, person).await?))
    }

    /// Returns whether this is the profile picture of a user whose row names this person: the index of users may lag behind, too.
    async fn is_profile_of(&self, image: &ImageId, state: &PhotoState, person: PersonId) -> Result<bool, Failure> {
        let store = &self.0.ports.store;
        let Some(seq) = state.projected_seq else { return Ok(false) };
        let recorded = store.event(image, seq).await?;
        let Some(Event::ProfileProcessed(profile)) = recorded.map(|recorded| recorded.event) else { return Ok(false) };
        let user = store.get(&Key::user(&profile.email)).await?;
        Ok(user.is_some_and(|row| row.text("personId") == Some(&person.to_string())))
    }
}
