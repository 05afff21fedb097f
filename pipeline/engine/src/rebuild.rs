//! Comparison of the table with the event log, and its rebuild.

use std::sync::Arc;

use sparks_domain::{
    Difference, Event, IdentityHead, ImageId, Key, Merges, Mutation, PersonId, PersonRegistry, PersonRenamed,
    PhotoState, Position, Projection, RecordedEvent, Seq, Version,
};

use crate::{Clock, Commit, CommitError, Maintenance, PhotoGuard, RepairGroup, RepairGuard, StoreError};

/// Compares the projected rows of the table with the event log, and repairs them.
pub struct Rebuilder {
    store: Arc<dyn Maintenance>,
    clock: Arc<dyn Clock>,
    projection: Projection,
    actor: String,
}

/// The differences between the table and the event log.
#[derive(Debug, Default)]
pub struct Drift {
    /// Events read.
    pub events: u64,
    /// Rows that differ from the event log, at most [`Drift::MAX_LISTED`].
    pub differences: Vec<Difference>,
    /// The total number of differences.
    pub total: u64,
    /// Photos whose IMAGE row the platform has deleted. Their rows are not restored.
    pub deleted_photos: u64,
    /// Display names that the platform's users have changed. The platform owns names, so these are not differences.
    pub renamed: Vec<(PersonId, String)>,
}

impl Drift {
    /// The maximum number of listed differences.
    pub const MAX_LISTED: usize = 1000;
}

const BATCH: usize = 2048;

/// A batch of events: those about photos, each with the state of its photo.
struct LogBatch {
    read: Position,
    events: u64,
    photos: Vec<PhotoEvent>,
}

/// An event about a photo, and the state of the photo.
struct PhotoEvent {
    recorded: RecordedEvent,
    image: ImageId,
    state: Option<PhotoState>,
}

impl PhotoEvent {
    /// Returns the rows that the event accounts for, under the condition that the state of the photo is unchanged.
    fn group(&self, projection: Projection, merges: &Merges) -> Option<RepairGroup> {
        let state = self.state.as_ref()?;
        let mutations = projection.reproject(&self.recorded, state, merges);
        let guard = PhotoGuard { image: self.image.clone(), before: Some(state.clone()) };
        (!mutations.is_empty()).then_some(RepairGroup { guard: RepairGuard::Photo(guard), mutations })
    }
}

/// All persons up to an identity event.
#[derive(Default)]
struct KnownPersons {
    people: PersonRegistry,
    head: IdentityHead,
}

impl KnownPersons {
    async fn catch_up(&mut self, store: &dyn Maintenance) -> Result<(), StoreError> {
        let tail = store.identity(self.head.seq).await?;
        self.evolve(&tail.events);
        self.head = IdentityHead { seq: tail.seq, counter: tail.counter, ..IdentityHead::default() };
        Ok(())
    }

    fn evolve(&mut self, events: &[RecordedEvent]) {
        for recorded in events {
            self.people.evolve(&recorded.event, recorded.when);
            self.head.seq = recorded.seq;
        }
    }

    /// Returns all persons, also those who have no row.
    fn ids(&self) -> Vec<PersonId> {
        let removed = self.people.merges().absorbed().map(|(id, _)| id).chain(self.people.forgotten());
        self.people.iter().map(|(id, _)| id).chain(removed).collect()
    }

    /// Returns the row of the person, or its removal, under the condition that no person has changed.
    fn person_row(&self, id: PersonId) -> RepairGroup {
        let present = self.people.get(id).filter(|_| !self.people.merges().is_absorbed(id));
        self.group(match present {
            Some(person) => Projection::restored_person_row(id, &person),
            None => Mutation::Delete { key: Key::person(id) },
        })
    }

    /// Returns the counter's row, if there was ever a person.
    fn counter_row(&self) -> Option<RepairGroup> {
        let highest = self.people.highest_number();
        (highest > 0).then(|| self.group(Projection::counter_row(highest)))
    }

    fn group(&self, row: Mutation) -> RepairGroup {
        RepairGroup { guard: RepairGuard::Identity(self.head.clone()), mutations: vec![row] }
    }
}

impl Rebuilder {
    /// Creates a rebuilder for this store that records events as `actor`.
    pub fn new(store: Arc<dyn Maintenance>, clock: Arc<dyn Clock>, projection: Projection, actor: String) -> Self {
        Self { store, clock, projection, actor }
    }

    /// Compares every projected row with the event log, and with `write` repairs it. `progress` receives the number of events read.
    /// Runs in short steps beside active workers, whose commits are included: a row is repaired under the condition that the photo
    /// or the persons it was projected from are unchanged, and projected again otherwise.
    pub async fn run(&self, write: bool, progress: impl Fn(u64)) -> Result<Drift, StoreError> {
        let mut drift = Drift::default();
        let mut identity = self.compare(write, &progress, &mut drift).await?;
        // Rows of photos were projected with the merges read at the start; if those have changed, they are compared again.
        while self.has_merges_since(identity).await? {
            if !write {
                drift = Drift::default();
            }
            identity = self.compare(write, &progress, &mut drift).await?;
        }
        Ok(drift)
    }

    /// Whether persons were merged or unmerged after this identity event.
    async fn has_merges_since(&self, identity: Seq) -> Result<bool, StoreError> {
        let tail = self.store.identity(identity).await?;
        let is_merge =
            |recorded: &RecordedEvent| matches!(recorded.event, Event::PersonsMerged(_) | Event::MergeUndone(_));
        Ok(tail.events.iter().any(is_merge))
    }

    /// Compares all projected rows once. Returns the identity event whose merges were used for the rows of photos.
    async fn compare(&self, write: bool, progress: &impl Fn(u64), drift: &mut Drift) -> Result<Seq, StoreError> {
        let mut known = KnownPersons::default();
        // Identity events first: the rows of photos depend on all merges.
        known.catch_up(self.store.as_ref()).await?;
        let (identity, merges) = (known.head.seq, known.people.merges().clone());
        let mut batch = self.read(Position::default()).await?;
        while let Some(LogBatch { read, events, photos }) = batch {
            drift.events += events;
            // The next batch is read while this one is compared.
            let so_far = read.events();
            let compared = self.compare_photos(photos, &merges, write, drift);
            (batch, ()) = tokio::try_join!(self.read(read), compared)?;
            progress(so_far);
        }
        known.catch_up(self.store.as_ref()).await?;
        for ids in known.ids().chunks(BATCH) {
            self.compare_persons(ids.to_vec(), &mut known, write, drift).await?;
        }
        while let Some(counter) = known.counter_row() {
            if self.repair(vec![counter], write, drift).await?.is_empty() {
                break;
            }
            known.catch_up(self.store.as_ref()).await?;
        }
        Ok(identity)
    }

    /// Compares the rows of these persons, again while identity events are recorded that change what they should be.
    async fn compare_persons(
        &self,
        mut ids: Vec<PersonId>,
        known: &mut KnownPersons,
        write: bool,
        drift: &mut Drift,
    ) -> Result<(), StoreError> {
        while !ids.is_empty() {
            while !self.adopt_names(&ids, known, write, drift).await? {
                known.catch_up(self.store.as_ref()).await?;
            }
            let groups = ids.iter().map(|id| known.person_row(*id)).collect();
            let outdated = self.repair(groups, write, drift).await?;
            ids = outdated.into_iter().map(|position| ids[position]).collect();
            if !ids.is_empty() {
                known.catch_up(self.store.as_ref()).await?;
            }
        }
        Ok(())
    }

    /// Records display names that were changed in the table as events: the platform owns names, so they are never overwritten.
    /// Returns `false` if other identity events were recorded meanwhile.
    async fn adopt_names(
        &self,
        ids: &[PersonId],
        known: &mut KnownPersons,
        write: bool,
        drift: &mut Drift,
    ) -> Result<bool, StoreError> {
        let present = ids.iter().filter(|id| !known.people.merges().is_absorbed(**id));
        let keys: Vec<Key> = present.map(|id| Key::person(*id)).collect();
        for row in self.store.batch_get(&keys).await? {
            let (Ok(person), Some(name)) = (row.key.sk.parse::<PersonId>(), row.text("displayName")) else {
                continue;
            };
            let Some(from) = known.people.get(person).map(|known| known.display_name) else { continue };
            if from == name {
                continue;
            }
            let to = name.to_owned();
            let event = PersonRenamed { v: Version, person, identity_seq: known.head.seq, from, to: to.clone() };
            let event = Event::PersonRenamed(event);
            if !write {
                known.people.evolve(&event, self.clock.now());
            } else if !self.record(event, known).await? {
                return Ok(false);
            }
            drift.renamed.push((person, to));
        }
        Ok(true)
    }

    /// Records an event about persons. Returns `false` after a conflict.
    async fn record(&self, event: Event, known: &mut KnownPersons) -> Result<bool, StoreError> {
        let commit = Commit {
            identity: Some(known.head.clone()),
            actor: self.actor.clone(),
            events: vec![event],
            ..Commit::without_events(self.clock.now(), None)
        };
        match self.store.commit(&commit).await {
            Ok(recorded) => {
                known.evolve(&recorded);
                Ok(true)
            }
            Err(CommitError::Store(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Reads the events after `after`. `None` at the end of the log.
    async fn read(&self, after: Position) -> Result<Option<LogBatch>, StoreError> {
        let batch = self.store.read_log(&after, BATCH).await?;
        if batch.is_empty() {
            return Ok(None);
        }
        let mut read = after;
        batch.iter().for_each(|recorded| read.advance_past(recorded));
        let events = batch.len() as u64;
        Ok(Some(LogBatch { read, events, photos: self.with_states(batch).await? }))
    }

    /// Returns those of the events that are about photos, with the states of the photos.
    async fn with_states(&self, events: Vec<RecordedEvent>) -> Result<Vec<PhotoEvent>, StoreError> {
        let photos = events.into_iter().filter_map(|recorded| Some((recorded.event.image()?.clone(), recorded)));
        let (images, events): (Vec<ImageId>, Vec<RecordedEvent>) = photos.unzip();
        let states = self.store.photos(&images).await?;
        let photos = events.into_iter().zip(images).zip(states);
        Ok(photos.map(|((recorded, image), state)| PhotoEvent { recorded, image, state }).collect())
    }

    /// Compares the rows of photos, again where the state of a photo has changed since it was read.
    async fn compare_photos(
        &self,
        mut photos: Vec<PhotoEvent>,
        merges: &Merges,
        write: bool,
        drift: &mut Drift,
    ) -> Result<(), StoreError> {
        loop {
            let projected = photos.into_iter().filter_map(|photo| Some((photo.group(self.projection, merges)?, photo)));
            let (groups, photos_of_groups): (Vec<_>, Vec<_>) = projected.unzip();
            let outdated = self.repair(groups, write, drift).await?;
            if outdated.is_empty() {
                return Ok(());
            }
            let events = outdated.into_iter().map(|position| photos_of_groups[position].recorded.clone()).collect();
            photos = self.with_states(events).await?;
        }
    }

    /// Compares these groups, and with `write` repairs them. Returns the positions of those to project again.
    async fn repair(&self, groups: Vec<RepairGroup>, write: bool, drift: &mut Drift) -> Result<Vec<usize>, StoreError> {
        let report = self.store.repair(groups, write).await?;
        drift.total += report.differences.len() as u64;
        drift.deleted_photos += report.gone.len() as u64;
        let room = Drift::MAX_LISTED.saturating_sub(drift.differences.len());
        drift.differences.extend(report.differences.into_iter().take(room));
        Ok(report.outdated)
    }
}
