//! What the log says was done, by whom.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{Event, ImageId, PhotoProcessed, Position, Verdict};

use crate::{Store, StoreError};

/// Everything decided so far, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Photos that somebody looked for faces in, each once.
    pub photos: u64,
    /// What each analyzer did, by its name in events.
    pub work: BTreeMap<String, Work>,
}

/// What one analyzer did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Photos it looked at: one that was decided anew counts again.
    pub decisions: u64,
    /// Faces it saw.
    pub faces: u64,
    /// Persons who exist since.
    pub founded: u64,
    /// Faces that persons are known by since.
    pub templates: u64,
}

/// Events are read this many at a time.
const BATCH: usize = 2048;

impl Tally {
    /// Counts all that the log says. `progress` hears how many events were read.
    pub async fn of(store: &dyn Store, progress: impl Fn(u64)) -> Result<Self, StoreError> {
        let (mut tally, mut seen) = (Self::default(), BTreeSet::new());
        let mut after = Position::default();
        loop {
            let events = store.read_log(&after, BATCH).await?;
            if events.is_empty() {
                tally.photos = seen.len() as u64;
                return Ok(tally);
            }
            for recorded in events {
                after.pass_event(&recorded);
                if let Event::PhotoProcessed(photo) = recorded.event {
                    tally.count(photo, &mut seen);
                }
            }
            progress(after.events());
        }
    }

    /// All that was done by anybody.
    pub fn all(&self) -> Work {
        self.work.values().fold(Work::default(), |all, work| Work {
            decisions: all.decisions + work.decisions,
            faces: all.faces + work.faces,
            founded: all.founded + work.founded,
            templates: all.templates + work.templates,
        })
    }

    fn count(&mut self, photo: PhotoProcessed, seen: &mut BTreeSet<ImageId>) {
        // Nobody looked.
        if photo.analyzer == "off" {
            return;
        }
        let work = self.work.entry(photo.analyzer).or_default();
        work.decisions += 1;
        work.faces += photo.faces.len() as u64;
        for face in &photo.faces {
            work.founded += u64::from(matches!(face.verdict, Verdict::Founded(_)));
            work.templates += u64::from(face.template);
        }
        seen.insert(photo.image_id);
    }
}
