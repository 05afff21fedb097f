//! Rows that the events of the photo lane change: IMAGE, TAGGING, LIMIT and USER.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Projection, ProjectionContext, TaggingKey, attributes, set};
use crate::{
    Attributes, DeletionCause, FacesReviewed, ImageId, Key, Merges, Mutation, PersonId, PhotoAdopted, PhotoDeleted,
    PhotoProcessed, PhotoRejected, PhotoState, Presence, ProfileProcessed, Timestamp,
};

/// The IMAGE row and its tags; tags of persons who are no longer in the photo are removed.
pub(crate) fn photo_processed(
    projection: Projection,
    event: &PhotoProcessed,
    context: &ProjectionContext<'_>,
) -> Vec<Mutation> {
    let left = context.before.map(|state| state.persons.as_slice()).unwrap_or_default();
    processed(projection, event, context.when, &event.persons(), left, context.merges)
}

/// None: the platform's row stays as the platform wrote it.
pub(crate) fn photo_rejected(_: Projection, _: &PhotoRejected, _: &ProjectionContext<'_>) -> Vec<Mutation> {
    Vec::new()
}

/// The photo's rows so far, with the identified persons.
pub(crate) fn faces_reviewed(
    projection: Projection,
    event: &FacesReviewed,
    context: &ProjectionContext<'_>,
) -> Vec<Mutation> {
    with_more_persons(projection, &event.persons().collect::<Vec<_>>(), context).unwrap_or_default()
}

/// The rows as the previous worker wrote them; where the log has decided about the photo, its rows so far with the
/// adopted tags.
pub(crate) fn photo_adopted(
    projection: Projection,
    event: &PhotoAdopted,
    context: &ProjectionContext<'_>,
) -> Vec<Mutation> {
    let has_rows = context.before.is_some_and(|state| state.projected_seq.is_some());
    match has_rows {
        true => with_more_persons(projection, &event.persons(), context).unwrap_or_default(),
        false => adopted(event, &event.persons(), context.merges),
    }
}

/// The tags are removed. For an owner's request the IMAGE row is removed in the same transaction that credits the
/// upload limit; where the original was removed, the row is the platform's and loses only our attributes.
pub(crate) fn photo_deleted(_: Projection, event: &PhotoDeleted, context: &ProjectionContext<'_>) -> Vec<Mutation> {
    let taggings = context.taggings.iter().map(|key| Mutation::Delete { key: key.clone() });
    let row = event.uploader.as_ref().map(|owner| {
        let key = Key::image(&event.image_id, owner);
        match event.cause {
            DeletionCause::Requested => Mutation::DeleteExisting { key },
            DeletionCause::OriginalRemoved => {
                Mutation::RemoveAttributes { key, attributes: vec!["images".into(), "persons".into()] }
            }
        }
    });
    let owner = event.uploader.as_ref().filter(|_| event.cause == DeletionCause::Requested);
    let credit = owner.filter(|_| context.has_limit).map(|owner| Mutation::Add {
        key: Key::limit(owner),
        attribute: "limit".into(),
        amount: 1,
    });
    row.into_iter().chain(taggings).chain(credit).collect()
}

/// The USER row, where the picture identifies the user.
pub(crate) fn profile_processed(
    _: Projection,
    event: &ProfileProcessed,
    context: &ProjectionContext<'_>,
) -> Vec<Mutation> {
    let Some(person) = event.person() else { return Vec::new() };
    vec![Mutation::Set {
        key: Key::user(&event.email),
        presence: Presence::Required,
        attributes: attributes(json!({ "personId": context.merges.current(person) })),
        at_least: attributes(json!({ "updatedAt": context.when })),
    }]
}

/// Returns the rows of a processed photo with these persons, and without those who `left`. Persons are as decided,
/// before merges.
pub(super) fn processed(
    projection: Projection,
    event: &PhotoProcessed,
    when: Timestamp,
    persons: &[PersonId],
    left: &[PersonId],
    merges: &Merges,
) -> Vec<Mutation> {
    let current = merges.all_current(persons);
    let (large, medium) = (&event.variants.large.key, &event.variants.medium.key);
    let image = Mutation::Set {
        key: Key::image(&event.image_id, &event.uploader),
        presence: Presence::Required,
        attributes: attributes(json!({
            "images": { "large": large, "medium": medium, "processedAt": when },
            "persons": current,
        })),
        // The platform writes this one too, when a user edits the photo.
        at_least: attributes(json!({ "lastModified": when })),
    };
    let stale = removed_taggings(&event.image_id, persons.iter().chain(left), &current, merges);
    let s3_key = match projection.tagging_key {
        TaggingKey::Large => large,
        TaggingKey::Original => &event.source.key,
    };
    let taggings = current.iter().map(|person| Mutation::Set {
        key: Key::tagging(&event.image_id, *person),
        presence: Presence::Any,
        attributes: attributes(json!({
            "entityType": format!("TAGGING#{person}"),
            "s3Key": s3_key,
            "images": { "large": large, "medium": medium },
            "createdAt": when.unix_seconds(),
        })),
        at_least: Attributes::new(),
    });
    [image].into_iter().chain(stale).chain(taggings).collect()
}

/// Returns the rows of an adopted photo with these persons. A tag of a merged person keeps its other attributes, and
/// `lastModified` stays, because nothing about the photo has changed.
pub(super) fn adopted(event: &PhotoAdopted, persons: &[PersonId], merges: &Merges) -> Vec<Mutation> {
    let current = merges.all_current(persons);
    let mut values = attributes(json!({ "persons": current }));
    if !event.images.is_empty() {
        values.insert("images".into(), event.images.clone().into());
    }
    let image = set(Key::image(&event.image_id, &event.uploader), values.into());
    let stale = removed_taggings(&event.image_id, persons.iter(), &current, merges);
    let taggings = current.iter().filter_map(|person| {
        let tagging = event.taggings.iter().find(|tagging| merges.current(tagging.person) == *person)?;
        let mut values = attributes(json!({
            "entityType": format!("TAGGING#{person}"),
            "createdAt": tagging.created_at.unix_seconds(),
        }));
        values.extend(tagging.s3_key.as_ref().map(|key| ("s3Key".to_owned(), key.clone().into())));
        if !tagging.images.is_empty() {
            values.insert("images".into(), tagging.images.clone().into());
        }
        Some(set(Key::tagging(&event.image_id, *person), values.into()).with_presence(Presence::Any))
    });
    [image].into_iter().chain(stale).chain(taggings).collect()
}

/// Returns the removals of tags that an event gave these persons and that the photo does not have now.
pub(super) fn stale_taggings(
    image: &ImageId,
    persons: &[PersonId],
    now: &PhotoState,
    merges: &Merges,
) -> Vec<Mutation> {
    removed_taggings(image, persons.iter(), &merges.all_current(&now.persons), merges)
}

/// Returns the photo's rows so far with further persons; `None` where it has none.
fn with_more_persons(
    projection: Projection,
    persons: &[PersonId],
    context: &ProjectionContext<'_>,
) -> Option<Vec<Mutation>> {
    let (before, projected) = (context.before?, context.projected?);
    let persons: Vec<PersonId> = before.persons.iter().chain(persons).copied().collect();
    projection.photo_rows(&projected.event, projected.when, &persons, context.merges)
}

/// Returns the removals of these persons' tags, under every alias, except for the current persons.
fn removed_taggings<'a>(
    image: &ImageId,
    persons: impl Iterator<Item = &'a PersonId>,
    current: &[PersonId],
    merges: &Merges,
) -> Vec<Mutation> {
    let aliases: BTreeSet<PersonId> = persons.flat_map(|person| merges.aliases(*person)).collect();
    let stale = aliases.into_iter().filter(|person| !current.contains(person));
    stale.map(|person| Mutation::Delete { key: Key::tagging(image, person) }).collect()
}
