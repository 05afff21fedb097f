//! Who is who: joining persons, taking that back, and looking again at faces that nobody knew.

use std::{collections::BTreeSet, sync::Arc};

use sparks_domain::{
    Consolidation, Email, Event, EventId, Evidence, FaceId, Grounds, Identity, ImageId, Join, Key, MergeUndone, Merges,
    Mutation, People, PersonId, PersonRenamed, PersonsMerged, Policy, Projection, Recorded, Review, Scale, Seq,
    Version, consolidate, review,
};

use crate::{
    Clock, Commit, CommitError, Content, DecidedFace, Filter, GalleryIndex, IndexError, Maintenance, Objects,
    ObjectsError, PhotoGuard, PutMode, Query, StoreError, shown::Shown,
};

/// Keeps track of who is who. Every change is an event; photos follow it in steps that may be interrupted and gone on with.
pub struct Register {
    store: Arc<dyn Maintenance>,
    objects: Arc<dyn Objects>,
    index: Arc<GalleryIndex>,
    clock: Arc<dyn Clock>,
    rules: Rules,
}

/// What the operator has settled.
#[derive(Debug, Clone)]
pub struct Rules {
    /// When a face is somebody.
    pub policy: Policy,
    /// How to read the similarities of each model; those of a model without a scale are left alone.
    pub scale: fn(&str) -> Option<Scale>,
    /// How events become rows.
    pub projection: Projection,
    /// Who the log says decided.
    pub actor: String,
}

/// A join that was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The event's name: what to undo.
    pub event: EventId,
    /// Who both are from now on.
    pub into: PersonId,
    /// Who is nobody of their own any more.
    pub from: PersonId,
    /// What spoke for it, unless a human did.
    pub evidence: Option<Evidence>,
}

/// What followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Followed {
    /// Changes of who is who that photos had not followed yet.
    pub changes: usize,
    /// Photos whose rows were written again.
    pub photos: usize,
}

/// Why nobody is somebody else.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Nobody has this number.
    #[error("there is no {0}: see `sparks query persons`")]
    Unknown(PersonId),
    /// Two names for one.
    #[error("{0} is {1} already")]
    Already(PersonId, PersonId),
    /// Two faces in one photo are two persons.
    #[error("{0} and {1} are seen in one photo, as different faces: join them all the same with --force")]
    SeenTogether(PersonId, PersonId),
    /// No such event.
    #[error("event {0} is not a merge: see `sparks persons merges`")]
    NotAMerge(EventId),
    /// Somebody else is faster each time.
    #[error("persons keep changing: try again")]
    Contended,
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The commit was refused.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The bucket did not answer.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

const ATTEMPTS: usize = 16;
const PAGE: usize = 256;
const MOST_CROP_BYTES: u64 = 16 << 20;

impl Register {
    /// Keeps this store's register.
    pub fn new(
        store: Arc<dyn Maintenance>,
        objects: Arc<dyn Objects>,
        index: Arc<GalleryIndex>,
        clock: Arc<dyn Clock>,
        rules: Rules,
    ) -> Self {
        Self { store, objects, index, clock, rules }
    }

    /// What the faces known so far say about who is who. With `fresh`, only about these persons.
    pub async fn consider(&self, fresh: Option<&BTreeSet<PersonId>>) -> Result<Consolidation, RegisterError> {
        self.index.follow().await?;
        let company = self.store.company().await?;
        let known = self.index.known();
        let merges = known.people.merges();
        let apart = company.into_iter().map(|(a, b)| (merges.now(a), merges.now(b))).chain(merges.parted());
        let apart: BTreeSet<_> = apart.filter(|(a, b)| a != b).collect();
        let fresh = fresh.map(|fresh| fresh.iter().map(|person| merges.now(*person)).collect());
        let mut all = Consolidation::default();
        for model in known.gallery.models() {
            if let Some(scale) = (self.rules.scale)(model) {
                let found = consolidate(&known.gallery, model, scale, &apart, fresh.as_ref());
                all.joins.extend(found.joins);
                all.suggestions.extend(found.suggestions);
            }
        }
        Ok(all)
    }

    /// Joins whoever is one by strong evidence.
    pub async fn consolidate(&self, fresh: Option<&BTreeSet<PersonId>>) -> Result<Vec<Merged>, RegisterError> {
        let mut merged = Vec::new();
        for Join { into, from, evidence } in self.consider(fresh).await?.joins {
            match self.merge(into, from, Grounds::Alike(evidence)).await {
                Ok(join) => merged.push(join),
                // Somebody else said something about them meanwhile.
                Err(RegisterError::Already(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(merged)
    }

    /// Joins two persons because a human says so. The one with the lower number stays.
    pub async fn join(&self, a: PersonId, b: PersonId, force: bool) -> Result<Merged, RegisterError> {
        self.index.follow().await?;
        let merges = self.index.known().people.merges().clone();
        let (a, b) = (merges.now(a).min(merges.now(b)), merges.now(a).max(merges.now(b)));
        let together = |(x, y): &(PersonId, PersonId)| {
            let pair = (merges.now(*x).min(merges.now(*y)), merges.now(*x).max(merges.now(*y)));
            pair == (a, b)
        };
        if !force && self.store.company().await?.iter().any(together) {
            return Err(RegisterError::SeenTogether(a, b));
        }
        self.merge(a, b, Grounds::Told).await
    }

    async fn merge(&self, into: PersonId, from: PersonId, grounds: Grounds) -> Result<Merged, RegisterError> {
        let evidence = match grounds {
            Grounds::Alike(evidence) => Some(evidence),
            Grounds::Told => None,
        };
        for _ in 0..ATTEMPTS {
            self.index.follow().await?;
            let (people, identity) = self.known();
            for person in [into, from] {
                people.get(person).ok_or(RegisterError::Unknown(person))?;
            }
            let now = [into, from].map(|person| people.merges().now(person));
            if now != [into, from] || into == from {
                return Err(RegisterError::Already(from, now[1]));
            }
            if self.adopt_names(&people, &[into, from]).await? {
                continue;
            }
            let merge = PersonsMerged {
                v: Version,
                into,
                from,
                identity_seq: identity.seq,
                grounds: grounds.clone(),
                row: self.store.get(&Key::person(from)).await?.map(|item| item.attributes).unwrap_or_default(),
                users: self.users_who_are(from).await?,
            };
            let event = Event::PersonsMerged(merge.clone());
            let event_id = event.id();
            let after = with(&people, &event, self.clock.as_ref());
            let mutations = self.rules.projection.merged(&merge, &after);
            if self.commit(event, identity, mutations).await? {
                return Ok(Merged { event: event_id, into, from, evidence });
            }
        }
        Err(RegisterError::Contended)
    }

    /// Takes a merge back, exactly: rows, users and crop are what they were. Says who is a person of their own again.
    pub async fn undo(&self, merge: EventId) -> Result<PersonId, RegisterError> {
        for _ in 0..ATTEMPTS {
            self.index.follow().await?;
            let (people, identity) = self.known();
            let merged = self.merge_event(merge).await?;
            if people.merges().get(merge).is_none() {
                return Ok(merged.from); // taken back before; photos may still have to follow
            }
            if self.adopt_names(&people, &[merged.into]).await? {
                continue;
            }
            let users = self.users_who_are(merged.into).await?;
            let users: Vec<Email> = users.into_iter().filter(|user| merged.users.contains(user)).collect();
            let (into, from, identity_seq) = (merged.into, merged.from, identity.seq);
            let event = Event::MergeUndone(MergeUndone { v: Version, merge, into, from, identity_seq });
            let after = with(&people, &event, self.clock.as_ref());
            let mutations = self.rules.projection.unmerged(&merged, &users, &after);
            if self.commit(event, identity, mutations).await? {
                return Ok(from);
            }
        }
        Err(RegisterError::Contended)
    }

    /// Lets photos, crops and templates follow what was decided about persons. Safe to interrupt and to repeat; whoever
    /// comes next goes on.
    pub async fn follow(&self, progress: impl Fn(usize)) -> Result<Followed, RegisterError> {
        self.index.follow().await?;
        let tail = self.store.identity(self.store.followed().await?).await?;
        let merges = self.index.known().people.merges().clone();
        let mut followed = Followed::default();
        for Recorded { event, .. } in &tail.events {
            let (person, from) = match event {
                Event::PersonsMerged(e) => (e.from, e.from),
                Event::MergeUndone(e) => (e.into, e.from),
                _ => continue,
            };
            followed.changes += 1;
            self.move_crop(from, merges.is_absorbed(from)).await?;
            self.photos_follow(person, &merges, &mut followed, &progress).await?;
        }
        self.store.set_followed(tail.seq).await?;
        Ok(followed)
    }

    async fn photos_follow(
        &self,
        person: PersonId,
        merges: &Merges,
        followed: &mut Followed,
        progress: &impl Fn(usize),
    ) -> Result<(), RegisterError> {
        let filter = Filter::EntityType(format!("TAGGING#{person}"));
        let mut query = Query { filter, after: None, limit: PAGE, backwards: false };
        loop {
            let page = self.store.query(&query).await?;
            for item in page.items {
                if let Ok(image) = item.key.pk.parse::<ImageId>() {
                    self.shown().reassert(&image, merges).await?;
                    followed.photos += 1;
                    progress(followed.photos);
                }
            }
            match page.last {
                Some(last) => query.after = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// Whoever is somebody else is not shown, and their crop is kept where it can be taken back from.
    async fn move_crop(&self, person: PersonId, away: bool) -> Result<(), RegisterError> {
        let (shown, kept) = (Projection::crop_key(person), format!("merged/{person}.jpg"));
        let (from, to) = if away { (shown, kept) } else { (kept, shown) };
        match self.objects.get(&from, MOST_CROP_BYTES).await {
            Ok(crop) => {
                self.objects.put(&to, crop.bytes, Content::picture("image/jpeg"), PutMode::Replace).await?;
                self.objects.delete(&from).await?;
                Ok(())
            }
            Err(ObjectsError::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks again at the faces that nobody knew. Says how many are somebody now.
    pub async fn review(&self) -> Result<usize, RegisterError> {
        self.index.follow().await?;
        let (mut identified, mut after) = (0, None);
        loop {
            let page = self.store.unidentified(after.as_ref(), PAGE).await?;
            let Some(last) = page.last().map(|decided| decided.kept.face.clone()) else { return Ok(identified) };
            for photo in page.chunk_by(|a, b| a.kept.face.image == b.kept.face.image) {
                identified += self.review_photo(photo).await?;
            }
            after = Some(last);
        }
    }

    async fn review_photo(&self, faces: &[DecidedFace]) -> Result<usize, RegisterError> {
        let Some(image_id) = faces.first().map(|decided| decided.kept.face.image.clone()) else { return Ok(0) };
        let Some(shown) = self.shown().photo(&image_id).await? else { return Ok(0) };
        let (photo, merges, policy) = {
            let known = self.index.known();
            let merges = known.people.merges();
            // Two faces of one photo are two persons.
            let present = merges.all_now(&shown.state.persons);
            let nearest = |decided: &DecidedFace| {
                let kept = &decided.kept;
                let most = self.rules.policy.candidates.max(2) + present.len();
                let mut candidates = known.gallery.nearest(&kept.model, &kept.signature, most);
                candidates.retain(|candidate| !present.contains(&candidate.person));
                (kept.face.n, candidates)
            };
            let current = faces.iter().filter(|decided| Some(decided.seq) == shown.state.shows);
            let photo = Review {
                image_id: image_id.clone(),
                follows: shown.state.seq,
                identity_seq: known.identity.seq,
                faces: current.map(nearest).collect(),
                persons: known.people.len(),
            };
            (photo, merges.clone(), &self.rules.policy)
        };
        let Some(event) = review(photo, policy) else { return Ok(0) };
        let Event::FacesReviewed(reviewed) = &event else { return Ok(0) };
        let persons: Vec<PersonId> = shown.state.persons.iter().copied().chain(reviewed.persons()).collect();
        let identified = reviewed
            .faces
            .iter()
            .filter_map(|face| Some((FaceId { image: image_id.clone(), n: face.n }, face.verdict.person()?)));
        let commit = Commit {
            actor: self.rules.actor.clone(),
            identified: identified.collect(),
            mutations: self.rules.projection.photo(&shown.event, shown.when, &persons, &[], &merges),
            events: vec![event],
            ..Commit::without_events(self.clock.now(), Some(PhotoGuard { image: image_id, before: Some(shown.state) }))
        };
        match self.store.commit(&commit).await {
            Ok(_) => Ok(commit.identified.len()),
            // Somebody was faster, or the platform removed the photo: another time, or never.
            Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Names that somebody else gave are theirs to give: they become events before anything is done with the rows.
    async fn adopt_names(&self, people: &People, persons: &[PersonId]) -> Result<bool, RegisterError> {
        let mut adopted = false;
        for person in persons {
            let Some(row) = self.store.get(&Key::person(*person)).await? else { continue };
            let (Some(name), Some(known)) = (row.text("displayName"), people.get(*person)) else { continue };
            if name != known.display_name {
                let tail = self.store.identity(Seq(u64::MAX >> 1)).await?;
                let identity = Identity { seq: tail.seq, counter: tail.counter, ..Identity::default() };
                let (from, to) = (known.display_name, name.to_owned());
                let renamed = PersonRenamed { v: Version, person: *person, identity_seq: tail.seq, from, to };
                self.commit(Event::PersonRenamed(renamed), identity, Vec::new()).await?;
                adopted = true;
            }
        }
        Ok(adopted)
    }

    async fn users_who_are(&self, person: PersonId) -> Result<Vec<Email>, RegisterError> {
        let mut query = Query { filter: Filter::EntityType("USER".into()), after: None, limit: PAGE, backwards: false };
        let mut users = Vec::new();
        loop {
            let page = self.store.query(&query).await?;
            let theirs = page.items.iter().filter(|item| item.text("personId") == Some(&person.to_string()));
            users.extend(theirs.filter_map(|item| item.key.pk.parse::<Email>().ok()));
            match page.last {
                Some(last) => query.after = Some(last),
                None => return Ok(users),
            }
        }
    }

    async fn merge_event(&self, id: EventId) -> Result<PersonsMerged, RegisterError> {
        let events = self.store.identity(Seq(0)).await?.events;
        let merge = events.into_iter().find(|recorded| recorded.id == id).map(|recorded| recorded.event);
        match merge {
            Some(Event::PersonsMerged(merge)) => Ok(merge),
            _ => Err(RegisterError::NotAMerge(id)),
        }
    }

    /// Records a change of who is who; false where somebody else was faster.
    async fn commit(&self, event: Event, identity: Identity, mutations: Vec<Mutation>) -> Result<bool, RegisterError> {
        let commit = Commit {
            identity: Some(identity),
            actor: self.rules.actor.clone(),
            events: vec![event],
            mutations,
            ..Commit::without_events(self.clock.now(), None)
        };
        match self.store.commit(&commit).await {
            Ok(_) => Ok(true),
            Err(CommitError::IdentityMoved) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn known(&self) -> (People, Identity) {
        let known = self.index.known();
        (known.people.clone(), known.identity.clone())
    }

    fn shown(&self) -> Shown<'_> {
        Shown { store: self.store.as_ref(), projection: self.rules.projection }
    }
}

/// The people after one more event.
fn with(people: &People, event: &Event, clock: &dyn Clock) -> People {
    let mut people = people.clone();
    people.evolve(event, clock.now());
    people
}

impl From<IndexError> for RegisterError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => Self::Store(error),
            IndexError::Unavailable(reason) => Self::Store(StoreError::Unavailable(reason)),
        }
    }
}
