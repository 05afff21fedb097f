//! Everybody the log knows.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Event, FaceId, Merges, PersonId, Timestamp};

/// What the log knows of one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name shown.
    pub display_name: String,
    /// Since when they are known.
    pub created: Timestamp,
    /// The face they are shown by.
    pub face: FaceId,
}

/// All persons, folded from the identity events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct People {
    persons: BTreeMap<PersonId, Person>,
    forgotten: BTreeSet<PersonId>,
    merges: Merges,
    reserved: u32,
    adopted: BTreeSet<PersonId>,
}

impl People {
    /// Takes in one more event.
    pub fn evolve(&mut self, event: &Event, when: Timestamp) {
        self.merges.evolve(event);
        match event {
            Event::PersonsAllocated(e) => self.persons.extend(e.persons.iter().map(|allocation| {
                let person = allocation.person;
                (person, Person { display_name: person.to_string(), created: when, face: allocation.face.clone() })
            })),
            Event::PersonAdopted(e) => {
                let (display_name, face) = (e.display_name.clone(), e.face.clone());
                self.persons.insert(e.person, Person { display_name, created: e.created_at, face });
                self.adopted.insert(e.person);
            }
            Event::NumbersReserved(e) => self.reserved = self.reserved.max(e.up_to),
            Event::PersonRenamed(e) => {
                if let Some(person) = self.persons.get_mut(&e.person) {
                    person.display_name.clone_from(&e.to);
                }
            }
            Event::PersonsForgotten(e) => self.forgotten.extend(&e.persons),
            Event::PersonReinstated(e) => {
                // With everybody who had been joined into them: parted again, they are somebody, too.
                for member in self.merges.members(e.person) {
                    self.forgotten.remove(&member);
                }
                self.picture(e.person, &e.face);
            }
            Event::PersonPictured(e) => self.picture(e.person, &e.face),
            _ => {}
        }
    }

    /// What is known of this one. Whoever has no name of their own has that of the first who was joined into them.
    pub fn get(&self, person: PersonId) -> Option<Person> {
        self.described(person).filter(|_| !self.is_forgotten(person))
    }

    /// What was known of somebody who is not known any more, their name as it was shown.
    pub fn remembered(&self, person: PersonId) -> Option<Person> {
        self.described(person).filter(|_| self.is_forgotten(person))
    }

    fn described(&self, person: PersonId) -> Option<Person> {
        let own = self.persons.get(&person)?;
        let named = |id: &PersonId| self.persons.get(id).filter(|known| known.display_name != id.to_string());
        let named = self.merges.members(person).iter().find_map(named);
        let name = if own.display_name == person.to_string() { named.unwrap_or(own) } else { own };
        Some(Person { display_name: name.display_name.clone(), ..own.clone() })
    }

    /// Whether the log has ever named them.
    pub fn has_met(&self, person: PersonId) -> bool {
        self.persons.contains_key(&person)
    }

    /// Whether somebody else founded them, before us.
    pub fn is_adopted(&self, person: PersonId) -> bool {
        self.adopted.contains(&person)
    }

    /// Whether the person was known, and is not any more.
    pub fn is_forgotten(&self, person: PersonId) -> bool {
        self.forgotten.contains(&person)
    }

    /// Those who were known and are not any more, by number.
    pub fn forgotten(&self) -> impl Iterator<Item = PersonId> {
        self.forgotten.iter().copied()
    }

    /// Everybody who is nobody else, by number.
    pub fn iter(&self) -> impl Iterator<Item = (PersonId, Person)> {
        let present = self.persons.keys().filter(|id| !self.merges.is_absorbed(**id));
        present.filter_map(|id| Some((*id, self.get(*id)?)))
    }

    /// How many there are who are nobody else.
    pub fn len(&self) -> usize {
        let gone = self.merges.absorbed().filter(|(id, _)| !self.is_forgotten(*id)).count();
        self.persons.len() - gone - self.forgotten.len()
    }

    /// Whether nobody is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Who turned out to be whom.
    pub fn merges(&self) -> &Merges {
        &self.merges
    }

    /// The highest number ever given out.
    pub fn highest(&self) -> u32 {
        self.persons.last_key_value().map_or(0, |(person, _)| person.number()).max(self.reserved)
    }

    fn picture(&mut self, person: PersonId, face: &FaceId) {
        if let Some(person) = self.persons.get_mut(&person) {
            person.face.clone_from(face);
        }
    }
}
