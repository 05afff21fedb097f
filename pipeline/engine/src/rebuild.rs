//! Comparison of the table with the event log, and its rebuild.

use std::sync::Arc;

use sparks_domain::{
    Difference, Event, IdentityHead, ImageId, Key, Merges, Mutation, PersonId, PersonRegistry, PersonRenamed, Position,
    Projection, ProjectionContext, RecordedEvent, Seq, Version,
};

use crate::{Clock, Commit, CommitError, DependencyError, Maintenance, StoreError};

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

/// A batch of events, and the rows that their photos must have.
struct LogBatch {
    read: Position,
    events: u64,
    photos: Vec<Vec<Mutation>>,
}

impl Rebuilder {
    /// Creates a rebuilder for this store that records events as `actor`.
    pub fn new(store: Arc<dyn Maintenance>, clock: Arc<dyn Clock>, projection: Projection, actor: String) -> Self {
        Self { store, clock, projection, actor }
    }

    /// Compares every projected row with the event log, and with `write` repairs it. `progress` receives the number of events read.
    /// Runs in short steps beside active workers, whose commits are included.
    pub async fn run(&self, write: bool, progress: impl Fn(u64)) -> Result<Drift, StoreError> {
        let mut drift = Drift::default();
        let mut identity = self.compare(write, &progress, &mut drift).await?;
        // Rows were projected with the merges read at the start; if those have changed, they are compared again.
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

    /// Compares all projected rows once. Returns the identity event whose merges were used.
    async fn compare(&self, write: bool, progress: &impl Fn(u64), drift: &mut Drift) -> Result<Seq, StoreError> {
        let mut people = PersonRegistry::default();
        // Identity events first: the rows of photos depend on all merges.
        let identity = self.store.identity(Seq(0)).await?;
        for recorded in &identity.events {
            people.evolve(&recorded.event, recorded.when);
        }
        let merges = people.merges().clone();
        let mut batch = self.read(Position::default(), &merges).await?;
        while let Some(LogBatch { read, events, photos }) = batch {
            drift.events += events;
            // The next batch is read while this one is compared.
            let so_far = read.events();
            (batch, ()) = tokio::try_join!(self.read(read, &merges), self.repair(photos, write, drift))?;
            progress(so_far);
        }
        self.adopt_names(&mut people, write, drift).await?;
        let persons = people.iter().map(|(id, person)| vec![Projection::person_row(id, &person)]);
        let removed = merges.absorbed().map(|(id, _)| id).chain(people.forgotten());
        let removed = removed.map(|id| vec![Mutation::Delete { key: Key::person(id) }]);
        let counter = vec![Projection::counter_row(people.highest_number())];
        let rows: Vec<_> = persons.chain(removed).chain((people.highest_number() > 0).then_some(counter)).collect();
        for rows in rows.chunks(BATCH) {
            self.repair(rows.to_vec(), write, drift).await?;
        }
        Ok(identity.seq)
    }

    /// Records display names that were changed in the table as events: the platform owns names, so they are never overwritten.
    async fn adopt_names(&self, people: &mut PersonRegistry, write: bool, drift: &mut Drift) -> Result<(), StoreError> {
        let ids: Vec<PersonId> = people.iter().map(|(id, _)| id).collect();
        for ids in ids.chunks(BATCH) {
            let keys: Vec<Key> = ids.iter().map(|id| Key::person(*id)).collect();
            for row in self.store.batch_get(&keys).await? {
                let (Ok(person), Some(name)) = (row.key.sk.parse::<PersonId>(), row.text("displayName")) else {
                    continue;
                };
                let Some(known) = people.get(person).filter(|known| known.display_name != name) else { continue };
                let (from, to) = (known.display_name, name.to_owned());
                drift.renamed.push((person, to.clone()));
                let renamed = |seq| PersonRenamed { v: Version, person, identity_seq: seq, from, to };
                let event = if write { self.record(renamed).await? } else { Event::PersonRenamed(renamed(Seq(0))) };
                people.evolve(&event, self.clock.now());
            }
        }
        Ok(())
    }

    async fn record(&self, renamed: impl FnOnce(Seq) -> PersonRenamed) -> Result<Event, StoreError> {
        let tail = self.store.identity(Seq(u64::MAX >> 1)).await?;
        let event = Event::PersonRenamed(renamed(tail.seq));
        let when = self.clock.now();
        let commit = Commit {
            identity: Some(IdentityHead { seq: tail.seq, counter: tail.counter, ..IdentityHead::default() }),
            actor: self.actor.clone(),
            mutations: self.projection.project(&event, &ProjectionContext::new(when, &Merges::default())),
            events: vec![event.clone()],
            ..Commit::without_events(when, None)
        };
        match self.store.commit(&commit).await {
            Ok(_) => Ok(event),
            Err(CommitError::Store(error)) => Err(error),
            Err(conflict) => Err(DependencyError::Unavailable(format!("{conflict}; run the command again")).into()),
        }
    }

    /// Reads the events after `after`, and returns the rows that their photos must have now. `None` at the end of the log.
    async fn read(&self, after: Position, merges: &Merges) -> Result<Option<LogBatch>, StoreError> {
        let batch = self.store.read_log(&after, BATCH).await?;
        if batch.is_empty() {
            return Ok(None);
        }
        let mut read = after;
        batch.iter().for_each(|recorded| read.advance_past(recorded));
        let events = batch.len() as u64;
        let photos: Vec<_> = batch.iter().filter_map(|r| Some((r, r.event.image()?.clone()))).collect();
        let images: Vec<ImageId> = photos.iter().map(|(_, image)| image.clone()).collect();
        let states = self.store.photos(&images).await?;
        let photos = photos.iter().zip(states).map(|((recorded, _), state)| {
            state.map(|state| self.projection.reproject(recorded, &state, merges)).unwrap_or_default()
        });
        Ok(Some(LogBatch { read, events, photos: photos.collect() }))
    }

    async fn repair(&self, groups: Vec<Vec<Mutation>>, write: bool, drift: &mut Drift) -> Result<(), StoreError> {
        let report = self.store.repair(groups, write).await?;
        drift.total += report.differences.len() as u64;
        drift.deleted_photos += report.gone.len() as u64;
        let room = Drift::MAX_LISTED.saturating_sub(drift.differences.len());
        drift.differences.extend(report.differences.into_iter().take(room));
        Ok(())
    }
}
