//! Merge proposals from the templates of the gallery, and merging by strong evidence.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use sparks_domain::{Consolidation, Event, MergeProposal, MergeReason, PersonId, Position};
use tokio::time::Instant;

use super::{
    Consolidator, MergeError, MergeSummary, PAGE,
    duplicate_search::DuplicateSearch,
    postponed_merges::{PersonPair, PostponedMerges},
};
use crate::{Checkpoint, Filter, Query};

/// The number of events read at a time.
const BATCH: usize = 2048;

/// The time after which a run is interrupted, to be continued by the next: so that other work of the worker does not wait.
const TIME_SLICE: Duration = Duration::from_secs(1);

/// The state of merging duplicates between two runs.
#[derive(Default)]
pub(super) struct MergeProgress {
    current: Option<CurrentRun>,
    postponed: PostponedMerges,
    /// The position up to which this process has considered faces while merges are postponed. The stored checkpoint stays behind
    /// then: another process considers the postponed merges, too.
    considered: Position,
}

/// A run that was started and not completed.
struct CurrentRun {
    search: Option<DuplicateSearch>,
    /// The proposals of the search that are left.
    proposals: VecDeque<MergeProposal>,
    /// The position up to which the faces of events are considered.
    read: Position,
    /// Postponed merges that were not proposed again so far.
    due: BTreeSet<PersonPair>,
}

/// The result of merging duplicates for a while.
#[derive(Debug, Default)]
pub(super) struct MergeReport {
    pub merged: Vec<MergeSummary>,
    /// Whether the run was interrupted.
    pub is_interrupted: bool,
    /// Whether merges are postponed.
    pub has_postponed: bool,
}

impl Consolidator {
    /// Returns merge proposals. With `fresh`, only those that concern one of these persons.
    pub async fn propose(&self, fresh: Option<&BTreeSet<PersonId>>) -> Result<Consolidation, MergeError> {
        let mut search = DuplicateSearch::new(fresh.cloned());
        while !self.continue_search(&mut search).await? {}
        Ok(search.into_result())
    }

    /// Merges persons that are one by strong evidence, among the persons that got templates since the last call.
    pub async fn merge_duplicates(&self) -> Result<Vec<MergeSummary>, MergeError> {
        let mut merged = Vec::new();
        loop {
            let report = self.merge_for_a_while().await?;
            merged.extend(report.merged);
            if !report.is_interrupted {
                return Ok(merged);
            }
        }
    }

    /// Like [`Consolidator::merge_duplicates`], for a limited time. The next call continues.
    pub(super) async fn merge_for_a_while(&self) -> Result<MergeReport, MergeError> {
        let mut progress = self.merge_progress.lock().await;
        let MergeProgress { current, postponed, considered } = &mut *progress;
        let (started, mut report) = (Instant::now(), MergeReport::default());
        let run = match current {
            Some(run) => run,
            None => current.insert(self.start_run(postponed, considered).await?),
        };
        while let Some(search) = &mut run.search {
            if self.continue_search(search).await? {
                let found = run.search.take().map(DuplicateSearch::into_result).unwrap_or_default();
                run.proposals = found.merges.into();
            } else if started.elapsed() >= TIME_SLICE {
                return Ok(MergeReport { is_interrupted: true, ..report });
            }
        }
        while let Some(proposal) = run.proposals.front() {
            if started.elapsed() >= TIME_SLICE {
                return Ok(MergeReport { is_interrupted: true, ..report });
            }
            report.merged.extend(self.merge_or_postpone(proposal, postponed).await?);
            run.due.remove(&(proposal.into, proposal.from));
            run.proposals.pop_front();
        }
        run.due.iter().for_each(|pair| postponed.remove(*pair));
        if postponed.is_empty() {
            self.store.set_checkpoint(Checkpoint::Considered, &run.read).await?;
        }
        considered.clone_from(&run.read);
        *current = None;
        report.has_postponed = !postponed.is_empty();
        Ok(report)
    }

    /// Returns a run over the persons of new photos and of the merges that are to be tried again.
    async fn start_run(&self, postponed: &PostponedMerges, considered: &Position) -> Result<CurrentRun, MergeError> {
        let after = match postponed.is_empty() {
            true => self.store.checkpoint(Checkpoint::Considered).await?,
            false => considered.clone(),
        };
        let (mut fresh, read) = self.persons_since(after).await?;
        let due: BTreeSet<PersonPair> = postponed.due(self.clock.now()).into_iter().collect();
        fresh.extend(due.iter().flat_map(|(into, from)| [*into, *from]));
        let search = (!fresh.is_empty()).then(|| DuplicateSearch::new(Some(fresh)));
        Ok(CurrentRun { search, proposals: VecDeque::new(), read, due })
    }

    /// Merges two persons as proposed. A failure that concerns these two alone postpones the merge, so that all others are made.
    async fn merge_or_postpone(
        &self,
        proposal: &MergeProposal,
        postponed: &mut PostponedMerges,
    ) -> Result<Option<MergeSummary>, MergeError> {
        let (pair @ (into, from), now) = ((proposal.into, proposal.from), self.clock.now());
        if !postponed.is_due(pair, now) {
            return Ok(None);
        }
        match self.merge_as_proposed(proposal).await {
            Err(error) if error.concerns_these_persons() => {
                tracing::warn!(%into, %from, %error, "failed to merge two persons; will retry later");
                postponed.postpone(pair, now);
                Ok(None)
            }
            done => {
                let merged = done?;
                postponed.remove(pair);
                Ok(merged)
            }
        }
    }

    async fn merge_as_proposed(&self, proposal: &MergeProposal) -> Result<Option<MergeSummary>, MergeError> {
        let MergeProposal { into, from, evidence } = *proposal;
        if self.are_tagged_together(into, from).await? {
            return Ok(None);
        }
        match self.commit_merge(into, from, MergeReason::SimilarFaces(evidence)).await {
            Ok(summary) => Ok(Some(summary)),
            // Merged by another process meanwhile.
            Err(MergeError::AlreadyMerged(..)) => Ok(None),
            Err(error) => Err(error),
        }
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

    /// Returns the persons that got templates after this position, and the end of the log.
    async fn persons_since(&self, mut after: Position) -> Result<(BTreeSet<PersonId>, Position), MergeError> {
        let mut persons = BTreeSet::new();
        loop {
            let events = self.store.read_log(&after, BATCH).await?;
            if events.is_empty() {
                return Ok((persons, after));
            }
            for recorded in events {
                after.advance_past(&recorded);
                match recorded.event {
                    Event::PhotoProcessed(photo) => persons.extend(photo.persons()),
                    Event::ProfileProcessed(profile) => persons.extend(profile.person()),
                    // Another template may have been chosen for them.
                    Event::PersonPictured(event) => drop(persons.insert(event.person)),
                    Event::PersonReinstated(event) => drop(persons.insert(event.person)),
                    _ => {}
                }
            }
        }
    }
}
