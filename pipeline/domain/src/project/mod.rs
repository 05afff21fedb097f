//! Projection of events to rows of the platform's table: the only code that knows the platform's row attributes.
//!
//! [`Projection::project`] returns every row that an event changes. The event table in `event/mod.rs` names the
//! function behind it for each event type: those of the photo lane are in `photo_rows.rs`, those of the identity lane
//! in `person_rows.rs`.

pub(crate) mod person_rows;
pub(crate) mod photo_rows;

use serde_json::Value;

use crate::{
    Attributes, Email, Event, Key, Merges, Mutation, Person, PersonId, PersonRegistry, PersonsMerged, PhotoState,
    Presence, RecordedEvent, Timestamp,
};

/// How events become rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Projection {
    /// What `TAGGING.s3Key` holds.
    pub tagging_key: TaggingKey,
}

/// What `TAGGING.s3Key` holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaggingKey {
    /// The large variant, as the data model specifies.
    #[default]
    Large,
    /// The original, as the platform's API reads it today.
    Original,
}

/// Facts besides the event itself that its rows depend on. A caller starts from [`ProjectionContext::new`] and sets the
/// fields that its events read; a field that is left empty states that there is no such fact.
#[derive(Debug, Clone, Copy)]
pub struct ProjectionContext<'a> {
    /// When the event was decided.
    pub when: Timestamp,
    /// The merges in force after the event. Read by all events about photos and profile pictures.
    pub merges: &'a Merges,
    /// The photo's state before the event. Read by `PhotoProcessed`, `FacesReviewed` and `PhotoAdopted`.
    pub before: Option<&'a PhotoState>,
    /// The event that the photo's rows are projected from so far ([`PhotoState::projected_seq`]). Read by
    /// `FacesReviewed` and `PhotoAdopted`, which add persons to those rows.
    pub projected: Option<&'a RecordedEvent>,
    /// The TAGGING rows of the photo. Read by `PhotoDeleted`.
    pub taggings: &'a [Key],
    /// Whether the photo's uploader has a LIMIT row. Read by `PhotoDeleted`.
    pub has_limit: bool,
    /// The persons after the event. Read by `PersonsMerged` and `MergeUndone`.
    pub persons: Option<&'a PersonRegistry>,
    /// The merge that is undone. Read by `MergeUndone`.
    pub undone: Option<UndoneMerge<'a>>,
    /// What was recorded of the person before they were forgotten. Read by `PersonReinstated`.
    pub reinstated: Option<&'a Person>,
}

/// A merge that is undone.
#[derive(Debug, Clone, Copy)]
pub struct UndoneMerge<'a> {
    /// The merge.
    pub merge: &'a PersonsMerged,
    /// The users who become `merge.from` again.
    pub users: &'a [Email],
}

impl<'a> ProjectionContext<'a> {
    /// Returns the context of an event about a photo or a person that the log does not know yet.
    pub fn new(when: Timestamp, merges: &'a Merges) -> Self {
        Self {
            when,
            merges,
            before: None,
            projected: None,
            taggings: &[],
            has_limit: false,
            persons: None,
            undone: None,
            reinstated: None,
        }
    }
}

impl Projection {
    /// Returns all rows that the event changes.
    pub fn project(self, event: &Event, context: &ProjectionContext<'_>) -> Vec<Mutation> {
        event.rows(self, context)
    }

    /// Returns the rows that a recorded event accounts for in an up-to-date table, given the photo's state now. Used to
    /// compare the table with the log and to rebuild it; rows of persons follow from the [`PersonRegistry`] instead.
    pub fn reproject(self, recorded: &RecordedEvent, now: &PhotoState, merges: &Merges) -> Vec<Mutation> {
        let is_projected = now.projected_seq == Some(recorded.seq);
        match &recorded.event {
            event @ (Event::PhotoProcessed(_) | Event::PhotoAdopted(_)) if is_projected => {
                self.photo_rows(event, recorded.when, &now.persons, merges).unwrap_or_default()
            }
            // Replaced by a later version, or the photo was deleted: only its tags may be left.
            Event::PhotoProcessed(e) => photo_rows::stale_taggings(&e.image_id, &e.persons(), now, merges),
            Event::PhotoAdopted(e) => photo_rows::stale_taggings(&e.image_id, &e.persons(), now, merges),
            // Only the current profile picture identifies the user.
            event @ Event::ProfileProcessed(_) if is_projected => {
                self.project(event, &ProjectionContext::new(recorded.when, merges))
            }
            // The persons of a review are in the photo's state, and the rows are those of an earlier event.
            _ => Vec::new(),
        }
    }

    /// Returns the rows of a photo that are projected from this event, with these persons (as decided, before merges).
    /// `None` for an event that a photo's rows are not projected from.
    pub fn photo_rows(
        self,
        event: &Event,
        when: Timestamp,
        persons: &[PersonId],
        merges: &Merges,
    ) -> Option<Vec<Mutation>> {
        match event {
            Event::PhotoProcessed(event) => Some(photo_rows::processed(self, event, when, persons, &[], merges)),
            Event::PhotoAdopted(event) => Some(photo_rows::adopted(event, persons, merges)),
            _ => None,
        }
    }

    /// Returns the PERSON row of a new person, which must not exist yet.
    pub fn person_row(id: PersonId, person: &Person) -> Mutation {
        person_rows::person(id, person, Presence::Absent)
    }

    /// Returns the PERSON row of a person who is recorded already, whether or not the row exists.
    pub fn restored_person_row(id: PersonId, person: &Person) -> Mutation {
        person_rows::person(id, person, Presence::Any)
    }

    /// Returns the counter's row: at least `number`, because numbers are never allocated twice.
    pub fn counter_row(number: u32) -> Mutation {
        person_rows::counter(number)
    }
}

fn set(key: Key, values: Value) -> Mutation {
    let attributes = attributes(values);
    Mutation::Set { key, presence: Presence::Required, attributes, at_least: Attributes::new() }
}

fn attributes(object: Value) -> Attributes {
    match object {
        Value::Object(attributes) => attributes,
        _ => Attributes::new(),
    }
}
