//! The expected result of every photo.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use sparks_domain::{Email, ImageId, Timestamp, object_keys};

use super::{Damage, Plan};

/// A photo of the run and its expected result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedPhoto {
    /// The image ID.
    pub image: ImageId,
    /// The object key of the original.
    pub key: String,
    /// The expected result.
    pub result: ExpectedResult,
}

/// The expected result of a photo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedResult {
    /// The photo is processed and shows these identities, from top to bottom.
    Processed(Vec<usize>),
    /// The photo is rejected because of this damage.
    Rejected(Damage),
}

/// All photos of a run with their expected results.
#[derive(Debug, Clone)]
pub struct GroundTruth {
    /// The uploader of all photos; the address is unique to the run.
    pub uploader: Email,
    photos: Vec<ExpectedPhoto>,
    numbers: HashMap<ImageId, usize>,
}

impl GroundTruth {
    /// Derives the expected results of the plan.
    pub fn of(plan: &Plan, uploader: Email, now: Timestamp) -> Self {
        let expected = |(n, damage): (usize, &Option<Damage>)| {
            let image = image_id(&uploader, n, now);
            let result =
                damage.map_or_else(|| ExpectedResult::Processed(plan.album.identities(n)), ExpectedResult::Rejected);
            ExpectedPhoto { key: object_keys::original(&image, "jpg"), image, result }
        };
        let photos: Vec<ExpectedPhoto> = plan.damage.iter().enumerate().map(expected).collect();
        let numbers = photos.iter().enumerate().map(|(n, photo)| (photo.image.clone(), n)).collect();
        Self { uploader, photos, numbers }
    }

    /// Returns all photos, by number.
    pub fn photos(&self) -> &[ExpectedPhoto] {
        &self.photos
    }

    /// Returns the photo's number if it belongs to this run.
    pub fn number(&self, image: &ImageId) -> Option<usize> {
        self.numbers.get(image).copied()
    }
}

/// Returns an ID of the platform's form, a timestamp and a random-looking payload, that is unique to the run.
fn image_id(uploader: &Email, number: usize, now: Timestamp) -> ImageId {
    let digest = Sha256::new().chain_update(uploader.as_str()).chain_update([0]).chain_update(number.to_string());
    let mut payload = [0; 16];
    payload.copy_from_slice(&digest.finalize()[..16]);
    ImageId::of_content(Some(now.unix_seconds()), payload)
}
