//! What the faces known so far say about who is who.

use std::collections::BTreeSet;

use sparks_domain::{Consolidation, Event, Grounds, Join, PersonId, Position, consolidate};

use super::{Merged, PAGE, Register, RegisterError};
use crate::{Filter, Mark, Query};

/// Events are read this many at a time.
const BATCH: usize = 2048;

impl Register {
    /// What the faces known so far say about who is who. With `fresh`, only about these persons.
    pub async fn consider(&self, fresh: Option<&BTreeSet<PersonId>>) -> Result<Consolidation, RegisterError> {
        self.index.follow().await?;
        // Whoever is joined with somebody fresh is looked at again, and then it counts whom they were seen with.
        let mut asked = fresh.cloned();
        loop {
            let of = asked.as_ref().map(|asked| self.guises(asked));
            let company = self.store.company(of.as_ref()).await?;
            let found = self.weigh(&company, fresh);
            let Some(asked) = &mut asked else { return Ok(found) };
            let before = asked.len();
            asked.extend(found.joins.iter().flat_map(|join| [join.into, join.from]));
            if asked.len() == before {
                return Ok(found);
            }
        }
    }

    /// Everybody who is one of these by now.
    fn guises(&self, persons: &BTreeSet<PersonId>) -> BTreeSet<PersonId> {
        let known = self.index.known();
        let merges = known.people.merges();
        persons.iter().flat_map(|person| merges.members(merges.now(*person))).collect()
    }

    fn weigh(&self, company: &BTreeSet<(PersonId, PersonId)>, fresh: Option<&BTreeSet<PersonId>>) -> Consolidation {
        let known = self.index.known();
        let merges = known.people.merges();
        let apart = company.iter().map(|(a, b)| (merges.now(*a), merges.now(*b))).chain(merges.parted());
        let apart: BTreeSet<_> = apart.filter(|(a, b)| a != b).collect();
        let fresh = fresh.map(|fresh| fresh.iter().map(|person| merges.now(*person)).collect());
        let mut all = Consolidation::default();
        for model in known.gallery.models() {
            if let Some(scale) = (self.rules.scale)(model) {
                let found = consolidate(&known.gallery, model, scale, &apart, fresh.as_ref());
                all.joins.extend(found.joins);
                all.suggestions.extend(found.suggestions);
            }
        }
        all
    }

    /// Joins whoever is one by strong evidence, as far as that has changed since the last time.
    pub async fn consolidate(&self) -> Result<Vec<Merged>, RegisterError> {
        let (fresh, read) = self.seen_since(self.store.mark(Mark::Considered).await?).await?;
        let mut merged = Vec::new();
        if fresh.is_empty() {
            self.store.set_mark(Mark::Considered, &read).await?;
            return Ok(merged);
        }
        for Join { into, from, evidence } in self.consider(Some(&fresh)).await?.joins {
            if self.are_tagged_together(into, from).await? {
                continue;
            }
            match self.merge(into, from, Grounds::Alike(evidence)).await {
                Ok(join) => merged.push(join),
                // Somebody else said something about them meanwhile.
                Err(RegisterError::Already(..)) => {}
                Err(error) => return Err(error),
            }
        }
        self.store.set_mark(Mark::Considered, &read).await?;
        Ok(merged)
    }

    /// Whether a photo is tagged with both. Of tags that were given before us no face is kept that would tell.
    async fn are_tagged_together(&self, a: PersonId, b: PersonId) -> Result<bool, RegisterError> {
        let of = async |person: PersonId| {
            let filter = Filter::EntityType(format!("TAGGING#{person}"));
            let mut query = Query { filter, after: None, limit: PAGE, backwards: false };
            let mut photos = BTreeSet::new();
            loop {
                let page = self.store.query(&query).await?;
                photos.extend(page.items.into_iter().map(|item| item.key.pk));
                match page.last {
                    Some(last) => query.after = Some(last),
                    None => return Ok::<_, RegisterError>(photos),
                }
            }
        };
        let is_adopted = {
            let people = &self.index.known().people;
            let members = [a, b].into_iter().flat_map(|person| people.merges().members(person));
            members.into_iter().any(|member| people.is_adopted(member))
        };
        Ok(is_adopted && !of(a).await?.is_disjoint(&of(b).await?))
    }

    /// Everybody in photos decided after `after`, and how far the log goes.
    async fn seen_since(&self, mut after: Position) -> Result<(BTreeSet<PersonId>, Position), RegisterError> {
        let mut seen = BTreeSet::new();
        loop {
            let events = self.store.read_log(&after, BATCH).await?;
            if events.is_empty() {
                return Ok((seen, after));
            }
            for recorded in events {
                after.pass_event(&recorded);
                if let Event::PhotoProcessed(photo) = recorded.event {
                    seen.extend(photo.persons());
                }
            }
        }
    }
}
