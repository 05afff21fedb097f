//! What must hold at every commit, checked at the moment a transaction is accepted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use sparks_domain::{
    Event, EventId, ImageId, Lane, Mutation, PersonId, PersonRegistry, PhotoState, PhotoStatus, RecordedEvent,
};
use sparks_engine::{Commit, CommitError};

use crate::{memory::CommitObserver, world::Contention};

/// Checks every transaction, and counts them.
#[derive(Default)]
pub(crate) struct Audit(Mutex<State>);

#[derive(Default)]
struct State {
    contention: Contention,
    violations: Vec<String>,
    ids: BTreeSet<EventId>,
    heads: BTreeMap<Lane, u64>,
    people: PersonRegistry,
    highest_number: u32,
    /// The order of uploads, by the version of the object.
    uploads: BTreeMap<String, u64>,
    /// The newest upload of each photo that was committed.
    newest: BTreeMap<ImageId, u64>,
    /// The upload that the rows of each photo show. Later ones may have been rejected.
    shown: BTreeMap<ImageId, u64>,
}

impl Audit {
    /// Records the order of an upload.
    pub fn uploaded(&self, version: String, serial: u64) {
        self.lock().uploads.insert(version, serial);
    }

    pub fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    pub fn contention(&self) -> Contention {
        self.lock().contention
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommitObserver for Audit {
    fn accepted(&self, commit: &Commit, recorded: &[RecordedEvent], after: Option<&PhotoState>) {
        let mut state = self.lock();
        state.contention.commits += 1;
        for event in recorded {
            state.check_log(event);
            state.check_event(commit, &event.event);
            state.people.evolve(&event.event, event.when);
        }
        state.check_tags(commit, after);
        state.check_person_rows(&commit.mutations);
        state.check_signatures(commit);
    }

    fn refused(&self, error: &CommitError) {
        let counts = &mut self.lock().contention;
        match error {
            CommitError::IdentityMoved | CommitError::NumberTaken(_) => counts.identity_conflicts += 1,
            CommitError::PhotoMoved => counts.photo_conflicts += 1,
            CommitError::RowMissing(_) | CommitError::Store(_) => {}
        }
    }

    fn repaired(&self, mutations: &[Mutation]) {
        self.lock().check_person_rows(mutations);
    }
}

impl State {
    fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(otherwise());
        }
    }

    /// Lanes have no gaps, and no event is recorded twice.
    fn check_log(&mut self, recorded: &RecordedEvent) {
        let head = self.heads.entry(recorded.lane).or_default();
        *head += 1;
        let is_next = recorded.seq.0 == *head;
        self.require(is_next, || format!("commit: lane {} has a gap before {}", recorded.lane, recorded.seq));
        let is_new = self.ids.insert(recorded.id);
        self.require(is_new, || format!("commit: {} {} is recorded twice", recorded.event.event_type(), recorded.id));
    }

    /// Events about a photo form a chain, its versions never go back, and person numbers are never reused.
    fn check_event(&mut self, commit: &Commit, event: &Event) {
        if let (Some(image), Some(photo)) = (event.image(), &commit.photo) {
            let (follows, before) = (event.follows(), photo.before.as_ref().map(|state| state.seq));
            self.require(follows == before, || format!("commit: {image} follows {follows:?} instead of {before:?}"));
        }
        match event {
            Event::PersonsAllocated(event) => {
                for person in event.persons.iter().map(|new| new.person) {
                    let (highest, counter) = (self.highest_number, event.counter);
                    self.require(person.number() > highest, || {
                        format!("commit: {person} is allocated after person{highest} (counter {counter})")
                    });
                    self.highest_number = highest.max(person.number());
                    self.contention.new_persons += 1;
                }
            }
            Event::PhotoProcessed(e) => {
                let serial = self.uploads.get(&e.source.version).copied();
                // What is shown may be decided again after a later version was rejected.
                if serial.is_none() || self.shown.get(&e.image_id).copied() != serial {
                    self.check_version(&e.image_id, &e.source.version);
                }
                self.shown.extend(serial.map(|serial| (e.image_id.clone(), serial)));
            }
            Event::PhotoRejected(e) => self.check_version(&e.image_id, &e.source.version),
            Event::ProfileProcessed(e) => self.check_version(&e.image_id, &e.source.version),
            _ => {}
        }
    }

    fn check_version(&mut self, image: &ImageId, version: &str) {
        let Some(serial) = self.uploads.get(version).copied() else { return };
        let newest =
            *self.newest.entry(image.clone()).and_modify(|newest| *newest = serial.max(*newest)).or_insert(serial);
        self.require(serial == newest, || format!("commit: {image} goes back from upload {newest} to upload {serial}"));
    }

    /// A photo is tagged only with persons that it shows at that moment. A person who is being forgotten may be among them: then the
    /// photo was decided at the same time, and its effects reinstate them.
    fn check_tags(&mut self, commit: &Commit, after: Option<&PhotoState>) {
        let tags = commit.mutations.iter().filter(|mutation| matches!(mutation, Mutation::Set { .. }));
        let tags: Vec<(String, PersonId)> = tags
            .filter_map(|tag| Some((tag.key().pk.clone(), tag.key().sk.strip_prefix("PERSON#")?.parse().ok()?)))
            .collect();
        for (image, person) in tags {
            let is_guarded = commit.photo.as_ref().is_some_and(|photo| photo.image.as_str() == image);
            self.require(is_guarded, || format!("commit: {image} is tagged with {person} without its state"));
            let persons = after.filter(|state| state.status != PhotoStatus::Deleted).map(|state| &state.persons);
            let merges = self.people.merges();
            let is_shown = persons.into_iter().flatten().any(|shown| merges.aliases(*shown).contains(&person));
            self.require(is_shown, || format!("commit: {image} is tagged with {person}, and shows {after:?}"));
        }
    }

    /// Only persons who are known at that moment have a row.
    fn check_person_rows(&mut self, mutations: &[Mutation]) {
        let rows = mutations.iter().filter(|mutation| matches!(mutation, Mutation::Set { .. }));
        let rows = rows.filter(|row| row.key().pk.starts_with("PERSON#"));
        for person in rows.filter_map(|row| row.key().sk.parse::<PersonId>().ok()).collect::<Vec<_>>() {
            let is_known = self.people.get(person).is_some() && !self.people.merges().is_absorbed(person);
            self.require(is_known, || format!("commit: the row of {person} is written, who is forgotten or merged"));
        }
    }

    /// Signatures are stored with the decision about their face, and numbers of faces are never reused.
    fn check_signatures(&mut self, commit: &Commit) {
        for stored in &commit.signatures {
            let photo = commit.photo.as_ref().filter(|photo| photo.image == stored.face.image);
            let numbered = photo.and_then(|photo| photo.before.as_ref()).map_or(0, |state| state.faces);
            self.require(photo.is_some() && stored.face.n >= numbered, || {
                format!("commit: the signature of {} is stored, and {numbered} faces have a number", stored.face)
            });
        }
    }
}
