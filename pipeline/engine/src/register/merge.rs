//! Two persons that are one, and two that are not.

use sparks_domain::{
    Email, Event, EventId, Grounds, Identity, ImageId, Key, MergeUndone, Mutation, People, PersonId, PersonRenamed,
    PersonsMerged, Seq, Version,
};

use super::{Register, RegisterError};
use crate::{Clock, Commit, CommitError, users::users_who_are};

const ATTEMPTS: usize = 16;

/// A join that was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The event's name: what to undo.
    pub event: EventId,
    /// Who both are from now on.
    pub into: PersonId,
    /// Who is nobody of their own any more.
    pub from: PersonId,
    /// Why.
    pub grounds: Grounds,
}

impl Register {
    /// Joins two persons because a human says so. The one with the lower number stays.
    pub async fn join(&self, a: PersonId, b: PersonId, force: bool) -> Result<Merged, RegisterError> {
        self.index.follow().await?;
        let merges = self.index.known().people.merges().clone();
        let known = |person| self.index.known().people.get(person).is_some();
        let pair = |x, y| (merges.now(x).min(merges.now(y)), merges.now(x).max(merges.now(y)));
        let (into, from) = pair(a, b);
        if into == from && known(a) && known(b) {
            return Err(RegisterError::Already(a.max(b), into));
        }
        let company = self.store.company(Some(&merges.members(from))).await?;
        if !force && company.iter().any(|(x, y)| pair(*x, *y) == (into, from)) {
            return Err(RegisterError::SeenTogether(into, from));
        }
        self.merge(into, from, Grounds::Told).await
    }

    pub(super) async fn merge(
        &self,
        into: PersonId,
        from: PersonId,
        grounds: Grounds,
    ) -> Result<Merged, RegisterError> {
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
                users: users_who_are(self.store.as_ref(), from).await?,
            };
            let event = Event::PersonsMerged(merge.clone());
            let event_id = event.id();
            let after = with(&people, &event, self.clock.as_ref());
            let mutations = self.rules.projection.merged(&merge, &after);
            if self.commit(event, identity, mutations).await? {
                return Ok(Merged { event: event_id, into, from, grounds });
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
            let shown = people.merges().now(merged.into); // may be somebody else since
            if self.adopt_names(&people, &[shown]).await? {
                continue;
            }
            let (into, from, identity_seq) = (merged.into, merged.from, identity.seq);
            let event = Event::MergeUndone(MergeUndone { v: Version, merge, into, from, identity_seq });
            let after = with(&people, &event, self.clock.as_ref());
            let users = self.users_to_part(&merged, shown, &after).await?;
            let mutations = self.rules.projection.unmerged(&merged, &users, &after);
            if self.commit(event, identity, mutations).await? {
                return Ok(from);
            }
        }
        Err(RegisterError::Contended)
    }

    /// The users who were `from` and are so again: not those whose picture of themselves says otherwise since.
    async fn users_to_part(
        &self,
        merged: &PersonsMerged,
        shown: PersonId,
        after: &People,
    ) -> Result<Vec<Email>, RegisterError> {
        let mut users = users_who_are(self.store.as_ref(), shown).await?;
        users.retain(|user| merged.users.contains(user));
        let mut parted = Vec::with_capacity(users.len());
        for user in users {
            let picture = self.store.photo(&ImageId::of_profile(&user)).await?;
            let persons = picture.map(|state| after.merges().all_now(&state.persons)).unwrap_or_default();
            parted.extend((persons.is_empty() || persons == [merged.from]).then_some(user));
        }
        Ok(parted)
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
            Ok(recorded) => {
                self.announce(&recorded).await;
                Ok(true)
            }
            Err(CommitError::IdentityMoved) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The people after one more event.
fn with(people: &People, event: &Event, clock: &dyn Clock) -> People {
    let mut people = people.clone();
    people.evolve(event, clock.now());
    people
}
