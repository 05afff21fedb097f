//! Merging two persons, and undoing a merge.

use std::collections::BTreeSet;

use sparks_domain::{
    Email, Event, EventId, IdentityHead, ImageId, Key, MergeReason, MergeUndone, Mutation, PersonId, PersonRegistry,
    PersonRenamed, PersonsMerged, Presence, Projection, ProjectionContext, Seq, UndoneMerge, Version,
};

use super::{Consolidator, MergeError};
use crate::{Clock, Commit, CommitError, users::users_of_person};

const ATTEMPTS: usize = 16;

/// A recorded merge.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeSummary {
    /// The event, which identifies the merge for an unmerge.
    pub event: EventId,
    /// The person that remains.
    pub into: PersonId,
    /// The person that is merged into it.
    pub from: PersonId,
    /// Why they are merged.
    pub reason: MergeReason,
}

impl Consolidator {
    /// Merges two persons at an operator's request. The one with the lower number remains. Without `force`, persons seen together
    /// in a photo are not merged.
    pub async fn merge(&self, a: PersonId, b: PersonId, force: bool) -> Result<MergeSummary, MergeError> {
        self.index.catch_up().await?;
        let merges = self.index.state().people.merges().clone();
        let is_known = |person| self.index.state().people.get(person).is_some();
        let pair = |x, y| (merges.current(x).min(merges.current(y)), merges.current(x).max(merges.current(y)));
        let (into, from) = pair(a, b);
        if into == from && is_known(a) && is_known(b) {
            return Err(MergeError::AlreadyMerged(a.max(b), into));
        }
        let co_occurrences = self.store.co_occurrences(Some(&merges.members(from))).await?;
        if !force && co_occurrences.iter().any(|(x, y)| pair(*x, *y) == (into, from)) {
            return Err(MergeError::SeenTogether(into, from));
        }
        self.commit_merge(into, from, MergeReason::Requested).await
    }

    /// Records the merge of `from` into `into`, with a retry after each conflict.
    pub(super) async fn commit_merge(
        &self,
        into: PersonId,
        from: PersonId,
        reason: MergeReason,
    ) -> Result<MergeSummary, MergeError> {
        let mut drifted = DriftedRows::default();
        for _ in 0..ATTEMPTS {
            self.index.catch_up().await?;
            let (people, identity) = self.people_and_identity();
            for person in [into, from] {
                people.get(person).ok_or(MergeError::Unknown(person))?;
            }
            let current = [into, from].map(|person| people.merges().current(person));
            if current != [into, from] || into == from {
                return Err(MergeError::AlreadyMerged(from, current[1]));
            }
            if self.adopt_names(&people, &[into, from]).await? {
                continue;
            }
            let merge = PersonsMerged {
                v: Version,
                into,
                from,
                identity_seq: identity.seq,
                grounds: reason.clone(),
                row: self.store.get(&Key::person(from)).await?.map(|item| item.attributes).unwrap_or_default(),
                users: users_of_person(self.store.as_ref(), from).await?,
            };
            let event = Event::PersonsMerged(merge);
            let event_id = event.id();
            let after = people_after(&people, &event, self.clock.as_ref());
            let context =
                ProjectionContext { persons: Some(&after), ..ProjectionContext::new(self.clock.now(), after.merges()) };
            let mutations = drifted.adapt(self.config.projection.project(&event, &context), &after);
            if self.commit(event, identity, mutations, &mut drifted).await? {
                return Ok(MergeSummary { event: event_id, into, from, reason });
            }
        }
        Err(MergeError::Conflict)
    }

    /// Undoes a merge exactly: rows, users and crop are restored. Returns the person that exists again.
    pub async fn unmerge(&self, merge: EventId) -> Result<PersonId, MergeError> {
        let mut drifted = DriftedRows::default();
        for _ in 0..ATTEMPTS {
            self.index.catch_up().await?;
            let (people, identity) = self.people_and_identity();
            let merged = self.merge_event(merge).await?;
            if people.merges().get(merge).is_none() {
                return Ok(merged.from); // undone before; the rows of photos may still have to be updated
            }
            let survivor = people.merges().current(merged.into); // may have been merged further since
            if self.adopt_names(&people, &[survivor]).await? {
                continue;
            }
            let (into, from, identity_seq) = (merged.into, merged.from, identity.seq);
            let event = Event::MergeUndone(MergeUndone { v: Version, merge, into, from, identity_seq });
            let after = people_after(&people, &event, self.clock.as_ref());
            let users = self.users_to_restore(&merged, survivor, &after).await?;
            let context = ProjectionContext {
                persons: Some(&after),
                undone: Some(UndoneMerge { merge: &merged, users: &users }),
                ..ProjectionContext::new(self.clock.now(), after.merges())
            };
            let mutations = drifted.adapt(self.config.projection.project(&event, &context), &after);
            if self.commit(event, identity, mutations, &mut drifted).await? {
                return Ok(from);
            }
        }
        Err(MergeError::Conflict)
    }

    /// Returns the users that become `from` again: those whose profile picture shows `from`, and those without a profile picture that
    /// were linked to `from`.
    async fn users_to_restore(
        &self,
        merged: &PersonsMerged,
        survivor: PersonId,
        after: &PersonRegistry,
    ) -> Result<Vec<Email>, MergeError> {
        let mut restored = Vec::new();
        for user in users_of_person(self.store.as_ref(), survivor).await? {
            let profile = self.store.photo(&ImageId::of_profile(&user)).await?;
            let persons = profile.map(|state| after.merges().all_current(&state.persons)).unwrap_or_default();
            let was_linked = persons.is_empty() && merged.users.contains(&user);
            restored.extend((was_linked || persons == [merged.from]).then_some(user));
        }
        Ok(restored)
    }

    /// Records display names that were changed in the table as events, before the rows are changed: the platform owns names.
    /// Returns whether there were any.
    async fn adopt_names(&self, people: &PersonRegistry, persons: &[PersonId]) -> Result<bool, MergeError> {
        let mut has_adopted = false;
        for person in persons {
            let Some(row) = self.store.get(&Key::person(*person)).await? else { continue };
            let (Some(name), Some(known)) = (row.text("displayName"), people.get(*person)) else { continue };
            if name != known.display_name {
                let tail = self.store.identity(Seq(u64::MAX >> 1)).await?;
                let identity = IdentityHead { seq: tail.seq, counter: tail.counter, ..IdentityHead::default() };
                let (from, to) = (known.display_name, name.to_owned());
                let renamed = PersonRenamed { v: Version, person: *person, identity_seq: tail.seq, from, to };
                let event = Event::PersonRenamed(renamed);
                self.commit(event, identity, Vec::new(), &mut DriftedRows::default()).await?;
                has_adopted = true;
            }
        }
        Ok(has_adopted)
    }

    async fn merge_event(&self, id: EventId) -> Result<PersonsMerged, MergeError> {
        let events = self.store.identity(Seq(0)).await?.events;
        let merge = events.into_iter().find(|recorded| recorded.id == id).map(|recorded| recorded.event);
        match merge {
            Some(Event::PersonsMerged(merge)) => Ok(merge),
            _ => Err(MergeError::NotAMerge(id)),
        }
    }

    /// Commits an identity event. Returns `false` after a conflict, and notes in `drifted` a row that was the reason.
    async fn commit(
        &self,
        event: Event,
        identity: IdentityHead,
        mutations: Vec<Mutation>,
        drifted: &mut DriftedRows,
    ) -> Result<bool, MergeError> {
        let commit = Commit {
            identity: Some(identity),
            actor: self.config.actor.clone(),
            events: vec![event],
            mutations,
            ..Commit::without_events(self.clock.now(), None)
        };
        match self.store.commit(&commit).await {
            Ok(recorded) => {
                self.publish(&recorded).await;
                Ok(true)
            }
            Err(CommitError::IdentityMoved) => Ok(false),
            Err(CommitError::RowMissing(key)) => {
                drifted.missing.insert(key);
                Ok(false)
            }
            Err(CommitError::NumberTaken(person)) => {
                drifted.existing.insert(Key::person(person));
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Rows that are not as the event log implies. They do not prevent a merge, which the log alone decides.
#[derive(Debug, Default)]
struct DriftedRows {
    /// Rows that should exist and do not.
    missing: BTreeSet<Key>,
    /// PERSON rows that should not exist and do.
    existing: BTreeSet<Key>,
}

impl DriftedRows {
    /// Returns mutations that succeed nevertheless: the missing row of a person is restored, and a missing row of the platform is
    /// left alone.
    fn adapt(&self, mutations: Vec<Mutation>, people: &PersonRegistry) -> Vec<Mutation> {
        let adapt = |mutation: Mutation| match mutation {
            mutation if self.missing.contains(mutation.key()) => {
                let person = mutation.key().sk.parse::<PersonId>().ok()?;
                Some(Projection::restored_person_row(person, &people.get(person)?))
            }
            Mutation::Set { key, attributes, at_least, .. } if self.existing.contains(&key) => {
                Some(Mutation::Set { key, presence: Presence::Any, attributes, at_least })
            }
            mutation => Some(mutation),
        };
        mutations.into_iter().filter_map(adapt).collect()
    }
}

/// Returns the persons after this event.
fn people_after(people: &PersonRegistry, event: &Event, clock: &dyn Clock) -> PersonRegistry {
    let mut people = people.clone();
    people.evolve(event, clock.now());
    people
}
