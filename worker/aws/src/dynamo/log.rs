//! The log: events in lanes, the heads of the lanes, and what has been done with each photo.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sparks_domain::{Event, FaceId, ImageId, InvalidId, Lane, PhotoState, Position, Recorded, Seq, Timestamp};
use sparks_engine::{Mark, StoreError};

use super::value::{Fields, attributes, key_fields, n, number, s, text, to_dynamo};

/// The partition of all heads.
pub(crate) const HEADS: &str = "HEAD";
/// The last attribute of a photo's state, while rows of its last event are still to be written.
pub(crate) const PENDING: &str = "pending";
/// The faces that persons are known by since an event.
const TEMPLATES: &str = "templates";

/// How many lanes photos have. Fixed when the log is made: a photo's lane is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes(pub u16);

impl Lanes {
    /// The lane of all events about this photo.
    pub fn of(self, image: &ImageId) -> Lane {
        let hash = Sha256::digest(image.as_str());
        let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Lane(1 + u16::try_from(number % u64::from(self.0.max(1))).unwrap_or_default())
    }

    /// The lane of this event.
    pub fn of_event(self, event: &Event) -> Lane {
        event.image().map_or(Lane::IDENTITY, |image| self.of(image))
    }
}

/// The partition of a lane's events.
pub(crate) fn partition(lane: Lane) -> String {
    match lane {
        Lane::IDENTITY => "EVENTS".to_owned(),
        Lane(number) => format!("EVENTS#{number}"),
    }
}

/// How the sort key of the event at this place begins.
pub(crate) fn place(Seq(seq): Seq) -> String {
    format!("{seq:012}")
}

/// The sort key of a lane's head.
pub(crate) fn head_sort_key(Lane(lane): Lane) -> String {
    format!("{lane:05}")
}

/// Where the lane is counted.
pub(crate) fn head_key(lane: Lane) -> Fields {
    key_fields(HEADS, &head_sort_key(lane))
}

/// Where a lane's head says which of its events was the last that taught anything.
pub(crate) const TAUGHT: &str = "taught";

/// Whether an event after this one may have taught anything. A head that does not say is no promise.
pub(crate) fn has_taught_since(head: &Fields, Seq(after): Seq) -> Result<bool, StoreError> {
    Ok(!head.contains_key(TAUGHT) || number(head, TAUGHT)? > after)
}

/// The lane that this head counts, and how far it has come.
pub(crate) fn head(fields: &Fields) -> Result<(Lane, Seq), StoreError> {
    let lane = text(fields, "SK")?.parse().map_err(|e| StoreError::Unreadable(format!("the head of a lane: {e}")))?;
    Ok((Lane(lane), Seq(number(fields, "seq")?)))
}

/// Where a photo's state is.
pub(crate) fn state_key(image: &ImageId) -> Fields {
    key_fields(&format!("IMG#{image}"), "STATE")
}

/// What the log knows of a photo, as it is kept.
pub(crate) fn state_fields(image: &ImageId, state: &PhotoState, pending: bool) -> Result<Fields, StoreError> {
    let Ok(Value::Object(known)) = serde_json::to_value(state) else {
        return Err(StoreError::Unreadable(format!("the state of {image} cannot be written")));
    };
    let mut fields = state_key(image);
    fields.extend(known.iter().map(|(name, value)| (name.clone(), to_dynamo(value))));
    fields.extend(pending.then(|| (PENDING.to_owned(), AttributeValue::Bool(true))));
    Ok(fields)
}

/// What the log knows of a photo, and whether rows of its last event are still to be written.
pub(crate) fn state(fields: &Fields) -> Result<(PhotoState, bool), StoreError> {
    let mut known = attributes(fields);
    let pending = known.remove(PENDING).is_some();
    let state = serde_json::from_value(Value::Object(known));
    let unreadable = |e| StoreError::Unreadable(format!("the state {}: {e}", text(fields, "PK").unwrap_or_default()));
    Ok((state.map_err(unreadable)?, pending))
}

/// The event as the log keeps it, with the names of the faces that persons are known by from then on.
pub(crate) fn event_fields(recorded: &Recorded, templates: &[FaceId]) -> Fields {
    let sort_key = format!("{}#{}", place(recorded.seq), recorded.when);
    let mut fields = key_fields(&partition(recorded.lane), &sort_key);
    let texts = [
        ("event_id", recorded.id.to_string()),
        ("actor", recorded.actor.clone()),
        ("when_occurred", recorded.when.to_string()),
        ("event_type", recorded.event.event_type().to_owned()),
        ("event_data", recorded.event.to_data()),
    ];
    fields.extend(texts.map(|(name, text)| (name.to_owned(), s(text))));
    if !templates.is_empty() {
        let names = templates.iter().map(|face| s(face.to_string())).collect();
        fields.insert(TEMPLATES.to_owned(), AttributeValue::L(names));
    }
    fields
}

/// The faces that persons are known by since an event.
pub(crate) struct Lesson {
    pub lane: Lane,
    pub seq: Seq,
    pub templates: Vec<FaceId>,
}

/// What a lesson needs of an event's row.
pub(crate) const LESSON: &str = "SK, templates";

/// The place of the event that a row of this lane keeps.
pub(crate) fn place_of(lane: Lane, fields: &Fields) -> Result<Seq, StoreError> {
    let place = text(fields, "SK")?.split('#').next().and_then(|digits| digits.parse().ok()).map(Seq);
    place.ok_or_else(|| unreadable(lane, fields, "its sort key does not begin with a number"))
}

/// The event that a row of this lane keeps.
pub(crate) fn recorded(lane: Lane, fields: &Fields) -> Result<Recorded, StoreError> {
    let bad = |reason: String| unreadable(lane, fields, &reason);
    Ok(Recorded {
        lane,
        seq: place_of(lane, fields)?,
        id: text(fields, "event_id")?.parse().map_err(|e: InvalidId| bad(e.to_string()))?,
        actor: text(fields, "actor")?.to_owned(),
        when: text(fields, "when_occurred")?.parse::<Timestamp>().map_err(|e| bad(e.to_string()))?,
        event: Event::parse(text(fields, "event_type")?, text(fields, "event_data")?)
            .map_err(|e| bad(e.to_string()))?,
    })
}

/// What the event taught that a row of this lane keeps.
pub(crate) fn lesson(lane: Lane, fields: &Fields) -> Result<Lesson, StoreError> {
    let names = fields.get(TEMPLATES).and_then(|value| value.as_l().ok()).map(Vec::as_slice).unwrap_or_default();
    let face = |name: &AttributeValue| {
        let name = name.as_s().map_err(|_| unreadable(lane, fields, "a face without a name"))?;
        name.parse().map_err(|e: InvalidId| unreadable(lane, fields, &e.to_string()))
    };
    let templates = names.iter().map(face).collect::<Result<_, StoreError>>()?;
    Ok(Lesson { lane, seq: place_of(lane, fields)?, templates })
}

fn unreadable(lane: Lane, fields: &Fields, reason: &str) -> StoreError {
    StoreError::Unreadable(format!("event {} of lane {lane}: {reason}", text(fields, "SK").unwrap_or_default()))
}

/// Where a mark is kept.
pub(crate) fn mark_key(mark: Mark) -> Fields {
    key_fields(
        "MARK",
        match mark {
            Mark::Followed => "FOLLOWED",
            Mark::Considered => "CONSIDERED",
        },
    )
}

/// A position as marks keep it: a number for each lane.
pub(crate) fn position_value(position: &Position) -> AttributeValue {
    let lanes = position.lanes().map(|(lane, Seq(seq))| (lane.to_string(), n(seq)));
    AttributeValue::M(lanes.collect::<BTreeMap<_, _>>().into_iter().collect())
}

/// The position that a mark keeps.
pub(crate) fn position(fields: &Fields) -> Result<Position, StoreError> {
    let Some(Ok(lanes)) = fields.get("position").map(AttributeValue::as_m) else { return Ok(Position::default()) };
    let lane = |name: &String| {
        let lane = name.parse().map_err(|e| StoreError::Unreadable(format!("the mark of lane {name:?}: {e}")))?;
        Ok((Lane(lane), Seq(number(lanes, name)?)))
    };
    lanes.keys().map(lane).collect()
}
