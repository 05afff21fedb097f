//! Who turned out to be whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Event, EventId, PersonId};

/// All merges that hold, and all that ever did. A face keeps the person it was decided to be; this says who that is now.
/// So nothing about a photo changes when persons are joined, and taking a join back is exact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merges {
    into: BTreeMap<PersonId, (PersonId, EventId)>,
    joined: BTreeMap<PersonId, BTreeSet<PersonId>>,
    ever: BTreeMap<PersonId, BTreeSet<PersonId>>,
    undone: BTreeSet<(PersonId, PersonId)>,
}

impl Merges {
    /// Takes in one more event.
    pub fn evolve(&mut self, event: &Event) {
        match event {
            Event::PersonsMerged(e) if self.now(e.into) != e.from => {
                self.into.insert(e.from, (e.into, event.id()));
                self.joined.entry(e.into).or_default().insert(e.from);
                self.ever.entry(e.from).or_default().insert(e.into);
            }
            Event::MergeUndone(e) => {
                if self.get(e.merge).is_some() {
                    self.into.remove(&e.from);
                    self.joined.entry(e.into).or_default().remove(&e.from);
                }
                self.undone.insert((e.into, e.from));
            }
            _ => {}
        }
    }

    /// Who this person is now.
    pub fn now(&self, mut person: PersonId) -> PersonId {
        while let Some((into, _)) = self.into.get(&person) {
            person = *into;
        }
        person
    }

    /// Who these persons are now, each once, by number.
    pub fn all_now(&self, persons: &[PersonId]) -> Vec<PersonId> {
        let mut persons: Vec<_> = persons.iter().map(|person| self.now(*person)).collect();
        persons.sort_unstable();
        persons.dedup();
        persons
    }

    /// Everybody this person is, was or has been taken for: where their photos may be tagged.
    pub fn guises(&self, person: PersonId) -> BTreeSet<PersonId> {
        reach(person, &self.ever)
    }

    /// Everybody who is now this person, themselves included, by number.
    pub fn members(&self, person: PersonId) -> BTreeSet<PersonId> {
        reach(person, &self.joined)
    }

    /// Those who are somebody else now, and the merge that says so.
    pub fn absorbed(&self) -> impl Iterator<Item = (PersonId, &EventId)> {
        self.into.iter().map(|(from, (_, merge))| (*from, merge))
    }

    /// Whether the person is somebody else now.
    pub fn is_absorbed(&self, person: PersonId) -> bool {
        self.into.contains_key(&person)
    }

    /// The merge, if it holds: into whom, and who.
    pub fn get(&self, merge: EventId) -> Option<(PersonId, PersonId)> {
        self.into.iter().find(|(_, (_, id))| *id == merge).map(|(from, (into, _))| (*into, *from))
    }

    /// Pairs of whom somebody took back that they are one. Nobody but a human may say so again.
    pub fn parted(&self) -> impl Iterator<Item = (PersonId, PersonId)> {
        self.undone.iter().map(|(into, from)| (self.now(*into), self.now(*from)))
    }
}

/// Everybody who can be reached from this person, themselves included.
fn reach(person: PersonId, steps: &BTreeMap<PersonId, BTreeSet<PersonId>>) -> BTreeSet<PersonId> {
    let mut reached = BTreeSet::from([person]);
    let mut new = vec![person];
    while let Some(person) = new.pop() {
        new.extend(steps.get(&person).into_iter().flatten().filter(|next| reached.insert(**next)));
    }
    reached
}
