//! Merge proposals from the templates of the gallery, and merging by strong evidence.

use std::collections::BTreeSet;

use sparks_domain::{Consolidation, Event, MergeProposal, MergeReason, PersonId, Position, consolidate};

use super::{Consolidator, MergeError, MergeSummary, PAGE};
use crate::{Checkpoint, Filter, Query};

/// The number of events read at a time.
const BATCH: usize = 2048;

impl Consolidator {
    /// Returns merge proposals. With `fresh`, only those that concern one of these persons.
    pub async fn propose(&self, fresh: Option<&BTreeSet<PersonId>>) -> Result<Consolidation, MergeError> {
        self.index.catch_up().await?;
        // A proposed merge brings in the co-occurrences of the other person, so the set is extended until it is stable.
        let mut involved = fresh.cloned();
        loop {
            let members = involved.as_ref().map(|involved| self.members(involved));
            let co_occurrences = self.store.co_occurrences(members.as_ref()).await?;
            let found = self.compare_persons(&co_occurrences, fresh);
            let Some(involved) = &mut involved else { return Ok(found) };
            let before = involved.len();
            involved.extend(found.merges.iter().flat_map(|merge| [merge.into, merge.from]));
            if involved.len() == before {
                return Ok(found);
            }
        }
    }

    /// Returns all persons that are merged with one of these, and these themselves.
    fn members(&self, persons: &BTreeSet<PersonId>) -> BTreeSet<PersonId> {
        let state = self.index.state();
        let merges = state.people.merges();
        persons.iter().flat_map(|person| merges.members(merges.current(*person))).collect()
    }

    fn compare_persons(
        &self,
        co_occurrences: &BTreeSet<(PersonId, PersonId)>,
        fresh: Option<&BTreeSet<PersonId>>,
    ) -> Consolidation {
        let state = self.index.state();
        let merges = state.people.merges();
        let seen_together = co_occurrences.iter().map(|(a, b)| (merges.current(*a), merges.current(*b)));
        let apart: BTreeSet<_> = seen_together.chain(merges.undone_pairs()).filter(|(a, b)| a != b).collect();
        let fresh = fresh.map(|fresh| fresh.iter().map(|person| merges.current(*person)).collect());
        let mut all = Consolidation::default();
        for model in state.gallery.models() {
            if let Some(scale) = (self.config.scale)(model) {
                let found = consolidate(&state.gallery, model, scale, &apart, fresh.as_ref());
                all.merges.extend(found.merges);
                all.suggestions.extend(found.suggestions);
            }
        }
        all
    }

    /// Merges persons that are one by strong evidence, among the persons of photos committed since the last call.
    pub async fn merge_duplicates(&self) -> Result<Vec<MergeSummary>, MergeError> {
        let (fresh, read) = self.persons_since(self.store.checkpoint(Checkpoint::Considered).await?).await?;
        let mut merged = Vec::new();
        if fresh.is_empty() {
            self.store.set_checkpoint(Checkpoint::Considered, &read).await?;
            return Ok(merged);
        }
        for MergeProposal { into, from, evidence } in self.propose(Some(&fresh)).await?.merges {
            if self.are_tagged_together(into, from).await? {
                continue;
            }
            match self.commit_merge(into, from, MergeReason::SimilarFaces(evidence)).await {
                Ok(summary) => merged.push(summary),
                // Merged by another process meanwhile.
                Err(MergeError::AlreadyMerged(..)) => {}
                Err(error) => return Err(error),
            }
        }
        self.store.set_checkpoint(Checkpoint::Considered, &read).await?;
        Ok(merged)
    }

    /// Whether one of two persons is adopted and a photo is tagged with both. Adopted tags have no stored faces, so these persons
    /// are missing from the co-occurrences.
    async fn are_tagged_together(&self, a: PersonId, b: PersonId) -> Result<bool, MergeError> {
        let photos_of = async |person: PersonId| {
            let filter = Filter::EntityType(format!("TAGGING#{person}"));
            let mut query = Query { filter, after: None, limit: PAGE, backwards: false };
            let mut photos = BTreeSet::new();
            loop {
                let page = self.store.query(&query).await?;
                photos.extend(page.items.into_iter().map(|item| item.key.pk));
                match page.last {
                    Some(last) => query.after = Some(last),
                    None => return Ok::<_, MergeError>(photos),
                }
            }
        };
        let is_adopted = {
            let people = &self.index.state().people;
            let members = [a, b].into_iter().flat_map(|person| people.merges().members(person));
            members.into_iter().any(|member| people.is_adopted(member))
        };
        Ok(is_adopted && !photos_of(a).await?.is_disjoint(&photos_of(b).await?))
    }

    /// Returns the persons in photos committed after this position, and the end of the log.
    async fn persons_since(&self, mut after: Position) -> Result<(BTreeSet<PersonId>, Position), MergeError> {
        let mut persons = BTreeSet::new();
        loop {
            let events = self.store.read_log(&after, BATCH).await?;
            if events.is_empty() {
                return Ok((persons, after));
            }
            for recorded in events {
                after.advance_past(&recorded);
                if let Event::PhotoProcessed(photo) = recorded.event {
                    persons.extend(photo.persons());
                }
            }
        }
    }
}
