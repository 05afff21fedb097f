//! What must come of every photo, known because it was made so.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use sparks_domain::{Email, ImageId, Timestamp};

use super::{Damage, Plan};

/// A photo, and what must come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Its name.
    pub image: ImageId,
    /// Where its original is.
    pub key: String,
    /// What must come of it.
    pub fate: Fate,
}

/// What must come of a photo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is taken, and these identities are in it, from top to bottom.
    Taken(Vec<usize>),
    /// It is rejected, because of this.
    Rejected(Damage),
}

/// All photos of a run.
#[derive(Debug, Clone)]
pub struct Truth {
    /// Whose they are: nobody else has this address.
    pub uploader: Email,
    photos: Vec<Made>,
    numbers: HashMap<ImageId, usize>,
}

impl Truth {
    /// What must come of this plan.
    pub fn of(plan: &Plan, uploader: Email, now: Timestamp) -> Self {
        let made = |(n, damage): (usize, &Option<Damage>)| {
            let image = name(&uploader, n, now);
            let fate = damage.map_or_else(|| Fate::Taken(plan.album.identities(n)), Fate::Rejected);
            Made { key: format!("originals/{image}.jpg"), image, fate }
        };
        let photos: Vec<Made> = plan.damage.iter().enumerate().map(made).collect();
        let numbers = photos.iter().enumerate().map(|(n, made)| (made.image.clone(), n)).collect();
        Self { uploader, photos, numbers }
    }

    /// All photos, by number.
    pub fn photos(&self) -> &[Made] {
        &self.photos
    }

    /// The photo's number, if it is one of ours.
    pub fn number(&self, image: &ImageId) -> Option<usize> {
        self.numbers.get(image).copied()
    }
}

/// The platform names photos by the time and by chance.
fn name(uploader: &Email, number: usize, now: Timestamp) -> ImageId {
    let digest = Sha256::new().chain_update(uploader.as_str()).chain_update([0]).chain_update(number.to_string());
    let mut payload = [0; 16];
    payload.copy_from_slice(&digest.finalize()[..16]);
    ImageId::of_content(Some(now.unix_seconds()), payload)
}
