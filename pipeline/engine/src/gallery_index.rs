//! The face index in memory: a gallery of all persons in the event log.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use async_trait::async_trait;
use sparks_domain::{
    Event, EventId, FaceId, Gallery, IdentityHead, Merges, PersonId, PersonRegistry, Position, RecordedEvent, Seq,
    Timestamp,
};

use crate::{
    FaceEnrollment, FaceSearch, GallerySnapshot, IdentityTail, IndexError, Maintenance, ObjectsError, PersonStatus,
    ProbeSet, SearchResult, SnapshotStore, Store, StoreError, StoredFace, TemplateScope, Templates,
};

/// The templates and persons of the event log, complete up to an identity event. It reads the log and is never ahead of it.
pub struct GalleryIndex {
    store: Arc<dyn Store>,
    candidates: usize,
    state: RwLock<GalleryState>,
    /// Held while new events are read.
    reading: tokio::sync::Mutex<()>,
    snapshots: Option<SnapshotStore>,
}

/// The state that was read from the event log so far.
#[derive(Default)]
pub struct GalleryState {
    /// The templates of all persons.
    pub gallery: Gallery,
    /// All persons. Shared, so that long work can be done on a copy.
    pub people: Arc<PersonRegistry>,
    /// The identity event up to which the persons are complete.
    pub identity: IdentityHead,
    /// The merges in force.
    pub(crate) merges: Arc<Merges>,
    /// The position up to which the templates are complete.
    templates: Position,
    /// The faces that were enrolled as templates.
    template_ids: BTreeSet<FaceId>,
    /// The persons in the order in which they were allocated or reinstated, with non-decreasing times.
    allocations: Vec<(Timestamp, PersonId)>,
    /// The last identity event.
    last_event: Option<(Seq, EventId)>,
    revision: u64,
}

impl GalleryState {
    /// Returns a number that grows with every change that may identify a face differently: a new template, a merge, a forgotten
    /// person.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the persons that were allocated or reinstated at this time or later.
    pub fn allocated_since(&self, since: Timestamp) -> impl Iterator<Item = PersonId> {
        let first = self.allocations.partition_point(|(when, _)| *when < since);
        self.allocations[first..].iter().map(|(_, person)| *person)
    }

    /// Enrolls a template, unless its person is forgotten in `people` or, without it, in the state: signatures of a forgotten person may
    /// be stored until their erasure is complete.
    fn enroll(&mut self, stored: StoredFace, people: Option<&PersonRegistry>) {
        let StoredFace { face, model, signature, person: Some(person), .. } = stored else { return };
        if !people.unwrap_or(&self.people).is_forgotten(person) {
            self.gallery.enroll(person, &model, &signature);
            self.revision += 1;
        }
        self.template_ids.insert(face);
    }

    fn apply_identity_events(&mut self, tail: &IdentityTail) {
        for recorded in &tail.events {
            Arc::make_mut(&mut self.people).evolve(&recorded.event, recorded.when);
            // The clocks of workers differ; times must not decrease for the binary search in `allocated_since`.
            let when = self.allocations.last().map_or(recorded.when, |(last, _)| recorded.when.max(*last));
            match &recorded.event {
                Event::PersonsAllocated(event) => {
                    self.allocations.extend(event.persons.iter().map(|new| (when, new.person)));
                }
                Event::PersonReinstated(event) => self.allocations.push((when, event.person)),
                _ => {}
            }
            self.last_event = Some((recorded.seq, recorded.id));
        }
        if *self.merges != *self.people.merges() {
            self.merges = Arc::new(self.people.merges().clone());
            self.gallery.apply_merges(&self.merges);
            self.revision += 1;
        }
        self.identity = IdentityHead { seq: tail.seq, counter: tail.counter, ..IdentityHead::default() };
    }
}

/// The number of templates read at a time.
const BATCH: usize = 8192;

impl GalleryIndex {
    /// Loads the index from the event log of this store. A search returns at most `candidates` persons per face.
    pub async fn load(store: Arc<dyn Store>, candidates: usize) -> Result<Self, StoreError> {
        let (state, reading) = (RwLock::default(), tokio::sync::Mutex::default());
        let index = Self { store, candidates, state, reading, snapshots: None };
        index.catch_up().await?;
        Ok(index)
    }

    /// Loads the index from the last snapshot, if there is one of this log, and from the events after it.
    pub async fn load_with_snapshot(
        store: Arc<dyn Maintenance>,
        candidates: usize,
        snapshots: SnapshotStore,
    ) -> Result<Self, StoreError> {
        let (state, reading) = (RwLock::default(), tokio::sync::Mutex::default());
        let snapshot = snapshots.read().await;
        let (tail, heads) = (store.identity(Seq(0)).await?, store.heads().await?);
        let index = Self { store, candidates, state, reading, snapshots: Some(snapshots) };
        if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.matches_log(&tail.events, &heads)) {
            index.load_templates(&snapshot, index.people_after(&tail.events).as_ref()).await?;
            index.state_mut().apply_identity_events(&tail);
        }
        index.catch_up().await?;
        Ok(index)
    }

    /// Enrolls the faces of a snapshot whose signatures are still stored.
    async fn load_templates(
        &self,
        snapshot: &GallerySnapshot,
        people: Option<&PersonRegistry>,
    ) -> Result<(), StoreError> {
        for faces in snapshot.templates().chunks(BATCH) {
            let stored = self.store.signatures(faces).await?;
            let mut state = self.state_mut();
            stored.into_iter().filter(|stored| stored.template).for_each(|stored| state.enroll(stored, people));
        }
        self.state_mut().templates = snapshot.position();
        Ok(())
    }

    /// Writes a snapshot, if enough events are new since the last one; at shutdown, if any are.
    pub async fn save_snapshot(&self, is_shutdown: bool) -> Result<(), ObjectsError> {
        let Some(snapshots) = &self.snapshots else { return Ok(()) };
        let snapshot = {
            let state = self.state();
            let is_due = match is_shutdown {
                true => !snapshots.is_current(&state.templates),
                false => snapshots.is_worth_writing(&state.templates, state.template_ids.len()),
            };
            let last_event = state.last_event.filter(|_| is_due);
            let template_ids = || state.template_ids.iter().cloned().collect();
            last_event.map(|last_event| GallerySnapshot::new(&state.templates, last_event, template_ids()))
        };
        match snapshot {
            Some(snapshot) => snapshots.write(&snapshot).await,
            None => Ok(()),
        }
    }

    /// Returns the current state. Blocks updates while it is held, so it is held for short work only; long work is done on clones of
    /// the gallery and of the persons.
    pub fn state(&self) -> RwLockReadGuard<'_, GalleryState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, GalleryState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies all events that were committed since the last call.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        self.read_new_events(TemplateScope::Everything).await
    }

    /// Applies new events. Templates are enrolled before their persons become known, so that every known person can be matched.
    /// Exclusive: concurrent calls would enroll a template twice.
    async fn read_new_events(&self, scope: TemplateScope) -> Result<(), StoreError> {
        let _exclusive = self.reading.lock().await;
        let (identity, mut templates) = {
            let state = self.state();
            (state.identity.seq, state.templates.clone())
        };
        let tail = self.store.identity(identity).await?;
        let people = self.people_after(&tail.events);
        if let Some(people) = people.as_ref().filter(|_| templates != Position::default()) {
            self.reload_changed(&tail.events, people).await?;
        }
        loop {
            let Templates { faces, read } = self.store.templates(&templates, scope, BATCH).await?;
            if read == templates {
                break;
            }
            let mut state = self.state_mut();
            for stored in faces {
                if !state.template_ids.contains(&stored.face) {
                    state.enroll(stored, people.as_ref());
                }
            }
            state.templates.clone_from(&read);
            templates = read;
        }
        self.state_mut().apply_identity_events(&tail);
        Ok(())
    }

    /// Returns the persons after these events; `None` where they forget and reinstate no person.
    fn people_after(&self, events: &[RecordedEvent]) -> Option<PersonRegistry> {
        let is_change = |r: &RecordedEvent| matches!(r.event, Event::PersonsForgotten(_) | Event::PersonReinstated(_));
        events.iter().any(is_change).then(|| {
            let mut people = PersonRegistry::clone(&self.state().people);
            events.iter().for_each(|recorded| people.evolve(&recorded.event, recorded.when));
            people
        })
    }

    /// Removes the templates of persons that these events forget or reinstate, and enrolls those that are stored of the reinstated
    /// ones now: they were skipped while the person was forgotten.
    async fn reload_changed(&self, events: &[RecordedEvent], people: &PersonRegistry) -> Result<(), StoreError> {
        let changed = events.iter().flat_map(|recorded| match &recorded.event {
            Event::PersonsForgotten(event) => event.persons.clone(),
            Event::PersonReinstated(event) => people.merges().members(event.person).into_iter().collect(),
            _ => Vec::new(),
        });
        let changed: BTreeSet<PersonId> = changed.collect();
        let reinstated: Vec<PersonId> =
            changed.iter().filter(|person| !people.is_forgotten(**person)).copied().collect();
        let stored = match reinstated.is_empty() {
            true => Vec::new(),
            false => self.store.faces_of(&reinstated).await?,
        };
        let mut state = self.state_mut();
        changed.iter().for_each(|person| state.gallery.remove(*person));
        state.revision += 1;
        let templates = stored.into_iter().map(|decided| decided.kept).filter(|stored| stored.template);
        templates.for_each(|stored| state.enroll(stored, Some(people)));
        Ok(())
    }
}

#[async_trait]
impl FaceSearch for GalleryIndex {
    async fn search(&self, probes: &ProbeSet) -> Result<SearchResult, IndexError> {
        let state = self.state();
        let search = state.gallery.search(&probes.faces, self.candidates, state.people.len());
        Ok(SearchResult { search, identity: state.identity.clone() })
    }

    async fn refresh(&self) -> Result<(), IndexError> {
        Ok(self.read_new_events(TemplateScope::Persons).await?)
    }

    fn merges(&self) -> Arc<Merges> {
        Arc::clone(&self.state().merges)
    }

    fn person_status(&self, person: PersonId) -> PersonStatus {
        let state = self.state();
        match (state.people.get(person), state.people.get_forgotten(person)) {
            _ if state.merges.is_absorbed(person) => PersonStatus::Unknown,
            (Some(person), _) => PersonStatus::Known(person),
            (None, Some(person)) => PersonStatus::Forgotten(person),
            (None, None) => PersonStatus::Unknown,
        }
    }

    fn identity(&self) -> IdentityHead {
        self.state().identity.clone()
    }

    /// Fails while the log holds an identity event that this version cannot read.
    async fn check(&self) -> Result<(), IndexError> {
        self.refresh().await
    }
}

/// A gallery reads templates from the event log, so nothing has to be enrolled.
impl FaceEnrollment for GalleryIndex {}
