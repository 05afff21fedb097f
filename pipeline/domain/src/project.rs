//! From events to rows of the platform's table: the one place that knows the contract's attributes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    Attributes, DeletionCause, Email, Event, ImageId, Key, Merges, Mutation, People, Person, PersonId, PersonsMerged,
    PhotoAdopted, PhotoDeleted, PhotoProcessed, PhotoState, Presence, ProfileProcessed, Timestamp,
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
    /// The changes that `event` makes to the table, given what its photo was before and who is whom.
    pub fn project(
        &self,
        before: Option<&PhotoState>,
        event: &Event,
        when: Timestamp,
        merges: &Merges,
    ) -> Vec<Mutation> {
        match event {
            Event::PhotoProcessed(event) => {
                let left = before.map(|state| state.persons.as_slice()).unwrap_or_default();
                self.photo(event, when, &event.persons(), left, merges)
            }
            Event::PersonsAllocated(_) => {
                let mut people = People::default();
                people.evolve(event, when);
                let rows = people.iter().map(|(id, person)| Self::person(id, &person));
                rows.chain([Self::counter(people.highest())]).collect()
            }
            Event::NumbersReserved(event) => vec![Self::counter(event.up_to)],
            Event::PersonAdopted(adopted) => {
                let mut people = People::default();
                people.evolve(event, when);
                let row = people.get(adopted.person).map(|person| Self::person(adopted.person, &person));
                row.into_iter().map(|row| row.with_presence(Presence::Required)).collect()
            }
            // Beside what we show already, the tags are shown with it: see `shown`.
            Event::PhotoAdopted(_) if before.is_some_and(|state| state.shows.is_some()) => Vec::new(),
            Event::PhotoAdopted(adopted) => self.adopted(adopted, &adopted.persons(), merges),
            Event::PersonRenamed(event) => vec![Self::named(event.person, &event.to)],
            // A photo that cannot be taken leaves the platform's row as the platform made it.
            Event::PhotoRejected(_) => Vec::new(),
            Event::ProfileProcessed(event) => self.profile(event, when, merges).into_iter().collect(),
            Event::PersonsForgotten(event) => {
                event.persons.iter().map(|person| Mutation::Delete { key: Key::person(*person) }).collect()
            }
            // What these make of the table takes more than the event: see `photo`, `merged`, `unmerged`, `deleted`.
            Event::FacesReviewed(_) | Event::PersonsMerged(_) | Event::MergeUndone(_) => Vec::new(),
            Event::PhotoDeleted(_) | Event::PersonReinstated(_) => Vec::new(),
            // The crop's key stays.
            Event::PersonPictured(_) => Vec::new(),
        }
    }

    /// The rows of a photo that shows these persons, and no longer those who `left`. All are named as they were decided.
    pub fn photo(
        &self,
        event: &PhotoProcessed,
        when: Timestamp,
        persons: &[PersonId],
        left: &[PersonId],
        merges: &Merges,
    ) -> Vec<Mutation> {
        let now = merges.all_now(persons);
        let (large, medium) = (&event.variants.large.key, &event.variants.medium.key);
        let image = Mutation::Set {
            key: Key::image(&event.image_id, &event.uploader),
            presence: Presence::Required,
            attributes: attributes(json!({
                "images": { "large": large, "medium": medium, "processedAt": when },
                "persons": now,
            })),
            // The platform, too, writes this one when somebody edits the photo.
            at_least: attributes(json!({ "lastModified": when })),
        };
        let stale = stale(&event.image_id, persons.iter().chain(left), &now, merges);
        let taggings = now.iter().map(|person| Mutation::Set {
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
        [image].into_iter().chain(stale).chain(taggings).collect()
    }

    /// The rows of a photo that shows this event, if it is one that a photo can show, with these persons.
    pub fn shown(
        &self,
        event: &Event,
        when: Timestamp,
        persons: &[PersonId],
        merges: &Merges,
    ) -> Option<Vec<Mutation>> {
        match event {
            Event::PhotoProcessed(event) => Some(self.photo(event, when, persons, &[], merges)),
            Event::PhotoAdopted(event) => Some(self.adopted(event, persons, merges)),
            _ => None,
        }
    }

    /// The rows of a photo that somebody else tagged, as they stood, with these persons. Whoever a tag is by now, it keeps
    /// what it said; `lastModified` is not touched, because nothing about the photo has changed.
    fn adopted(&self, event: &PhotoAdopted, persons: &[PersonId], merges: &Merges) -> Vec<Mutation> {
        let now = merges.all_now(persons);
        let mut ours = attributes(json!({ "persons": now }));
        if !event.images.is_empty() {
            ours.insert("images".into(), event.images.clone().into());
        }
        let image = Self::set(Key::image(&event.image_id, &event.uploader), ours.into());
        let stale = stale(&event.image_id, persons.iter(), &now, merges);
        let taggings = now.iter().filter_map(|person| {
            let tagging = event.taggings.iter().find(|tagging| merges.now(tagging.person) == *person)?;
            let mut ours = attributes(json!({
                "entityType": format!("TAGGING#{person}"),
                "createdAt": tagging.created_at.unix_seconds(),
            }));
            ours.extend(tagging.s3_key.as_ref().map(|key| ("s3Key".to_owned(), key.clone().into())));
            if !tagging.images.is_empty() {
                ours.insert("images".into(), tagging.images.clone().into());
            }
            let row = Self::set(Key::tagging(&event.image_id, *person), ours.into());
            Some(row.with_presence(Presence::Any))
        });
        [image].into_iter().chain(stale).chain(taggings).collect()
    }

    /// What this event, replaced by a later one of the same photo, must not have left behind.
    pub fn superseded(&self, now: &PhotoState, event: &PhotoProcessed, merges: &Merges) -> Vec<Mutation> {
        stale(&event.image_id, event.persons().iter(), &merges.all_now(&now.persons), merges)
    }

    /// What tags that were there before us, and which a later event of the same photo replaced, must not have left behind.
    pub fn superseded_tags(&self, now: &PhotoState, event: &PhotoAdopted, merges: &Merges) -> Vec<Mutation> {
        stale(&event.image_id, event.persons().iter(), &merges.all_now(&now.persons), merges)
    }

    /// The user's row, where their picture tells who they are.
    pub fn profile(&self, event: &ProfileProcessed, when: Timestamp, merges: &Merges) -> Option<Mutation> {
        let person = merges.now(event.person()?);
        Some(Mutation::Set {
            key: Key::user(&event.email),
            presence: Presence::Required,
            attributes: attributes(json!({ "personId": person })),
            at_least: attributes(json!({ "updatedAt": when })),
        })
    }

    /// What a deletion makes of the table: the taggings under the photo go. Where its owner wanted it, its row goes, too, and
    /// in the same step the owner gets the upload back, if there is a limit to add it to; otherwise only what is ours in the
    /// row goes.
    pub fn deleted(&self, event: &PhotoDeleted, taggings: Vec<Key>, has_limit: bool) -> Vec<Mutation> {
        let taggings = taggings.into_iter().map(|key| Mutation::Delete { key });
        let row = event.uploader.as_ref().map(|owner| {
            let key = Key::image(&event.image_id, owner);
            match event.cause {
                DeletionCause::Asked => Mutation::Take { key },
                DeletionCause::OriginalRemoved => {
                    Mutation::Clear { key, attributes: vec!["images".into(), "persons".into()] }
                }
            }
        });
        let owner = event.uploader.as_ref().filter(|_| event.cause == DeletionCause::Asked);
        let credit = owner.filter(|_| has_limit).map(|owner| Mutation::Add {
            key: Key::limit(owner),
            attribute: "limit".into(),
            amount: 1,
        });
        row.into_iter().chain(taggings).chain(credit).collect()
    }

    /// The row of somebody who is known again.
    pub fn reinstated(&self, id: PersonId, person: &Person) -> Mutation {
        Self::person(id, person).with_presence(Presence::Any)
    }

    /// What a merge makes of the rows of persons and users; photos follow one by one. `people` know of the merge.
    pub fn merged(&self, event: &PersonsMerged, people: &People) -> Vec<Mutation> {
        let gone = Mutation::Delete { key: Key::person(event.from) };
        let name = people.get(event.into).map(|person| Self::named(event.into, &person.display_name));
        let users = event.users.iter().map(|user| Self::user(user, event.into));
        [gone].into_iter().chain(name).chain(users).collect()
    }

    /// What taking a merge back makes of the rows of persons and users: what was there before it. `people` know of it.
    pub fn unmerged(&self, merged: &PersonsMerged, users: &[Email], people: &People) -> Vec<Mutation> {
        let into = people.merges().now(merged.into); // may be somebody else since
        let name = people.get(into).map(|person| Self::named(into, &person.display_name));
        let back = people.get(merged.from).map(|person| Self::person(merged.from, &person));
        let back = back.map(|row| match row {
            Mutation::Set { key, presence, attributes, at_least } => {
                let attributes = merged.row.clone().into_iter().chain(attributes).collect();
                Mutation::Set { key, presence, attributes, at_least }
            }
            other => other,
        });
        let users = users.iter().map(|user| Self::user(user, merged.from));
        back.into_iter().chain(name).chain(users).collect()
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

    fn named(person: PersonId, name: &str) -> Mutation {
        Self::set(Key::person(person), json!({ "displayName": name }))
    }

    fn user(email: &Email, person: PersonId) -> Mutation {
        Self::set(Key::user(email), json!({ "personId": person }))
    }

    fn set(key: Key, values: Value) -> Mutation {
        let attributes = attributes(values);
        Mutation::Set { key, presence: Presence::Required, attributes, at_least: Attributes::new() }
    }
}

/// Tags of these persons, under whatever name, that are not among those shown now.
fn stale<'a>(
    image: &ImageId,
    persons: impl Iterator<Item = &'a PersonId>,
    now: &[PersonId],
    merges: &Merges,
) -> Vec<Mutation> {
    let guises: BTreeSet<PersonId> = persons.flat_map(|person| merges.guises(*person)).collect();
    let gone = guises.into_iter().filter(|person| !now.contains(person));
    gone.map(|person| Mutation::Delete { key: Key::tagging(image, person) }).collect()
}

fn attributes(object: Value) -> Attributes {
    match object {
        Value::Object(attributes) => attributes,
        _ => Attributes::new(),
    }
}
