//! Rows that the events of the identity lane change: PERSON, USER and the counter.

use serde_json::json;

use super::{Projection, ProjectionContext, UndoneMerge, attributes, set};
use crate::{
    Attributes, Email, Key, LevelRaised, MergeUndone, Mutation, NumbersReserved, Person, PersonAdopted, PersonId,
    PersonPictured, PersonReinstated, PersonRenamed, PersonsAllocated, PersonsForgotten, PersonsMerged, Presence,
    object_keys,
};

/// A PERSON row for each new person, and the counter.
pub(crate) fn persons_allocated(
    _: Projection,
    event: &PersonsAllocated,
    context: &ProjectionContext<'_>,
) -> Vec<Mutation> {
    let mut allocations: Vec<_> = event.persons.iter().collect();
    allocations.sort_by_key(|allocation| allocation.person);
    let highest = allocations.last().map_or(0, |allocation| allocation.person.number());
    let rows = allocations.into_iter().map(|allocation| {
        let person = Person::unnamed(allocation.person, context.when, allocation.face.clone());
        Projection::person_row(allocation.person, &person)
    });
    rows.chain([counter(highest)]).collect()
}

/// The display name in the PERSON row.
pub(crate) fn person_renamed(_: Projection, event: &PersonRenamed, _: &ProjectionContext<'_>) -> Vec<Mutation> {
    vec![display_name(event.person, &event.to)]
}

/// The PERSON and USER rows. Photos follow one by one, each in a commit of its own.
pub(crate) fn persons_merged(_: Projection, event: &PersonsMerged, context: &ProjectionContext<'_>) -> Vec<Mutation> {
    let removed = Mutation::Delete { key: Key::person(event.from) };
    let survivor = context.persons.and_then(|persons| persons.get(event.into));
    let name = survivor.map(|person| display_name(event.into, &person.display_name));
    let users = event.users.iter().map(|email| user(email, event.into));
    [removed].into_iter().chain(name).chain(users).collect()
}

/// The PERSON and USER rows as they were before the merge.
pub(crate) fn merge_undone(_: Projection, _: &MergeUndone, context: &ProjectionContext<'_>) -> Vec<Mutation> {
    let (Some(UndoneMerge { merge, users }), Some(persons)) = (context.undone, context.persons) else {
        return Vec::new();
    };
    let into = persons.merges().current(merge.into); // may have been merged further since
    let name = persons.get(into).map(|person| display_name(into, &person.display_name));
    let restored = persons.get(merge.from).map(|person| Projection::person_row(merge.from, &person));
    let restored = restored.map(|row| match row {
        Mutation::Set { key, presence, attributes, at_least } => {
            let attributes = merge.row.clone().into_iter().chain(attributes).collect();
            Mutation::Set { key, presence, attributes, at_least }
        }
        other => other,
    });
    let users = users.iter().map(|email| user(email, merge.from));
    restored.into_iter().chain(name).chain(users).collect()
}

/// The PERSON rows are removed.
pub(crate) fn persons_forgotten(_: Projection, event: &PersonsForgotten, _: &ProjectionContext<'_>) -> Vec<Mutation> {
    event.persons.iter().map(|person| Mutation::Delete { key: Key::person(*person) }).collect()
}

/// The PERSON row, as it was before the person was forgotten.
pub(crate) fn person_reinstated(
    _: Projection,
    event: &PersonReinstated,
    context: &ProjectionContext<'_>,
) -> Vec<Mutation> {
    context.reinstated.map(|person| Projection::restored_person_row(event.person, person)).into_iter().collect()
}

/// None: the crop's key stays the same.
pub(crate) fn person_pictured(_: Projection, _: &PersonPictured, _: &ProjectionContext<'_>) -> Vec<Mutation> {
    Vec::new()
}

/// The counter.
pub(crate) fn numbers_reserved(_: Projection, event: &NumbersReserved, _: &ProjectionContext<'_>) -> Vec<Mutation> {
    vec![counter(event.up_to)]
}

/// The PERSON row, which a previous worker wrote.
pub(crate) fn person_adopted(_: Projection, event: &PersonAdopted, _: &ProjectionContext<'_>) -> Vec<Mutation> {
    vec![person(event.person, &Person::from(event), Presence::Required)]
}

/// None.
pub(crate) fn level_raised(_: Projection, _: &LevelRaised, _: &ProjectionContext<'_>) -> Vec<Mutation> {
    Vec::new()
}

pub(super) fn person(id: PersonId, person: &Person, presence: Presence) -> Mutation {
    Mutation::Set {
        key: Key::person(id),
        presence,
        attributes: attributes(json!({
            "entityType": "PERSON",
            "displayName": person.display_name,
            "s3Key": object_keys::crop(id),
            "createdAt": person.created.unix_seconds(),
        })),
        at_least: Attributes::new(),
    }
}

pub(super) fn counter(number: u32) -> Mutation {
    Mutation::Set {
        key: Key::counter(),
        presence: Presence::Any,
        attributes: attributes(json!({ "entityType": "UNKNOWN_PERSONS" })),
        at_least: attributes(json!({ "limit": number })),
    }
}

fn display_name(person: PersonId, name: &str) -> Mutation {
    set(Key::person(person), json!({ "displayName": name }))
}

fn user(email: &Email, person: PersonId) -> Mutation {
    set(Key::user(email), json!({ "personId": person }))
}
