//! The search for persons that are one, in steps on CPU threads.

use std::{collections::BTreeSet, mem, sync::Arc};

use sparks_domain::{Consolidation, ConsolidationSearch, PersonId};

use super::{Consolidator, MergeError};

/// The comparisons of faces per step: tens of milliseconds of CPU time.
const STEP: usize = 500_000;

/// A search for persons that are one. It can be interrupted after each step.
pub(super) struct DuplicateSearch {
    /// The persons that are compared with all others; `None` for all.
    fresh: Option<BTreeSet<PersonId>>,
    /// The persons whose co-occurrences are considered; `None` for all.
    involved: Option<BTreeSet<PersonId>>,
    phase: Phase,
}

enum Phase {
    /// The co-occurrences are to be read.
    Start,
    /// Persons are compared: one search per model, and what is found so far.
    Compare(Vec<ConsolidationSearch>, Consolidation),
    Complete(Consolidation),
}

impl DuplicateSearch {
    pub fn new(fresh: Option<BTreeSet<PersonId>>) -> Self {
        Self { involved: fresh.clone(), fresh, phase: Phase::Start }
    }

    /// Takes the result of a complete search.
    pub fn into_result(self) -> Consolidation {
        match self.phase {
            Phase::Compare(_, found) | Phase::Complete(found) => found,
            Phase::Start => Consolidation::default(),
        }
    }
}

impl Consolidator {
    /// Continues a search for one step. Returns whether it is complete.
    pub(super) async fn continue_search(&self, search: &mut DuplicateSearch) -> Result<bool, MergeError> {
        // A step that fails leaves the search at its start.
        search.phase = match mem::replace(&mut search.phase, Phase::Start) {
            Phase::Start => self.start_comparison(search).await?,
            Phase::Compare(mut searches, mut found) => {
                self.on_cpu(move || {
                    let result = searches.last_mut().map(|search| search.step(STEP));
                    if let Some(Some(result)) = result {
                        searches.pop();
                        found.merges.extend(result.merges);
                        found.suggestions.extend(result.suggestions);
                    }
                    Phase::Compare(searches, found)
                })
                .await?
            }
            Phase::Complete(found) => Phase::Complete(found),
        };
        if let Phase::Compare(searches, found) = &mut search.phase
            && searches.is_empty()
        {
            // A proposed merge brings in the co-occurrences of the other person, so the set is extended until it is stable.
            let merged = found.merges.iter().flat_map(|merge| [merge.into, merge.from]);
            let has_more = search.involved.as_mut().is_some_and(|involved| {
                let before = involved.len();
                involved.extend(merged);
                involved.len() > before
            });
            search.phase = if has_more { Phase::Start } else { Phase::Complete(mem::take(found)) };
        }
        Ok(matches!(search.phase, Phase::Complete(_)))
    }

    async fn start_comparison(&self, search: &DuplicateSearch) -> Result<Phase, MergeError> {
        self.index.catch_up().await?;
        let (gallery, people) = {
            let state = self.index.state();
            (state.gallery.clone(), Arc::clone(&state.people))
        };
        let members = search.involved.as_ref().map(|involved| {
            let merges = people.merges();
            involved.iter().flat_map(|person| merges.members(merges.current(*person))).collect()
        });
        let co_occurrences = self.store.co_occurrences(members.as_ref()).await?;
        let (fresh, scale) = (search.fresh.clone(), self.config.scale);
        self.on_cpu(move || {
            let merges = people.merges();
            let seen_together = co_occurrences.iter().map(|(a, b)| (merges.current(*a), merges.current(*b)));
            let apart: BTreeSet<_> = seen_together.chain(merges.undone_pairs()).filter(|(a, b)| a != b).collect();
            let fresh: Option<BTreeSet<PersonId>> =
                fresh.map(|fresh| fresh.iter().map(|person| merges.current(*person)).collect());
            let models = gallery.models().filter_map(|model| Some((model, scale(model)?)));
            let search = |(model, scale)| ConsolidationSearch::new(&gallery, model, scale, &apart, fresh.as_ref());
            Phase::Compare(models.map(search).collect(), Consolidation::default())
        })
        .await
    }
}
