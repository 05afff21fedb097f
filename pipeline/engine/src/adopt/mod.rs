//! Persons and tags that somebody else made before us, taken over.
//!
//! Every step is a commit under the conditions that every commit has: an identity event only after the one it was decided on,
//! a photo only as it was when it was looked at. So workers may run meanwhile, and whoever is interrupted goes on by repeating
//! it: what the log names is ours already.

mod lookalikes;
mod persons;
mod photos;
mod standing;
mod survey;
mod unadopted;

use std::{collections::BTreeSet, sync::Arc};

use sparks_domain::{PersonId, Strange};

use self::{lookalikes::Lookalikes, standing::Standing};
use crate::{Failure, GalleryIndex, Maintenance, Pipeline};

pub use survey::Found;
pub use unadopted::Unadopted;

/// Takes over what is in the table and not in the log.
pub struct Adoption {
    /// Table, log and signatures.
    pub store: Arc<dyn Maintenance>,
    /// Who looks at pictures.
    pub pipeline: Arc<Pipeline>,
    /// Everybody known before.
    pub index: Arc<GalleryIndex>,
    /// How many pictures are looked at at once.
    pub jobs: usize,
}

/// What has been taken over, or would be.
#[derive(Debug, Default, PartialEq)]
pub struct Adopted {
    /// Persons who are ours now.
    pub persons: u64,
    /// Persons who were ours before.
    pub known: u64,
    /// Photos whose tags are ours now.
    pub photos: u64,
    /// Tags that are ours now.
    pub taggings: u64,
    /// The highest number that was given out before us, where the log did not know.
    pub reserved: Option<u32>,
    /// Persons who are known by their pictures now, and were not when they were taken over.
    pub pictured: Vec<PersonId>,
    /// Persons whom nobody will recognise, and why.
    pub unrecognisable: Vec<(PersonId, String)>,
    /// Persons who may be one.
    pub alike: Vec<Alike>,
    /// Rows that were left alone, and why. At most [`Adopted::LISTED`] are kept.
    pub strange: BTreeSet<Strange>,
}

/// Two persons whose pictures are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alike {
    /// The one with the lower number.
    pub into: PersonId,
    /// The other.
    pub from: PersonId,
    /// How alike, 1 being the same.
    pub similarity: f32,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many persons have been looked at.
    Persons(u64),
    /// So many tags have been looked at.
    Taggings(u64),
}

impl Adopted {
    /// How many rows that were left alone are kept for listing.
    pub const LISTED: usize = 1000;

    fn leave(&mut self, strange: impl IntoIterator<Item = Strange>) {
        for strange in strange {
            if self.strange.len() < Self::LISTED {
                self.strange.insert(strange);
            }
        }
    }
}

impl Adoption {
    /// Takes over what was found. With `dry_run` nothing is written, though every picture is looked at.
    pub async fn run(&self, found: &Found, dry_run: bool, progress: impl Fn(Step)) -> Result<Adopted, Failure> {
        self.index.follow().await?;
        let mut adopted = Adopted { strange: found.strange.clone(), ..Adopted::default() };
        let mut standing = Standing::read(self.store.as_ref(), dry_run).await?;
        // Numbers first: whoever allocates meanwhile gets none of those that are taken.
        self.reserve(found.highest, &mut standing, &mut adopted).await?;
        let mut lookalikes = Lookalikes::new(&self.index, &self.pipeline.rules.policy);
        let persons: Vec<PersonId> = found.persons.iter().copied().collect();
        let mut seen = 0;
        for some in persons.chunks(self.jobs.max(1) * 4) {
            self.adopt_persons(some, &mut standing, &mut lookalikes, &mut adopted).await?;
            seen += some.len() as u64;
            progress(Step::Persons(seen));
        }
        adopted.alike = lookalikes.pairs();
        self.adopt_photos(&mut standing, &mut adopted, &progress).await?;
        Ok(adopted)
    }
}
