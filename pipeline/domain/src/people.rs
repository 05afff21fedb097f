//! Everybody the log knows.

use std::collections::BTreeMap;

use crate::{Event, PersonId, Timestamp};

/// What the log knows of one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name shown.
    pub display_name: String,
    /// Since when they are known.
    pub created: Timestamp,
}

/// All persons, folded from the identity events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct People {
    persons: BTreeMap<PersonId, Person>,
}

impl People {
    /// Takes in one more event.
    pub fn evolve(&mut self, event: &Event, when: Timestamp) {
        match event {
            Event::PersonsAllocated(e) => self.persons.extend(e.persons.iter().map(|allocation| {
                let person = allocation.person;
                (person, Person { display_name: person.to_string(), created: when })
            })),
            Event::PersonRenamed(e) => {
                if let Some(person) = self.persons.get_mut(&e.person) {
                    person.display_name.clone_from(&e.to);
                }
            }
            Event::PhotoProcessed(_) | Event::PhotoRejected(_) => {}
        }
    }

    /// What is known of this one.
    pub fn get(&self, person: PersonId) -> Option<&Person> {
        self.persons.get(&person)
    }

    /// Everybody, by number.
    pub fn iter(&self) -> impl Iterator<Item = (PersonId, &Person)> {
        self.persons.iter().map(|(id, person)| (*id, person))
    }

    /// The highest number ever given out.
    pub fn highest(&self) -> u32 {
        self.persons.last_key_value().map_or(0, |(person, _)| person.number())
    }
}
