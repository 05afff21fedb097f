//! Adoption of persons and tags that a previous worker wrote to the table.
//!
//! Every step is a commit under the usual conditions: an identity event only after the one it was decided on, a photo only in the
//! state in which it was read. So workers may run at the same time, and an interrupted adoption is continued by repeating it: what
//! the event log already contains is skipped.

mod adoption_state;
mod duplicate_detector;
mod persons;
mod photos;
mod survey;
mod unadopted_table;

use std::{collections::BTreeSet, sync::Arc};

use sparks_domain::{AdoptionIssue, PersonId};

use self::{adoption_state::AdoptionState, duplicate_detector::DuplicateDetector};
use crate::{Failure, GalleryIndex, Maintenance, Pipeline};

pub use survey::AdoptionSurvey;
pub use unadopted_table::UnadoptedTable;

/// Adopts the persons and tags of the table that are not in the event log.
pub struct Adoption {
    /// Table, event log and signatures.
    pub store: Arc<dyn Maintenance>,
    /// Analyzes crops.
    pub pipeline: Arc<Pipeline>,
    /// The gallery of all persons in the event log.
    pub index: Arc<GalleryIndex>,
    /// The number of crops analyzed concurrently.
    pub jobs: usize,
}

/// The result of an adoption, or of a dry run.
#[derive(Debug, Default, PartialEq)]
pub struct AdoptionReport {
    /// Persons adopted.
    pub persons: u64,
    /// Persons that were in the event log before.
    pub known: u64,
    /// Photos whose tags were adopted.
    pub photos: u64,
    /// Tags adopted.
    pub taggings: u64,
    /// The highest number of a person before the adoption, if it was not in the event log.
    pub reserved: Option<u32>,
    /// Persons adopted earlier without a template, which now have one from their crop.
    pub newly_enrolled: Vec<PersonId>,
    /// Persons without a template, and why: no face can be matched with them.
    pub unrecognisable: Vec<(PersonId, String)>,
    /// Pairs of persons that may be one.
    pub duplicates: Vec<SuspectedDuplicate>,
    /// Rows that were skipped, and why, at most [`AdoptionReport::MAX_LISTED`].
    pub issues: BTreeSet<AdoptionIssue>,
}

/// Two persons whose crops are similar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuspectedDuplicate {
    /// The person with the lower number.
    pub into: PersonId,
    /// The other person.
    pub from: PersonId,
    /// The similarity of their templates, at most 1.
    pub similarity: f32,
}

/// The progress of an adoption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdoptionProgress {
    /// The number of persons processed.
    Persons(u64),
    /// The number of tags processed.
    Taggings(u64),
}

/// The state of one run.
struct AdoptionRun<'a> {
    state: AdoptionState,
    duplicates: DuplicateDetector<'a>,
    report: AdoptionReport,
}

impl AdoptionReport {
    /// The maximum number of listed rows.
    pub const MAX_LISTED: usize = 1000;

    fn add_issues(&mut self, issues: impl IntoIterator<Item = AdoptionIssue>) {
        for issue in issues {
            if self.issues.len() < Self::MAX_LISTED {
                self.issues.insert(issue);
            }
        }
    }
}

impl Adoption {
    /// Adopts what the survey has found. With `dry_run`, all crops are analyzed and nothing is written.
    pub async fn run(
        &self,
        survey: &AdoptionSurvey,
        dry_run: bool,
        progress: impl Fn(AdoptionProgress),
    ) -> Result<AdoptionReport, Failure> {
        self.index.catch_up().await?;
        let mut run = AdoptionRun {
            state: AdoptionState::read(self.store.as_ref(), dry_run).await?,
            duplicates: DuplicateDetector::new(&self.index, &self.pipeline.config.policy),
            report: AdoptionReport { issues: survey.issues.clone(), ..AdoptionReport::default() },
        };
        // Numbers first, so that no worker allocates one of them to a new person meanwhile.
        self.reserve_numbers(survey.highest_number, &mut run).await?;
        let persons: Vec<PersonId> = survey.persons.iter().copied().collect();
        let mut processed = 0;
        for chunk in persons.chunks(self.jobs.max(1) * 4) {
            self.adopt_persons(chunk, &mut run).await?;
            processed += chunk.len() as u64;
            progress(AdoptionProgress::Persons(processed));
        }
        self.adopt_photos(&mut run, &progress).await?;
        Ok(AdoptionReport { duplicates: run.duplicates.into_pairs(), ..run.report })
    }
}
