//! Table, event log and signatures in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use sparks_domain::{
    Attributes, Event, FaceId, IdentityHead, ImageId, Item, Key, Lane, Level, Mutation, PersonId, PhotoState, Position,
    Presence, RecordedEvent, Seq,
};
use sparks_engine::{
    Checkpoint, Commit, CommitError, DecidedFace, DependencyError, IdentityTail, Page, PhotoGuard, Query, RepairGuard,
    Store, StoreError, StoredFace, TemplateScope, Templates, readable_level,
};
use tokio::time::sleep;

use super::{CommitObserver, rows::Rows};

/// Table, event log and signatures in memory. Clones share them.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    /// Held by the transaction in progress.
    pub(super) transaction: Arc<tokio::sync::Mutex<()>>,
    config: MemoryStoreConfig,
    pub(super) observer: Option<Arc<dyn CommitObserver>>,
}

/// How a store behaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStoreConfig {
    /// The number of lanes for photos. With 0 all events are in one lane, as in a data folder.
    pub lanes: u16,
    /// The longest time by which indexes lag behind the table.
    pub index_lag: Duration,
    /// The longest time during which readers see one half of a transaction.
    pub half_visible: Duration,
    /// The number of photos whose faces one transaction may change: DynamoDB takes at most 100 actions.
    pub max_photos_per_commit: Option<usize>,
}

#[derive(Default)]
pub(super) struct State {
    pub rows: Rows,
    pub log: BTreeMap<Lane, Vec<RecordedEvent>>,
    pub states: BTreeMap<ImageId, PhotoState>,
    pub faces: BTreeMap<FaceId, FaceRow>,
    /// The last identity event.
    identity: Seq,
    /// The reader level of the log.
    level: Level,
    pub checkpoints: [Position; 2],
}

/// A stored face.
pub(super) struct FaceRow {
    pub stored: StoredFace,
    /// The event that decided it.
    pub decided: (Lane, Seq),
    /// The event since which it is a template.
    since: (Lane, Seq),
}

impl FaceRow {
    pub fn decided_face(&self) -> DecidedFace {
        DecidedFace { seq: self.decided.1, kept: self.stored.clone() }
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new(config: MemoryStoreConfig) -> Self {
        let state = State { rows: Rows::new(config.index_lag), ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), transaction: Arc::default(), config, observer: None }
    }

    /// Shows every transaction to this observer.
    pub fn observed_by(self, observer: Arc<dyn CommitObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lane of the events about a photo.
    fn lane_of(&self, image: &ImageId) -> Lane {
        match self.config.lanes {
            0 => Lane::IDENTITY,
            lanes => {
                let sum = image.as_str().bytes().fold(7_u16, |sum, byte| sum.wrapping_mul(31) ^ u16::from(byte));
                Lane(1 + sum % lanes)
            }
        }
    }

    /// Changes a row as the platform does, without a condition. Like any write to an item of a transaction, it takes effect before the
    /// transaction or after it.
    pub async fn change_row(&self, key: &Key, change: impl FnOnce(Option<Attributes>) -> Option<Attributes>) {
        let _exclusive = self.transaction.lock().await;
        let mut state = self.lock();
        let row = change(state.rows.get(key).cloned());
        state.rows.set(key, row);
    }

    /// Returns all rows, by key.
    pub fn rows(&self) -> Vec<Item> {
        let state = self.lock();
        state.rows.iter().map(|(key, attributes)| Item { key: key.clone(), attributes: attributes.clone() }).collect()
    }

    /// Returns all events, lane by lane.
    pub fn events(&self) -> Vec<RecordedEvent> {
        self.lock().log.values().flatten().cloned().collect()
    }

    /// Returns all stored faces.
    pub fn faces(&self) -> Vec<StoredFace> {
        self.lock().faces.values().map(|row| row.stored.clone()).collect()
    }

    /// Runs a transaction in the service: it ends even if the client that asked for it is gone.
    async fn transact(self, commit: Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        let _exclusive = self.transaction.lock().await;
        let recorded = self.accept(&commit).inspect_err(|error| {
            if let Some(observer) = &self.observer {
                observer.refused(error);
            }
        })?;
        let has_halves = !self.config.half_visible.is_zero();
        let is_log_first = !has_halves || fastrand::bool();
        self.write(is_log_first, &commit, &recorded);
        if has_halves {
            sleep(self.config.half_visible.mul_f64(fastrand::f64())).await;
        }
        self.write(!is_log_first, &commit, &recorded);
        Ok(recorded)
    }

    /// Checks limits and conditions. Returns the events with the sequence numbers that they get.
    fn accept(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        self.check_limits(commit)?;
        let state = self.lock();
        state.check(commit)?;
        let recorded = self.number(&state, commit);
        if let Some(observer) = &self.observer {
            observer.accepted(commit, &recorded, photo_after(commit, &recorded).as_ref());
        }
        Ok(recorded)
    }

    fn write(&self, is_log: bool, commit: &Commit, recorded: &[RecordedEvent]) {
        let mut state = self.lock();
        if is_log { state.write_log(commit, recorded) } else { state.write_rows(commit) }
    }

    fn check_limits(&self, commit: &Commit) -> Result<(), CommitError> {
        let faces = commit.signatures.iter().map(|stored| &stored.face).chain(&commit.promoted);
        let faces = faces.chain(&commit.erased.faces).chain(commit.identified.iter().map(|(face, _)| face));
        let photos: BTreeSet<&ImageId> = faces.map(|face| &face.image).chain(&commit.erased.photos).collect();
        match self.config.max_photos_per_commit {
            Some(most) if photos.len() > most => Err(StoreError::Refused(format!(
                "{} face items, and a transaction has at most 100 actions",
                photos.len()
            ))
            .into()),
            _ => Ok(()),
        }
    }

    /// Returns the events with the sequence numbers that they get.
    fn number(&self, state: &State, commit: &Commit) -> Vec<RecordedEvent> {
        let mut heads: BTreeMap<Lane, Seq> = BTreeMap::new();
        let number = |event: &sparks_domain::Event| {
            let lane = event.image().map_or(Lane::IDENTITY, |image| self.lane_of(image));
            let head = heads.entry(lane).or_insert_with(|| state.head(lane));
            head.0 += 1;
            let (actor, when) = (commit.actor.clone(), commit.when);
            RecordedEvent { lane, seq: *head, id: event.id(), actor, when, event: event.clone() }
        };
        commit.events.iter().map(number).collect()
    }
}

impl State {
    pub fn head(&self, lane: Lane) -> Seq {
        Seq(self.log.get(&lane).map_or(0, |events| events.len() as u64))
    }

    fn counter(&self) -> Result<u32, StoreError> {
        let Some(limit) = self.rows.get(&Key::counter()).and_then(|row| row.get("limit")) else { return Ok(0) };
        let number = limit.as_f64().filter(|n| *n >= 0.0 && *n <= f64::from(u32::MAX) && n.fract() == 0.0);
        number.map(|n| n as u32).ok_or_else(|| {
            StoreError::Unreadable(format!("UNKNOWN_PERSONS.limit is {limit}, which is not a valid count"))
        })
    }

    fn is_photo_unchanged(&self, photo: &PhotoGuard) -> bool {
        self.states.get(&photo.image) == photo.before.as_ref()
    }

    fn is_identity_unchanged(&self, identity: &IdentityHead) -> Result<bool, StoreError> {
        Ok(self.identity == identity.seq && self.counter()? == identity.counter)
    }

    /// Returns whether the condition of a repair holds.
    pub fn holds(&self, guard: &RepairGuard) -> Result<bool, StoreError> {
        match guard {
            RepairGuard::Photo(photo) => Ok(self.is_photo_unchanged(photo)),
            RepairGuard::Identity(identity) => self.is_identity_unchanged(identity),
        }
    }

    fn check(&self, commit: &Commit) -> Result<(), CommitError> {
        if commit.photo.as_ref().is_some_and(|photo| !self.is_photo_unchanged(photo)) {
            return Err(CommitError::PhotoMoved);
        }
        if let Some(identity) = &commit.identity
            && !self.is_identity_unchanged(identity)?
        {
            return Err(CommitError::IdentityMoved);
        }
        commit.level_after(self.level)?;
        for mutation in &commit.mutations {
            let key = mutation.key();
            match (mutation, self.rows.get(key)) {
                (mutation, None) if mutation.requires_row() => return Err(CommitError::RowMissing(key.clone())),
                (Mutation::Set { presence: Presence::Absent, .. }, Some(_)) => {
                    return Err(match key.sk.parse::<PersonId>() {
                        Ok(person) => CommitError::NumberTaken(person),
                        Err(_) => StoreError::Unreadable(format!("the row {key} exists already")).into(),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes events, states and signatures.
    fn write_log(&mut self, commit: &Commit, recorded: &[RecordedEvent]) {
        for event in recorded {
            self.log.entry(event.lane).or_default().push(event.clone());
            if event.event.is_identity() {
                self.identity = event.seq;
            }
            if let Event::LevelRaised(raised) = &event.event {
                self.level = raised.level;
            }
        }
        if let Some((photo, after)) = commit.photo.as_ref().zip(photo_after(commit, recorded)) {
            self.states.insert(photo.image.clone(), after);
        }
        let last = recorded.last().map_or((Lane::IDENTITY, Seq(0)), |event| (event.lane, event.seq));
        for stored in &commit.signatures {
            let row = FaceRow { stored: stored.clone(), decided: last, since: last };
            self.faces.insert(stored.face.clone(), row);
        }
        for (face, person) in &commit.identified {
            self.faces.entry(face.clone()).and_modify(|row| row.stored.person = Some(*person));
        }
        for face in &commit.promoted {
            self.faces.entry(face.clone()).and_modify(|row| {
                row.stored.template = true;
                row.since = last;
            });
        }
        commit.erased.faces.iter().for_each(|face| drop(self.faces.remove(face)));
        if !commit.erased.photos.is_empty() {
            self.faces.retain(|face, _| !commit.erased.photos.contains(&face.image));
        }
    }

    fn write_rows(&mut self, commit: &Commit) {
        for mutation in &commit.mutations {
            let row = mutation.apply(self.rows.get(mutation.key()).cloned());
            self.rows.set(mutation.key(), row);
        }
    }
}

/// Returns the state of the commit's photo after these events.
fn photo_after(commit: &Commit, recorded: &[RecordedEvent]) -> Option<PhotoState> {
    let evolve = |state, event: &RecordedEvent| PhotoState::evolve(state, event.seq, &event.event);
    recorded.iter().fold(commit.photo.as_ref()?.before.clone(), evolve)
}

#[async_trait]
impl Store for MemoryStore {
    fn has_serial_commits(&self) -> bool {
        self.config.lanes == 0
    }

    async fn commit(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        let transaction = tokio::spawn(self.clone().transact(commit.clone())).await;
        transaction.unwrap_or_else(|error| Err(DependencyError::Unavailable(error.to_string()).into()))
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        Ok(self.lock().states.get(image).cloned())
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        let state = self.lock();
        let lane = state.log.get(&Lane::IDENTITY).into_iter().flatten();
        let events = lane.skip(usize::try_from(after.0).unwrap_or(usize::MAX)).filter(|e| e.event.is_identity());
        let (events, counter) = (events.cloned().collect(), state.counter()?);
        Ok(IdentityTail { events, seq: state.identity, counter, level: readable_level(state.level)? })
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        let state = self.lock();
        let unread = |(lane, events): (&Lane, &'_ Vec<RecordedEvent>)| {
            let read = usize::try_from(after.in_lane(*lane).0).unwrap_or(usize::MAX);
            events.iter().skip(read).take(most).cloned().collect::<Vec<_>>()
        };
        Ok(state.log.iter().flat_map(unread).take(most).collect())
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<RecordedEvent>, StoreError> {
        let state = self.lock();
        let position = usize::try_from(seq.0).unwrap_or_default().checked_sub(1);
        Ok(position.and_then(|n| state.log.get(&self.lane_of(image))?.get(n)).cloned())
    }

    async fn templates(&self, after: &Position, _: TemplateScope, most: usize) -> Result<Templates, StoreError> {
        let state = self.lock();
        let is_new = |row: &&FaceRow| row.stored.template && row.since.1 > after.in_lane(row.since.0);
        let mut found: Vec<&FaceRow> = state.faces.values().filter(is_new).collect();
        found.sort_by_key(|row| (row.since, row.stored.face.clone()));
        // Whole events: all faces of the last event are returned.
        let last = found.get(most.saturating_sub(1).min(found.len().saturating_sub(1))).map(|row| row.since);
        found.retain(|row| last.is_some_and(|last| row.since <= last));
        let mut read = after.clone();
        found.iter().for_each(|row| read.advance(row.since.0, row.since.1));
        Ok(Templates { faces: found.into_iter().map(|row| row.stored.clone()).collect(), read })
    }

    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        let state = self.lock();
        Ok(faces.iter().filter_map(|face| Some(state.faces.get(face)?.stored.clone())).collect())
    }

    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        let state = self.lock();
        let mut found = Vec::new();
        for person in persons {
            let of_person = state.faces.values().filter(|row| row.stored.person == Some(*person));
            let mut faces: Vec<DecidedFace> = of_person.map(FaceRow::decided_face).collect();
            faces.sort_by(|a, b| b.seq.cmp(&a.seq).then(a.kept.face.n.cmp(&b.kept.face.n)));
            found.extend(faces);
        }
        Ok(found)
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        let row = self.lock().rows.get(key).cloned();
        Ok(row.map(|attributes| Item { key: key.clone(), attributes }))
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let state = self.lock();
        let row = |key: &Key| Some(Item { key: key.clone(), attributes: state.rows.get(key)?.clone() });
        Ok(keys.iter().filter_map(row).collect())
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        Ok(self.lock().rows.query(query))
    }
}

impl State {
    /// Returns where a checkpoint is kept.
    pub fn checkpoint(&mut self, checkpoint: Checkpoint) -> &mut Position {
        &mut self.checkpoints[usize::from(checkpoint == Checkpoint::Considered)]
    }
}
