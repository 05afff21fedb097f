//! The index inside this process: the gallery of everybody the log knows.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use async_trait::async_trait;
use sparks_domain::{
    Event, EventId, FaceId, Gallery, Identity, Merges, People, PersonId, Position, Recorded, Seq, Timestamp,
};

use crate::{
    FaceIndex, Found, IdentityTail, IndexError, Looked, Maintenance, ObjectsError, Reach, Snapshot, Snapshots,
    Standing, Store, StoreError, StoredFace, Templates,
};

/// Everybody known, in memory, complete up to an identity event. It follows the log and is never ahead of it.
pub struct GalleryIndex {
    store: Arc<dyn Store>,
    candidates: usize,
    known: RwLock<Known>,
    following: tokio::sync::Mutex<()>,
    snapshots: Option<Snapshots>,
}

/// What has been learnt.
#[derive(Default)]
pub struct Known {
    /// What everybody looks like.
    pub gallery: Gallery,
    /// Who everybody is.
    pub people: People,
    /// Up to which identity event that is everybody.
    pub identity: Identity,
    /// Who turned out to be whom.
    pub(crate) merges: Arc<Merges>,
    templates: Position,
    /// The faces that everybody is known by.
    names: BTreeSet<FaceId>,
    /// When everybody was met, in the order of the log.
    met: Vec<(Timestamp, PersonId)>,
    /// The last event about persons.
    last: Option<(Seq, EventId)>,
    learnt: u64,
}

impl Known {
    /// Grows with all that may tell who a face is: what somebody looks like, who is one, and who is nobody any more.
    pub fn learnt(&self) -> u64 {
        self.learnt
    }

    /// Whom the log has met since then, or met again.
    pub fn met_since(&self, then: Timestamp) -> impl Iterator<Item = PersonId> {
        let since = self.met.partition_point(|(when, _)| *when < then);
        self.met[since..].iter().map(|(_, person)| *person)
    }

    /// Learns what somebody looks like.
    fn learn(&mut self, StoredFace { face, model, signature, person, .. }: StoredFace) {
        if let Some(person) = person {
            self.gallery.learn(person, &model, &signature);
            self.names.insert(face);
            self.learnt += 1;
        }
    }

    /// Learns who is who.
    fn meet(&mut self, tail: &IdentityTail) {
        for recorded in &tail.events {
            self.people.evolve(&recorded.event, recorded.when);
            // Clocks differ: nobody counts as older than whoever the log met before.
            let when = self.met.last().map_or(recorded.when, |(last, _)| recorded.when.max(*last));
            let met = |person| (when, person);
            match &recorded.event {
                Event::PersonsAllocated(event) => self.met.extend(event.persons.iter().map(|new| met(new.person))),
                Event::PersonReinstated(event) => self.met.push(met(event.person)),
                _ => {}
            }
            self.last = Some((recorded.seq, recorded.id));
        }
        if *self.merges != *self.people.merges() {
            self.merges = Arc::new(self.people.merges().clone());
            self.gallery.follow(&self.merges);
            self.learnt += 1;
        }
        self.identity = Identity { seq: tail.seq, counter: tail.counter, ..Identity::default() };
    }
}

/// Templates are learnt this many at a time.
const BATCH: usize = 8192;

impl GalleryIndex {
    /// The index of everybody this store knows by now, answering with so many candidates a face.
    pub async fn load(store: Arc<dyn Store>, candidates: usize) -> Result<Self, StoreError> {
        let (known, following) = (RwLock::default(), tokio::sync::Mutex::default());
        let index = Self { store, candidates, known, following, snapshots: None };
        index.follow().await?;
        Ok(index)
    }

    /// The same index, from the last snapshot on where there is one of this log.
    pub async fn resume(
        store: Arc<dyn Maintenance>,
        candidates: usize,
        snapshots: Snapshots,
    ) -> Result<Self, StoreError> {
        let (known, following) = (RwLock::default(), tokio::sync::Mutex::default());
        let snapshot = snapshots.read().await;
        let (tail, heads) = (store.identity(Seq(0)).await?, store.heads().await?);
        let index = Self { store, candidates, known, following, snapshots: Some(snapshots) };
        if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.is_about(&tail.events, &heads)) {
            index.recall(&snapshot).await?;
            index.write().meet(&tail);
        }
        index.follow().await?;
        Ok(index)
    }

    /// Learns what is still kept of the faces of a snapshot.
    async fn recall(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        for faces in snapshot.templates().chunks(BATCH) {
            let kept = self.store.signatures(faces).await?;
            let mut known = self.write();
            kept.into_iter().filter(|kept| kept.template).for_each(|kept| known.learn(kept));
        }
        self.write().templates = snapshot.position();
        Ok(())
    }

    /// Keeps a snapshot of what is known, if that saves whoever starts next much reading; when this process `ends`, if it
    /// saves any.
    pub async fn keep_snapshot(&self, ends: bool) -> Result<(), ObjectsError> {
        let Some(snapshots) = &self.snapshots else { return Ok(()) };
        let snapshot = {
            let known = self.known();
            let is_due = match ends {
                true => !snapshots.is_current(&known.templates),
                false => snapshots.is_worth_writing(&known.templates, known.names.len()),
            };
            let last = known.last.filter(|_| is_due);
            last.map(|last| Snapshot::new(&known.templates, last, known.names.iter().cloned().collect()))
        };
        match snapshot {
            Some(snapshot) => snapshots.write(&snapshot).await,
            None => Ok(()),
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been learnt so far.
    pub fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns all that has been committed since the last time.
    pub async fn follow(&self) -> Result<(), StoreError> {
        self.learn(Reach::Everything).await
    }

    /// Learns what has been committed since the last time: who is who, then what they look like, so that whoever is known
    /// is also recognised. One at a time: two would teach the same template twice.
    async fn learn(&self, reach: Reach) -> Result<(), StoreError> {
        let _alone = self.following.lock().await;
        let (identity, mut templates) = {
            let known = self.known();
            (known.identity.seq, known.templates.clone())
        };
        let tail = self.store.identity(identity).await?;
        let anew = self.forget(&tail.events, &templates).await?;
        loop {
            let Templates { faces, read } = self.store.templates(&templates, reach, BATCH).await?;
            if read == templates {
                break;
            }
            let mut known = self.write();
            faces.into_iter().filter(|kept| !anew.contains(&kept.face)).for_each(|kept| known.learn(kept));
            known.templates.clone_from(&read);
            templates = read;
        }
        self.write().meet(&tail);
        Ok(())
    }
}

impl GalleryIndex {
    /// Forgets those who were forgotten, and learns what they are known by since: a photo of them may have come before the
    /// event was read. Says which faces that were.
    async fn forget(&self, events: &[Recorded], read: &Position) -> Result<BTreeSet<FaceId>, StoreError> {
        let forgotten = events.iter().filter_map(|recorded| match &recorded.event {
            Event::PersonsForgotten(event) => Some(&event.persons),
            _ => None,
        });
        let forgotten: Vec<PersonId> = forgotten.flatten().copied().collect();
        // Whoever has learnt nothing yet reads all that is kept.
        if forgotten.is_empty() || *read == Position::default() {
            return Ok(BTreeSet::new());
        }
        let kept = self.store.faces_of(&forgotten).await?.into_iter().map(|decided| decided.kept);
        let mut known = self.write();
        forgotten.iter().for_each(|person| known.gallery.forget(*person));
        known.learnt += 1;
        let kept: Vec<StoredFace> = kept.filter(|kept| kept.template && kept.person.is_some()).collect();
        let anew = kept.iter().map(|kept| kept.face.clone()).collect();
        kept.into_iter().for_each(|kept| known.learn(kept));
        Ok(anew)
    }
}

#[async_trait]
impl FaceIndex for GalleryIndex {
    async fn search(&self, looked: &Looked) -> Result<Found, IndexError> {
        let known = self.known();
        let search = known.gallery.search(&looked.faces, self.candidates, known.people.len());
        Ok(Found { search, identity: known.identity.clone() })
    }

    async fn refresh(&self) -> Result<(), IndexError> {
        Ok(self.learn(Reach::Persons).await?)
    }

    fn merges(&self) -> Arc<Merges> {
        Arc::clone(&self.known().merges)
    }

    fn standing(&self, person: PersonId) -> Standing {
        let known = self.known();
        match (known.people.get(person), known.people.remembered(person)) {
            _ if known.merges.is_absorbed(person) => Standing::Unknown,
            (Some(person), _) => Standing::Known(person),
            (None, Some(person)) => Standing::Forgotten(person),
            (None, None) => Standing::Unknown,
        }
    }

    fn identity(&self) -> Identity {
        self.known().identity.clone()
    }
}
