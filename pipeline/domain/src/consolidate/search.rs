//! Consolidation in steps, on a copy of the gallery: a large gallery takes minutes, and other work must not wait for it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Consolidation, MergeProposal, SUGGESTION_MARGIN,
    clustering::{ClusteredPerson, Clustering},
};
use crate::{Gallery, PersonId, Scale};

/// Finds the persons of a model that are one, in steps.
pub struct ConsolidationSearch {
    clustering: Clustering,
    positions: BTreeMap<PersonId, usize>,
    /// Whether a person is compared with all others; `None` if every person is.
    fresh: Option<Vec<bool>>,
    /// The persons who are compared with all others in the first round.
    compared: Vec<usize>,
    found: Consolidation,
    /// The number of merges before the current round.
    merges_before: usize,
    phase: Phase,
}

/// What the next step does. Persons are given by the position of the next one.
enum Phase {
    /// Compares each person with those before it. In the first round only.
    Compare(usize),
    /// Compares persons who became fresh by a merge with all others.
    Extend(usize),
    /// Looks for the best merge.
    Rank,
    /// Determines the evidence of the most promising pairs.
    Select(Selection),
    /// Determines the evidence of the remaining pairs, after this one.
    Suggest(Option<(usize, usize)>),
    Done,
}

/// The search for the merge with the best evidence.
#[derive(Default)]
struct Selection {
    /// Pairs to look at, with the most that their evidence may exceed what is required; the most promising last.
    pairs: Vec<((usize, usize), f32)>,
    best: Option<((usize, usize), MergeProposal)>,
}

impl Selection {
    /// Takes the next pair, unless its evidence cannot be better.
    fn next(&mut self) -> Option<(usize, usize)> {
        let (pair, most) = self.pairs.pop()?;
        let is_worse = self.best.is_some_and(|(_, best)| most < best.evidence.beyond);
        (!is_worse).then_some(pair)
    }

    /// Keeps the better proposal; of equals the lower number that is merged, and of those the higher that stays.
    fn keep_better(&mut self, pair: (usize, usize), new: MergeProposal) {
        let is_better = self.best.is_none_or(|(_, best)| {
            let order = new.evidence.beyond.total_cmp(&best.evidence.beyond);
            order.then(best.from.cmp(&new.from)).then(new.into.cmp(&best.into)).is_gt()
        });
        if new.evidence.beyond >= 0.0 && is_better {
            self.best = Some((pair, new));
        }
    }
}

impl ConsolidationSearch {
    /// Prepares a search. Pairs of `apart` are never merged. If `fresh` is given, only pairs with one of these persons
    /// are compared.
    pub fn new(
        gallery: &Gallery,
        model: &str,
        scale: Scale,
        apart: &BTreeSet<(PersonId, PersonId)>,
        fresh: Option<&BTreeSet<PersonId>>,
    ) -> Self {
        let slots = gallery.slots(model);
        let positions: BTreeMap<PersonId, usize> = slots.keys().copied().zip(0..).collect();
        let is_fresh = |id: &PersonId| fresh.is_none_or(|fresh| fresh.contains(id));
        let person = |(id, slots): (PersonId, Vec<usize>)| ClusteredPerson {
            id: Some(id),
            faces: slots,
            is_compared: is_fresh(&id),
            ..ClusteredPerson::default()
        };
        let mut persons: Vec<ClusteredPerson> = slots.into_iter().map(person).collect();
        for (a, b) in apart {
            if let (Some(a), Some(b)) = (positions.get(a), positions.get(b)) {
                persons[*a].apart.insert(*b);
                persons[*b].apart.insert(*a);
            }
        }
        Self {
            clustering: Clustering::new(gallery.templates(model), scale, persons),
            fresh: fresh.map(|_| positions.keys().map(is_fresh).collect()),
            compared: positions.iter().filter(|(id, _)| is_fresh(id)).map(|(_, position)| *position).collect(),
            positions,
            found: Consolidation::default(),
            merges_before: 0,
            phase: Phase::Compare(0),
        }
    }

    /// Continues the search for about this many comparisons of faces. Returns the result when it is complete.
    pub fn step(&mut self, comparisons: usize) -> Option<Consolidation> {
        let mut done = 0_usize;
        while done < comparisons {
            let (cost, next) = match std::mem::replace(&mut self.phase, Phase::Done) {
                Phase::Compare(person) => self.compare(person),
                Phase::Extend(person) => self.extend(person),
                Phase::Rank => self.rank(),
                Phase::Select(selection) => self.select(selection),
                Phase::Suggest(after) => self.suggest(after),
                Phase::Done => return Some(std::mem::take(&mut self.found)),
            };
            self.phase = next;
            done = done.saturating_add(cost.max(1));
        }
        None
    }

    fn persons(&self) -> usize {
        self.clustering.persons.len()
    }

    fn compare(&mut self, person: usize) -> (usize, Phase) {
        if person == self.persons() {
            return (0, Phase::Rank);
        }
        let mut cost = 0;
        if self.clustering.persons[person].is_compared {
            (0..person).for_each(|other| cost += self.clustering.compare(other, person));
        } else {
            let before = self.compared.partition_point(|other| *other < person);
            self.compared[..before].iter().for_each(|other| cost += self.clustering.compare(*other, person));
        }
        (cost, Phase::Compare(person + 1))
    }

    fn extend(&mut self, person: usize) -> (usize, Phase) {
        if person == self.persons() {
            return (0, Phase::Rank);
        }
        let is_fresh = self.fresh.as_ref().is_none_or(|fresh| fresh[person]);
        let mut cost = 0;
        if is_fresh && self.clustering.is_present(person) && !self.clustering.persons[person].is_compared {
            let linked: BTreeSet<usize> =
                self.clustering.persons[person].links.iter().map(|(other, _)| *other).collect();
            for other in (0..self.persons()).filter(|other| *other != person && !linked.contains(other)) {
                cost += self.clustering.compare(person.min(other), person.max(other));
            }
            self.clustering.persons[person].is_compared = true;
        }
        (cost, Phase::Extend(person + 1))
    }

    fn rank(&mut self) -> (usize, Phase) {
        self.clustering.update_strong_pairs();
        let pairs = self.clustering.promising_pairs();
        (self.clustering.strong_pairs(), Phase::Select(Selection { pairs, best: None }))
    }

    fn select(&mut self, mut selection: Selection) -> (usize, Phase) {
        if let Some((a, b)) = selection.next() {
            if let Some(proposal) = self.clustering.propose(a, b) {
                selection.keep_better((a, b), proposal);
            }
            let cost = self.clustering.neighbours(a) + self.clustering.neighbours(b);
            return (cost, Phase::Select(selection));
        }
        if let Some(((into, from), merge)) = selection.best {
            self.found.merges.push(merge);
            return (self.clustering.merge(into, from), Phase::Rank);
        }
        if self.found.merges.len() == self.merges_before {
            return (0, Phase::Suggest(None));
        }
        // A merged person may be similar to persons that none of the two was compared with.
        let Some(fresh) = &mut self.fresh else { return (0, Phase::Suggest(None)) };
        for merge in &self.found.merges[self.merges_before..] {
            fresh[self.positions[&merge.into]] = true;
        }
        self.merges_before = self.found.merges.len();
        self.clustering.clear_strong_pairs();
        (0, Phase::Extend(0))
    }

    /// Adds the merge of the next pair to the suggestions, if its evidence is nearly sufficient.
    fn suggest(&mut self, after: Option<(usize, usize)>) -> (usize, Phase) {
        let Some((a, b)) = self.clustering.strong_pair_after(after) else {
            self.found.suggestions.sort_by(|a, b| b.evidence.beyond.total_cmp(&a.evidence.beyond));
            return (0, Phase::Done);
        };
        let proposal = self.clustering.propose(a, b).filter(|found| found.evidence.beyond >= -SUGGESTION_MARGIN);
        self.found.suggestions.extend(proposal);
        (self.clustering.neighbours(a) + self.clustering.neighbours(b), Phase::Suggest(Some((a, b))))
    }
}
