//! A survey of the rows to adopt.

use std::collections::BTreeSet;

use sparks_domain::{AdoptionIssue, Item, Key, PersonId, PersonRow, Seq, tagged_person};

use super::{Adoption, AdoptionReport};
use crate::{Clock, Failure};

/// The persons and tags in the table.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AdoptionSurvey {
    /// All persons with a PERSON row.
    pub persons: BTreeSet<PersonId>,
    /// The number of tags.
    pub taggings: u64,
    /// The highest number of a person in any row.
    pub highest_number: u32,
    /// PERSON rows that cannot be adopted.
    pub issues: BTreeSet<AdoptionIssue>,
}

/// The number of rows read at a time.
pub(super) const PAGE: usize = 1000;

impl Adoption {
    /// Scans the whole table once. `progress` receives the number of rows read.
    pub async fn survey(&self, progress: impl Fn(u64)) -> Result<AdoptionSurvey, Failure> {
        let counter = self.store.identity(Seq(u64::MAX >> 1)).await?.counter;
        let mut survey = AdoptionSurvey { highest_number: counter, ..AdoptionSurvey::default() };
        let (mut after, mut rows): (Option<Key>, u64) = (None, 0);
        loop {
            let page = self.store.scan(after.as_ref(), PAGE).await?;
            let Some(last) = page.last().map(|row| row.key.clone()) else { return Ok(survey) };
            page.iter().for_each(|row| survey.add(row, self.pipeline.ports.clock.as_ref()));
            rows += page.len() as u64;
            progress(rows);
            after = Some(last);
        }
    }
}

impl AdoptionSurvey {
    fn add(&mut self, row: &Item, clock: &dyn Clock) {
        let mut add_number = |person: PersonId| self.highest_number = self.highest_number.max(person.number());
        if row.key.pk.starts_with("PERSON#") {
            match PersonRow::read(row, clock.now()) {
                Ok(found) => {
                    add_number(found.person);
                    self.persons.insert(found.person);
                }
                Err(issue) if self.issues.len() < AdoptionReport::MAX_LISTED => drop(self.issues.insert(issue)),
                Err(_) => {}
            }
        } else if row.key.sk.starts_with("PERSON#") {
            self.taggings += 1;
            if let Ok(person) = tagged_person(row) {
                add_number(person);
            }
        } else if let Some(Ok(person)) = row.text("personId").map(str::parse) {
            add_number(person);
        }
    }
}
