//! Everything that is ours, made anew from the log, or compared with it.

use std::sync::Arc;

use sparks_domain::{
    Difference, Event, Identity, ImageId, Key, Merges, Mutation, People, PersonId, PersonRenamed, PhotoState, Position,
    Projection, Recorded, Seq, Version,
};

use crate::{Clock, Commit, CommitError, Maintenance, StoreError};

/// Compares the table with the log, and mends it.
pub struct Rebuilder {
    store: Arc<dyn Maintenance>,
    clock: Arc<dyn Clock>,
    projection: Projection,
    actor: String,
}

/// How the table differed from the log.
#[derive(Debug, Default)]
pub struct Drift {
    /// Events read.
    pub events: u64,
    /// Rows that were not as the log says. At most [`Drift::LISTED`] are kept.
    pub differences: Vec<Difference>,
    /// How many differences there were in all.
    pub total: u64,
    /// Photos whose row the platform removed; nothing of ours is put back there.
    pub gone: u64,
    /// Names that somebody else gave to persons: theirs to give, so no drift.
    pub renamed: Vec<(PersonId, String)>,
}

impl Drift {
    /// How many differences are kept for listing.
    pub const LISTED: usize = 1000;
}

const BATCH: usize = 2048;

/// Some events of the log, understood.
struct Chapter {
    read: Position,
    events: u64,
    photos: Vec<Vec<Mutation>>,
}

impl Rebuilder {
    /// Works on this store in this name, with rows as this projection makes them.
    pub fn new(store: Arc<dyn Maintenance>, clock: Arc<dyn Clock>, projection: Projection, actor: String) -> Self {
        Self { store, clock, projection, actor }
    }

    /// Compares every row of ours with the log, and with `write` makes it so. `progress` hears how many events it has read.
    /// Works in short steps: workers go on meanwhile, and what they commit is read before the end.
    pub async fn run(&self, write: bool, progress: impl Fn(u64)) -> Result<Drift, StoreError> {
        let mut drift = Drift::default();
        let mut known = self.compare(write, &progress, &mut drift).await?;
        // Who is who may have changed since it was read: what was made of photos and persons is looked at once more.
        while self.merged_since(known).await? {
            if !write {
                drift = Drift::default();
            }
            known = self.compare(write, &progress, &mut drift).await?;
        }
        Ok(drift)
    }

    /// Whether anybody was joined or parted after this identity event.
    async fn merged_since(&self, known: Seq) -> Result<bool, StoreError> {
        let tail = self.store.identity(known).await?;
        let is_merge = |recorded: &Recorded| matches!(recorded.event, Event::PersonsMerged(_) | Event::MergeUndone(_));
        Ok(tail.events.iter().any(is_merge))
    }

    /// Goes once through all that is ours. Says up to which identity event it knew who is who.
    async fn compare(&self, write: bool, progress: &impl Fn(u64), drift: &mut Drift) -> Result<Seq, StoreError> {
        let mut people = People::default();
        // Who is who comes first: every photo is shown with who its persons are now.
        let identity = self.store.identity(Seq(0)).await?;
        for recorded in &identity.events {
            people.evolve(&recorded.event, recorded.when);
        }
        let merges = people.merges().clone();
        let mut chapter = self.read(Position::default(), &merges).await?;
        while let Some(Chapter { read, events, photos }) = chapter {
            drift.events += events;
            // The next chapter is read and understood while this one is compared.
            let so_far = read.events();
            (chapter, ()) = tokio::try_join!(self.read(read, &merges), self.mend(photos, write, drift))?;
            progress(so_far);
        }
        self.adopt_names(&mut people, write, drift).await?;
        let persons = people.iter().map(|(id, person)| vec![Projection::person(id, &person)]);
        let gone = merges.absorbed().map(|(id, _)| id).chain(people.forgotten());
        let gone = gone.map(|id| vec![Mutation::Delete { key: Key::person(id) }]);
        let counter = vec![Projection::counter(people.highest())];
        let rows: Vec<_> = persons.chain(gone).chain((people.highest() > 0).then_some(counter)).collect();
        for rows in rows.chunks(BATCH) {
            self.mend(rows.to_vec(), write, drift).await?;
        }
        Ok(identity.seq)
    }

    /// A display name that somebody else wrote is theirs to write: it becomes an event, and is never overwritten.
    async fn adopt_names(&self, people: &mut People, write: bool, drift: &mut Drift) -> Result<(), StoreError> {
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
            identity: Some(Identity { seq: tail.seq, counter: tail.counter, ..Identity::default() }),
            actor: self.actor.clone(),
            mutations: self.projection.project(None, &event, when, &Merges::default()),
            events: vec![event.clone()],
            ..Commit::without_events(when, None)
        };
        match self.store.commit(&commit).await {
            Ok(_) => Ok(event),
            Err(CommitError::Store(error)) => Err(error),
            Err(conflict) => Err(StoreError::Unavailable(format!("{conflict}: run it again"))),
        }
    }

    /// The events after `after`, and what their photos should be in the table: only what a photo shows now counts.
    async fn read(&self, after: Position, merges: &Merges) -> Result<Option<Chapter>, StoreError> {
        let batch = self.store.read_log(&after, BATCH).await?;
        if batch.is_empty() {
            return Ok(None);
        }
        let mut read = after;
        batch.iter().for_each(|recorded| read.pass_event(recorded));
        let events = batch.len() as u64;
        let photos: Vec<_> = batch.iter().filter_map(|r| Some((r, r.event.image()?.clone()))).collect();
        let images: Vec<ImageId> = photos.iter().map(|(_, image)| image.clone()).collect();
        let states = self.store.photos(&images).await?;
        let photos = photos.iter().zip(states).map(|((recorded, _), state)| self.photo(recorded, state, merges));
        Ok(Some(Chapter { read, events, photos: photos.collect() }))
    }

    fn photo(&self, recorded: &Recorded, state: Option<PhotoState>, merges: &Merges) -> Vec<Mutation> {
        match (&recorded.event, state) {
            (event @ (Event::PhotoProcessed(_) | Event::PhotoAdopted(_)), Some(state))
                if state.shows == Some(recorded.seq) =>
            {
                self.projection.shown(event, recorded.when, &state.persons, merges).unwrap_or_default()
            }
            // A later version took its place, or the photo is gone.
            (Event::PhotoProcessed(event), Some(state)) => self.projection.superseded(&state, event, merges),
            (Event::PhotoAdopted(event), Some(state)) => self.projection.superseded_tags(&state, event, merges),
            // The picture that a user has now says who they are.
            (Event::ProfileProcessed(event), Some(state)) if state.shows == Some(recorded.seq) => {
                self.projection.profile(event, recorded.when, merges).into_iter().collect()
            }
            // A review says who the persons are of a photo that an earlier event put there.
            (_, _) => Vec::new(),
        }
    }

    async fn mend(&self, groups: Vec<Vec<Mutation>>, write: bool, drift: &mut Drift) -> Result<(), StoreError> {
        let mended = self.store.mend(groups, write).await?;
        drift.total += mended.differences.len() as u64;
        drift.gone += mended.gone.len() as u64;
        let room = Drift::LISTED.saturating_sub(drift.differences.len());
        drift.differences.extend(mended.differences.into_iter().take(room));
        Ok(())
    }
}
