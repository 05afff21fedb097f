//! Which persons were merged into which.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Event, EventId, PersonId};

/// All merges in force, and all that ever were. A face keeps the person it was decided to be; `Merges` maps that person
/// to the current one. So a merge changes no photo's event or state, and undoing it is exact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merges {
    /// The merge in force by which a person was absorbed.
    into: BTreeMap<PersonId, (PersonId, EventId)>,
    /// The inverse of `into`. A person whose merges were all undone has an empty entry.
    absorbed: BTreeMap<PersonId, BTreeSet<PersonId>>,
    /// All merges, including undone ones.
    ever: BTreeMap<PersonId, BTreeSet<PersonId>>,
    undone: BTreeSet<(PersonId, PersonId)>,
}

impl Merges {
    /// Applies the next event.
    pub fn evolve(&mut self, event: &Event) {
        match event {
            Event::PersonsMerged(e) if self.current(e.into) != e.from => {
                self.into.insert(e.from, (e.into, event.id()));
                self.absorbed.entry(e.into).or_default().insert(e.from);
                self.ever.entry(e.from).or_default().insert(e.into);
            }
            Event::MergeUndone(e) => {
                if self.get(e.merge).is_some() {
                    self.into.remove(&e.from);
                    self.absorbed.entry(e.into).or_default().remove(&e.from);
                }
                self.undone.insert((e.into, e.from));
            }
            _ => {}
        }
    }

    /// Returns the person that this person is now, after all merges.
    pub fn current(&self, mut person: PersonId) -> PersonId {
        while let Some((into, _)) = self.into.get(&person) {
            person = *into;
        }
        person
    }

    /// Returns the current persons of these persons, each once, by number.
    pub fn all_current(&self, persons: &[PersonId]) -> Vec<PersonId> {
        let mut persons: Vec<_> = persons.iter().map(|person| self.current(*person)).collect();
        persons.sort_unstable();
        persons.dedup();
        persons
    }

    /// Returns the person and every person they were ever merged into: their photos may be tagged with any of them.
    pub fn aliases(&self, person: PersonId) -> BTreeSet<PersonId> {
        reachable(person, &self.ever)
    }

    /// Returns the person and all persons merged into them, by number.
    pub fn members(&self, person: PersonId) -> BTreeSet<PersonId> {
        reachable(person, &self.absorbed)
    }

    /// Returns the persons merged into another, each with the merge.
    pub fn absorbed(&self) -> impl Iterator<Item = (PersonId, &EventId)> {
        self.into.iter().map(|(from, (_, merge))| (*from, merge))
    }

    /// Returns whether the person is merged into another.
    pub fn is_absorbed(&self, person: PersonId) -> bool {
        self.into.contains_key(&person)
    }

    /// Returns whether another person was ever merged into the person: a decision for them may rest on that merge.
    pub fn has_absorbed(&self, person: PersonId) -> bool {
        self.absorbed.contains_key(&person)
    }

    /// Returns `(into, from)` of the merge, if it is in force.
    pub fn get(&self, merge: EventId) -> Option<(PersonId, PersonId)> {
        self.into.iter().find(|(_, (_, id))| *id == merge).map(|(from, (into, _))| (*into, *from))
    }

    /// Returns the pairs whose merge was undone. Only a user may merge them again.
    pub fn undone_pairs(&self) -> impl Iterator<Item = (PersonId, PersonId)> {
        self.undone.iter().map(|(into, from)| (self.current(*into), self.current(*from)))
    }
}

/// Returns all persons that can be reached from this one, themselves included.
fn reachable(person: PersonId, steps: &BTreeMap<PersonId, BTreeSet<PersonId>>) -> BTreeSet<PersonId> {
    let mut reached = BTreeSet::from([person]);
    let mut new = vec![person];
    while let Some(person) = new.pop() {
        new.extend(steps.get(&person).into_iter().flatten().filter(|next| reached.insert(**next)));
    }
    reached
}
