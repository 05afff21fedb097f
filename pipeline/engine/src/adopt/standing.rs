//! Where the log stands while something is taken over.

use std::collections::BTreeSet;

use sparks_domain::{Event, Identity, Likeness, People, PersonId, Recorded, Seq, Timestamp};

use crate::{Maintenance, Store, StoreError};

/// Everybody the log names, up to the last event that was read or written.
pub(super) struct Standing {
    /// Who is known. In a rehearsal also those who would be.
    pub people: People,
    /// Those who were taken over, and whom nobody would recognise.
    pub unrecognisable: BTreeSet<PersonId>,
    /// What the next identity event is decided on.
    pub identity: Identity,
    /// Whether nothing is to be written.
    pub rehearses: bool,
}

impl Standing {
    /// As it is now.
    pub async fn read(store: &dyn Maintenance, rehearses: bool) -> Result<Self, StoreError> {
        let (people, unrecognisable) = (People::default(), BTreeSet::new());
        let mut standing = Self { people, unrecognisable, identity: Identity::default(), rehearses };
        standing.catch_up(store).await?;
        Ok(standing)
    }

    /// Reads what others have decided since.
    pub async fn catch_up(&mut self, store: &dyn Maintenance) -> Result<(), StoreError> {
        let tail = Store::identity(store, self.identity.seq).await?;
        for recorded in &tail.events {
            self.take(&recorded.event, recorded.when);
        }
        self.identity = Identity { seq: tail.seq, counter: tail.counter, ..Identity::default() };
        Ok(())
    }

    /// This was recorded, or would have been.
    pub fn pass(&mut self, event: &Event, when: Timestamp, recorded: &[Recorded]) {
        self.take(event, when);
        if let Event::NumbersReserved(reserved) = event {
            self.identity.counter = self.identity.counter.max(reserved.up_to);
        }
        self.identity.seq = recorded.last().map_or(self.identity.seq, |recorded| recorded.seq);
    }

    /// The last identity event that is known.
    pub fn seq(&self) -> Seq {
        self.identity.seq
    }

    fn take(&mut self, event: &Event, when: Timestamp) {
        self.people.evolve(event, when);
        match event {
            Event::PersonAdopted(e) if !matches!(e.likeness, Likeness::Known(_)) => {
                self.unrecognisable.insert(e.person);
            }
            Event::PersonPictured(e) => drop(self.unrecognisable.remove(&e.person)),
            _ => {}
        }
    }
}
