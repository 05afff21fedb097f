//! What there is to take over.

use std::collections::BTreeSet;

use sparks_domain::{FoundPerson, Item, Key, PersonId, Strange, person_of};

use super::{Adopted, Adoption};
use crate::{Clock, Failure};

/// What one look through the table has found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Everybody who has a row.
    pub persons: BTreeSet<PersonId>,
    /// How many tags there are.
    pub taggings: u64,
    /// The highest number that anything in the table has.
    pub highest: u32,
    /// Rows of persons that cannot be taken over.
    pub strange: BTreeSet<Strange>,
}

/// Rows are read this many at a time.
pub(super) const PAGE: usize = 1000;

impl Adoption {
    /// Looks once through the whole table.
    pub async fn survey(&self, progress: impl Fn(u64)) -> Result<Found, Failure> {
        let counter = self.store.identity(sparks_domain::Seq(u64::MAX >> 1)).await?.counter;
        let mut found = Found { highest: counter, ..Found::default() };
        let (mut after, mut rows): (Option<Key>, u64) = (None, 0);
        loop {
            let page = self.store.scan(after.as_ref(), PAGE).await?;
            let Some(last) = page.last().map(|row| row.key.clone()) else { return Ok(found) };
            page.iter().for_each(|row| found.take(row, self.pipeline.ports.clock.as_ref()));
            rows += page.len() as u64;
            progress(rows);
            after = Some(last);
        }
    }
}

impl Found {
    fn take(&mut self, row: &Item, clock: &dyn Clock) {
        let mut seen = |person: PersonId| self.highest = self.highest.max(person.number());
        if row.key.pk.starts_with("PERSON#") {
            match FoundPerson::read(row, clock.now()) {
                Ok(found) => {
                    seen(found.person);
                    self.persons.insert(found.person);
                }
                Err(strange) if self.strange.len() < Adopted::LISTED => drop(self.strange.insert(strange)),
                Err(_) => {}
            }
        } else if row.key.sk.starts_with("PERSON#") {
            self.taggings += 1;
            if let Ok(person) = person_of(row) {
                seen(person);
            }
        } else if let Some(Ok(person)) = row.text("personId").map(str::parse) {
            seen(person);
        }
    }
}
