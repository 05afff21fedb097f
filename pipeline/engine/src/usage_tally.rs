//! Usage of face analyzers, counted from the event log.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{Event, ImageId, PhotoProcessed, Position, Verdict};

use crate::{Store, StoreError};

/// The usage of all analyzers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageTally {
    /// Distinct photos that were analyzed.
    pub photos: u64,
    /// The usage per analyzer, by its name in events.
    pub analyzers: BTreeMap<String, AnalyzerUsage>,
}

/// The usage of one analyzer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnalyzerUsage {
    /// Analyzed photos; a photo that was decided again counts again.
    pub decisions: u64,
    /// Detected faces.
    pub faces: u64,
    /// New persons.
    pub new_persons: u64,
    /// Enrolled templates.
    pub templates: u64,
}

/// The number of events read at a time.
const BATCH: usize = 2048;

impl UsageTally {
    /// Counts the whole event log. `progress` receives the number of events read.
    pub async fn of(store: &dyn Store, progress: impl Fn(u64)) -> Result<Self, StoreError> {
        let (mut tally, mut images) = (Self::default(), BTreeSet::new());
        let mut after = Position::default();
        loop {
            let events = store.read_log(&after, BATCH).await?;
            if events.is_empty() {
                tally.photos = images.len() as u64;
                return Ok(tally);
            }
            for recorded in events {
                after.advance_past(&recorded);
                if let Event::PhotoProcessed(photo) = recorded.event {
                    tally.count(photo, &mut images);
                }
            }
            progress(after.events());
        }
    }

    /// Returns the sum over all analyzers.
    pub fn total(&self) -> AnalyzerUsage {
        self.analyzers.values().fold(AnalyzerUsage::default(), |total, usage| AnalyzerUsage {
            decisions: total.decisions + usage.decisions,
            faces: total.faces + usage.faces,
            new_persons: total.new_persons + usage.new_persons,
            templates: total.templates + usage.templates,
        })
    }

    fn count(&mut self, photo: PhotoProcessed, images: &mut BTreeSet<ImageId>) {
        // Face analysis was disabled.
        if photo.analyzer == "off" {
            return;
        }
        let usage = self.analyzers.entry(photo.analyzer).or_default();
        usage.decisions += 1;
        usage.faces += photo.faces.len() as u64;
        for face in &photo.faces {
            usage.new_persons += u64::from(matches!(face.verdict, Verdict::NewPerson(_)));
            usage.templates += u64::from(face.template);
        }
        images.insert(photo.image_id);
    }
}
