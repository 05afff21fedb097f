//! The persons that the log records.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Event, FaceId, Merges, PersonAdopted, PersonId, Timestamp};

/// All persons, folded from the events of the identity lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonRegistry {
    persons: BTreeMap<PersonId, Person>,
    forgotten: BTreeSet<PersonId>,
    merges: Merges,
    reserved: u32,
    adopted: BTreeSet<PersonId>,
}

/// What the log records of one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The display name.
    pub display_name: String,
    /// When the person was created.
    pub created: Timestamp,
    /// The face that their crop shows.
    pub face: FaceId,
}

impl Person {
    /// Returns a new person, whose display name is their ID.
    pub(crate) fn unnamed(id: PersonId, created: Timestamp, face: FaceId) -> Self {
        Self { display_name: id.to_string(), created, face }
    }
}

impl From<&PersonAdopted> for Person {
    fn from(event: &PersonAdopted) -> Self {
        Self { display_name: event.display_name.clone(), created: event.created_at, face: event.face.clone() }
    }
}

impl PersonRegistry {
    /// Applies the next event.
    pub fn evolve(&mut self, event: &Event, when: Timestamp) {
        self.merges.evolve(event);
        match event {
            Event::PersonsAllocated(e) => self.persons.extend(e.persons.iter().map(|allocation| {
                (allocation.person, Person::unnamed(allocation.person, when, allocation.face.clone()))
            })),
            Event::PersonAdopted(e) => {
                self.persons.insert(e.person, e.into());
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
                // Merged members are reinstated too: an unmerge makes them persons of their own again.
                for member in self.merges.members(e.person) {
                    self.forgotten.remove(&member);
                }
                self.set_face(e.person, &e.face);
            }
            Event::PersonPictured(e) => self.set_face(e.person, &e.face),
            // Merges are applied above; the level and events of the photo lane change no person.
            Event::PersonsMerged(_)
            | Event::MergeUndone(_)
            | Event::LevelRaised(_)
            | Event::PhotoProcessed(_)
            | Event::PhotoRejected(_)
            | Event::FacesReviewed(_)
            | Event::PhotoDeleted(_)
            | Event::ProfileProcessed(_)
            | Event::PhotoAdopted(_) => {}
        }
    }

    /// Returns the person, unless forgotten. A person without a name of their own has that of the first member with
    /// one.
    pub fn get(&self, person: PersonId) -> Option<Person> {
        self.with_shown_name(person).filter(|_| !self.is_forgotten(person))
    }

    /// Returns what was recorded of a person who is forgotten now, with the name that was shown.
    pub fn get_forgotten(&self, person: PersonId) -> Option<Person> {
        self.with_shown_name(person).filter(|_| self.is_forgotten(person))
    }

    fn with_shown_name(&self, person: PersonId) -> Option<Person> {
        let own = self.persons.get(&person)?;
        let named = |id: &PersonId| self.persons.get(id).filter(|known| known.display_name != id.to_string());
        let named = self.merges.members(person).iter().find_map(named);
        let name = if own.display_name == person.to_string() { named.unwrap_or(own) } else { own };
        Some(Person { display_name: name.display_name.clone(), ..own.clone() })
    }

    /// Returns whether the log has ever recorded the person, forgotten or not.
    pub fn is_recorded(&self, person: PersonId) -> bool {
        self.persons.contains_key(&person)
    }

    /// Returns whether the person was adopted from the rows of a previous worker.
    pub fn is_adopted(&self, person: PersonId) -> bool {
        self.adopted.contains(&person)
    }

    /// Returns whether the person was recorded and is forgotten now.
    pub fn is_forgotten(&self, person: PersonId) -> bool {
        self.forgotten.contains(&person)
    }

    /// Returns the forgotten persons, by number.
    pub fn forgotten(&self) -> impl Iterator<Item = PersonId> {
        self.forgotten.iter().copied()
    }

    /// Returns all persons who are neither forgotten nor merged into another, by number.
    pub fn iter(&self) -> impl Iterator<Item = (PersonId, Person)> {
        let present = self.persons.keys().filter(|id| !self.merges.is_absorbed(**id));
        present.filter_map(|id| Some((*id, self.get(*id)?)))
    }

    /// Returns the number of persons who are neither forgotten nor merged into another.
    pub fn len(&self) -> usize {
        let absorbed = self.merges.absorbed().filter(|(id, _)| !self.is_forgotten(*id)).count();
        self.persons.len() - absorbed - self.forgotten.len()
    }

    /// Returns whether there is no person.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the merges in force.
    pub fn merges(&self) -> &Merges {
        &self.merges
    }

    /// Returns the highest person number ever allocated or reserved.
    pub fn highest_number(&self) -> u32 {
        self.persons.last_key_value().map_or(0, |(person, _)| person.number()).max(self.reserved)
    }

    fn set_face(&mut self, person: PersonId, face: &FaceId) {
        if let Some(person) = self.persons.get_mut(&person) {
            person.face.clone_from(face);
        }
    }
}
