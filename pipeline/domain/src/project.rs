//! From events to rows of the platform's table: the one place that knows the contract's attributes.

use serde_json::{Value, json};

use crate::{
    Attributes, Event, Key, Mutation, People, Person, PersonId, PhotoProcessed, PhotoState, Presence, Timestamp,
};

/// What `TAGGING.s3Key` holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaggingKey {
    /// The large variant, as the data model says.
    #[default]
    Large,
    /// The original, as the platform's API reads it today.
    Original,
}

/// How events become rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Projection {
    /// What `TAGGING.s3Key` holds.
    pub tagging_key: TaggingKey,
}

impl Projection {
    /// The changes that `event` makes to the table, given what its photo was before.
    pub fn project(&self, before: Option<&PhotoState>, event: &Event, when: Timestamp) -> Vec<Mutation> {
        match event {
            Event::PhotoProcessed(event) => self.photo(before, event, when),
            Event::PersonsAllocated(_) => {
                let mut people = People::default();
                people.evolve(event, when);
                let rows = people.iter().map(|(id, person)| Self::person(id, person));
                rows.chain([Self::counter(people.highest())]).collect()
            }
            Event::PersonRenamed(event) => vec![Mutation::Set {
                key: Key::person(event.person),
                presence: Presence::Required,
                attributes: attributes(json!({ "displayName": event.to })),
                at_least: Attributes::new(),
            }],
            // A photo that cannot be taken leaves the platform's row as the platform made it.
            Event::PhotoRejected(_) => Vec::new(),
        }
    }

    /// What this event, replaced by a later one of the same photo, must not have left behind.
    pub fn superseded(&self, now: &PhotoState, event: &PhotoProcessed) -> Vec<Mutation> {
        let gone = event.persons().into_iter().filter(|person| !now.persons.contains(person));
        gone.map(|person| Mutation::Delete { key: Key::tagging(&event.image_id, person) }).collect()
    }

    /// A person's row.
    pub fn person(id: PersonId, person: &Person) -> Mutation {
        Mutation::Set {
            key: Key::person(id),
            presence: Presence::Absent,
            attributes: attributes(json!({
                "entityType": "PERSON",
                "displayName": person.display_name,
                "s3Key": Self::crop_key(id),
                "createdAt": person.created.unix_seconds(),
            })),
            at_least: Attributes::new(),
        }
    }

    /// The counter's row: at least `number`, because numbers are never given out twice.
    pub fn counter(number: u32) -> Mutation {
        Mutation::Set {
            key: Key::counter(),
            presence: Presence::Any,
            attributes: attributes(json!({ "entityType": "UNKNOWN_PERSONS" })),
            at_least: attributes(json!({ "limit": number })),
        }
    }

    /// Where the platform's API looks for a person's crop.
    pub fn crop_key(person: PersonId) -> String {
        format!("persons/{person}.jpg")
    }

    fn photo(&self, before: Option<&PhotoState>, event: &PhotoProcessed, when: Timestamp) -> Vec<Mutation> {
        let persons = event.persons();
        let (large, medium) = (&event.variants.large.key, &event.variants.medium.key);
        let image = Mutation::Set {
            key: Key::image(&event.image_id, &event.uploader),
            presence: Presence::Required,
            attributes: attributes(json!({
                "images": { "large": large, "medium": medium, "processedAt": when },
                "persons": persons,
            })),
            // The platform, too, writes this one when somebody edits the photo.
            at_least: attributes(json!({ "lastModified": when })),
        };
        let left = before.map(|state| state.persons.as_slice()).unwrap_or_default().iter();
        let left = left.filter(|person| !persons.contains(person));
        let left = left.map(|person| Mutation::Delete { key: Key::tagging(&event.image_id, *person) });
        let taggings = persons.iter().map(|person| Mutation::Set {
            key: Key::tagging(&event.image_id, *person),
            presence: Presence::Any,
            attributes: attributes(json!({
                "entityType": format!("TAGGING#{person}"),
                "s3Key": match self.tagging_key { TaggingKey::Large => large, TaggingKey::Original => &event.source.key },
                "images": { "large": large, "medium": medium },
                "createdAt": when.unix_seconds(),
            })),
            at_least: Attributes::new(),
        });
        [image].into_iter().chain(left).chain(taggings).collect()
    }
}

fn attributes(object: Value) -> Attributes {
    match object {
        Value::Object(attributes) => attributes,
        _ => Attributes::new(),
    }
}
