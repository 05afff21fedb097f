//! Thousands of persons in a store, without photos to analyze.

use serde_json::json;
use sparks_domain::{Key, PersonId, Presence, Signature};
use sparks_engine::{Commit, PhotoGuard, Store, StoredFace};

use crate::samples::{allocated, empty_commit, face, image, person, processed, set};

/// Random directions of this many dimensions have the similarities that the scale of the model states.
const DIMENSIONS: usize = 144;
const PERSONS_PER_PHOTO: u32 = 10;
/// One in so many persons has the same identity as the person before, in another photo.
pub const DUPLICATES: u32 = 100;

/// A generator of faces.
struct FaceGenerator {
    random: fastrand::Rng,
    identity: Vec<f32>,
}

impl FaceGenerator {
    fn direction(&mut self) -> Vec<f32> {
        // Sums of uniform values are nearly normally distributed.
        (0..DIMENSIONS).map(|_| (0..6).map(|_| self.random.f32() - 0.5).sum()).collect()
    }

    fn face(&mut self, number: u32) -> Signature {
        if number == 1 || number % DUPLICATES != 1 {
            self.identity = self.direction();
        }
        let noise = self.direction();
        let vector: Vec<f32> = self.identity.iter().zip(noise).map(|(own, noise)| own + 0.5 * noise).collect();
        Signature::quantise(&vector).expect("a vector with a direction")
    }
}

/// Commits photos of this number of new persons.
pub async fn commit_new_persons(store: &dyn Store, persons: u32) {
    let mut generator = FaceGenerator { random: fastrand::Rng::with_seed(1), identity: Vec::new() };
    for first in (1..=persons).step_by(PERSONS_PER_PHOTO as usize) {
        let (image, numbers): (_, Vec<u32>) = (image(first.into()), (first..first + PERSONS_PER_PHOTO).collect());
        let template = |(n, number): (u16, &u32)| StoredFace {
            face: face(&image, n),
            model: sparks_faces::SYNTHETIC_MODEL.into(),
            signature: generator.face(*number),
            person: Some(person(*number)),
            template: true,
        };
        let signatures = (0..).zip(&numbers).map(template).collect();
        let row = |number: &u32| {
            let id: PersonId = person(*number);
            set(&Key::person(id), Presence::Absent, json!({ "entityType": "PERSON", "displayName": id }))
        };
        let commit = Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: None }),
            events: vec![allocated(&image, first - 1, &numbers), processed(&image, "v1", &numbers)],
            mutations: numbers.iter().map(row).collect(),
            signatures,
            ..empty_commit()
        };
        store.commit(&commit).await.expect("a commit of new persons");
    }
}
