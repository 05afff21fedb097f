//! Many workers that all meet new faces: the worst case for the allocation of persons.

use std::time::Duration;

use crate::{
    features::Features,
    photo_content::Look,
    plan::{Notice, Plan, Step},
};

/// Who is in the photos of a crowd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crowd {
    /// Every photo shows a person that no other photo shows.
    Strangers,
    /// Every photo shows three persons that no other photo shows.
    Groups,
    /// All photos show the same new person.
    OnePerson,
}

/// The photos of each worker.
const PHOTOS_PER_WORKER: usize = 4;

impl Crowd {
    /// All crowds.
    pub const ALL: [Self; 3] = [Self::Strangers, Self::Groups, Self::OnePerson];

    fn faces(self, photo: u32) -> Vec<Look> {
        let identities = match self {
            Self::Strangers => photo..photo + 1,
            Self::Groups => photo * 3..photo * 3 + 3,
            Self::OnePerson => 0..1,
        };
        identities.map(|identity| Look { identity, look: 0 }).collect()
    }
}

impl Plan {
    /// Returns the plan of a crowd: all photos are uploaded at once, on a store with the conditions of DynamoDB and without faults.
    pub fn crowd(seed: u64, workers: usize, crowd: Crowd) -> Self {
        let notice = Notice { is_complete: true, delay: Duration::ZERO, row_delay: Duration::ZERO };
        let upload =
            |photo: u32| Step::Upload { photo: u64::from(photo), faces: crowd.faces(photo), is_damaged: false, notice };
        let photos = u32::try_from(Self::crowd_photos(workers)).unwrap_or(u32::MAX);
        Self {
            seed,
            workers,
            old_workers: 0,
            slots: 1,
            lanes: 3,
            index_lag: Duration::from_millis(500),
            half_visible: Duration::ZERO,
            duplicates: 0.0,
            features: Features::default(),
            // Workers have started before.
            steps: (0..photos).map(|photo| (Duration::from_secs(5), upload(photo))).collect(),
        }
    }

    /// Returns the number of photos of a crowd.
    pub fn crowd_photos(workers: usize) -> usize {
        workers * PHOTOS_PER_WORKER
    }
}
