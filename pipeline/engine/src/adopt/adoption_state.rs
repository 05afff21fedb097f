//! The persons of the event log during an adoption.

use std::collections::BTreeSet;

use sparks_domain::{CropAnalysis, Event, IdentityHead, PersonId, PersonRegistry, RecordedEvent, Seq, Timestamp};

use crate::{Maintenance, Store, StoreError};

/// All persons up to the last identity event that was read or recorded.
pub(super) struct AdoptionState {
    /// The persons. In a dry run, including those that would be adopted.
    pub people: PersonRegistry,
    /// Adopted persons without a template.
    pub unrecognisable: BTreeSet<PersonId>,
    /// The head that the next identity event is decided on.
    pub identity: IdentityHead,
    /// Whether nothing is written.
    pub is_dry_run: bool,
}

impl AdoptionState {
    /// Reads the current state.
    pub async fn read(store: &dyn Maintenance, is_dry_run: bool) -> Result<Self, StoreError> {
        let (people, unrecognisable) = (PersonRegistry::default(), BTreeSet::new());
        let mut state = Self { people, unrecognisable, identity: IdentityHead::default(), is_dry_run };
        state.catch_up(store).await?;
        Ok(state)
    }

    /// Applies the identity events recorded by others since.
    pub async fn catch_up(&mut self, store: &dyn Maintenance) -> Result<(), StoreError> {
        let tail = Store::identity(store, self.identity.seq).await?;
        for recorded in &tail.events {
            self.evolve(&recorded.event, recorded.when);
        }
        self.identity = IdentityHead { seq: tail.seq, counter: tail.counter, ..IdentityHead::default() };
        Ok(())
    }

    /// Applies an event that was recorded by this adoption. In a dry run, `recorded` is empty.
    pub fn apply(&mut self, event: &Event, when: Timestamp, recorded: &[RecordedEvent]) {
        self.evolve(event, when);
        if let Event::NumbersReserved(reserved) = event {
            self.identity.counter = self.identity.counter.max(reserved.up_to);
        }
        self.identity.seq = recorded.last().map_or(self.identity.seq, |recorded| recorded.seq);
    }

    /// Returns the last identity event.
    pub fn seq(&self) -> Seq {
        self.identity.seq
    }

    fn evolve(&mut self, event: &Event, when: Timestamp) {
        self.people.evolve(event, when);
        match event {
            Event::PersonAdopted(e) if !matches!(e.likeness, CropAnalysis::Usable(_)) => {
                self.unrecognisable.insert(e.person);
            }
            Event::PersonPictured(e) => drop(self.unrecognisable.remove(&e.person)),
            _ => {}
        }
    }
}
