//! Sample events, rows and commits.

use std::collections::BTreeMap;

use serde_json::Value;
use sparks_domain::{
    Allocation, Attributes, Candidate, Email, Event, Face, FaceBox, FaceId, ImageId, Key, Level, LevelRaised, Mutation,
    PersonId, PersonRenamed, PersonsAllocated, PersonsForgotten, PhotoProcessed, PhotoRejected, PhotoState, Presence,
    Quality, RejectCode, Rejection, Seq, Signature, SourceObject, Timestamp, Variant, Variants, Verdict, Version,
};
use sparks_engine::{Commit, Erasure, StoredFace};

/// Returns the image ID of the photo with this number.
pub fn image(n: u64) -> ImageId {
    let mut content = [0; 16];
    content[8..].copy_from_slice(&n.to_be_bytes());
    ImageId::of_content(None, content)
}

/// Returns the address of the sample uploader.
pub fn uploader() -> Email {
    "uploader@example.org".parse().expect("valid email address")
}

/// Returns the person with this number.
pub fn person(number: u32) -> PersonId {
    PersonId::new(number).expect("number from 1")
}

/// Returns the face with this number in a photo.
pub fn face(image: &ImageId, n: u16) -> FaceId {
    FaceId { image: image.clone(), n }
}

/// Returns a time that is later for a larger number.
pub fn time(n: i64) -> Timestamp {
    Timestamp::from_millis(1_754_040_268_957 + n * 1000)
}

/// Returns the original of a photo at a version.
pub fn source(image: &ImageId, version: &str) -> SourceObject {
    SourceObject {
        key: format!("originals/{image}.jpg"),
        version: version.to_owned(),
        sequencer: None,
        bytes: 7,
        mime_type: Some("image/jpeg".into()),
        file_name: Some("ümläut 1.jpg".into()),
    }
}

/// Returns the event of a processed photo in which these persons were identified.
pub fn processed(image: &ImageId, version: &str, persons: &[u32]) -> Event {
    let variant = |name: &str| Variant {
        key: format!("processed/{image}_{name}.webp"),
        width: 4,
        height: 3,
        bytes: 5,
        sha256: None,
    };
    Event::PhotoProcessed(PhotoProcessed {
        v: Version,
        image_id: image.clone(),
        uploader: uploader(),
        source: source(image, version),
        width: 40,
        height: 30,
        taken_at: None,
        variants: Variants { large: variant("large"), medium: variant("medium") },
        analyzer: "sample".into(),
        identity_seq: Seq(0),
        first_face: 0,
        adopted: Vec::new(),
        follows: None,
        faces: persons.iter().map(|number| matched(person(*number))).collect(),
    })
}

/// Returns the event as a decision on this previous state of the photo records it.
pub fn following(event: Event, before: Option<&PhotoState>) -> Event {
    let follows = before.map(|state| state.seq);
    match event {
        Event::PhotoProcessed(photo) => {
            let first_face = before.map_or(0, |state| state.faces);
            Event::PhotoProcessed(PhotoProcessed { follows, first_face, ..photo })
        }
        Event::PhotoRejected(photo) => Event::PhotoRejected(PhotoRejected { follows, ..photo }),
        other => other,
    }
}

fn matched(person: PersonId) -> Face {
    Face {
        bounds: FaceBox { x: 0.25, y: 0.5, width: 0.125, height: 0.25 },
        landmarks: Vec::new(),
        quality: Quality { size: 80.0, sharpness: 0.5, turn: None },
        confidence: 0.75,
        attributes: BTreeMap::new(),
        model: "sample-1".into(),
        candidates: vec![Candidate { person, similarity: 0.875 }],
        threshold: 0.5,
        verdict: Verdict::Matched(person),
        template: false,
    }
}

/// Returns the event of a rejected photo.
pub fn rejected(image: &ImageId, version: &str, code: RejectCode) -> Event {
    Event::PhotoRejected(PhotoRejected {
        v: Version,
        image_id: image.clone(),
        uploader: uploader(),
        source: source(image, version),
        reason: Rejection { code, message: "sample".into() },
        follows: None,
    })
}

/// Returns the event that allocates these person numbers for a photo's faces.
pub fn allocated(image: &ImageId, counter: u32, persons: &[u32]) -> Event {
    let allocation = |(n, number): (u16, &u32)| Allocation {
        person: person(*number),
        face: face(image, n),
        templates: vec![face(image, n)],
    };
    Event::PersonsAllocated(PersonsAllocated {
        v: Version,
        image_id: image.clone(),
        photo_event: processed(image, "v1", persons).id(),
        counter,
        persons: (0..).zip(persons).map(allocation).collect(),
    })
}

/// Returns the event of a person's new display name, recorded after this identity event.
pub fn renamed(number: u32, after: Seq, to: &str) -> Event {
    let person = person(number);
    Event::PersonRenamed(PersonRenamed {
        v: Version,
        person,
        identity_seq: after,
        from: person.to_string(),
        to: to.to_owned(),
    })
}

/// Returns the event that forgets persons, recorded after this identity event.
pub fn forgotten(numbers: &[u32], after: Seq) -> Event {
    let persons = numbers.iter().map(|number| person(*number)).collect();
    Event::PersonsForgotten(PersonsForgotten { v: Version, persons, identity_seq: after })
}

/// Returns the raise of the log to this level, after this identity event.
pub fn level_raised(level: Level, after: Seq) -> Event {
    Event::LevelRaised(LevelRaised { v: Version, level, identity_seq: after })
}

/// Returns a face with a signature that is different for every number.
pub fn stored_face(face: FaceId, number: u8) -> StoredFace {
    let bytes: Vec<u8> = (0..=255_u8).map(|n| n.wrapping_mul(3).wrapping_add(number)).collect();
    let signature = Signature::from_bytes(&bytes).expect("non-zero vector");
    StoredFace { face, model: format!("sample-{number}"), signature, person: None, template: false }
}

/// Returns a face that was identified as this person, or an unidentified one.
pub fn decided_face(face: FaceId, number: u8, person: Option<u32>, template: bool) -> StoredFace {
    StoredFace { person: person.map(self::person), template, ..stored_face(face, number) }
}

/// Returns a commit without changes, for struct update syntax.
pub fn empty_commit() -> Commit {
    Commit {
        photo: None,
        identity: None,
        actor: "sample".into(),
        when: time(0),
        events: Vec::new(),
        mutations: Vec::new(),
        signatures: Vec::new(),
        identified: Vec::new(),
        promoted: Vec::new(),
        erased: Erasure::default(),
        level: Level::FIRST,
    }
}

/// Returns the attributes of a JSON object.
///
/// # Panics
///
/// Panics if the value is not an object.
pub fn attributes(object: Value) -> Attributes {
    match object {
        Value::Object(attributes) => attributes,
        other => panic!("{other} is not an object"),
    }
}

/// Returns the mutation that sets attributes of a row, under a condition on its presence.
pub fn set(key: &Key, presence: Presence, object: Value) -> Mutation {
    Mutation::Set { key: key.clone(), presence, attributes: attributes(object), at_least: Attributes::new() }
}

/// Returns the mutation that raises attributes of a row to at least these values.
pub fn raise(key: &Key, object: Value) -> Mutation {
    Mutation::Set {
        key: key.clone(),
        presence: Presence::Any,
        attributes: Attributes::new(),
        at_least: attributes(object),
    }
}
