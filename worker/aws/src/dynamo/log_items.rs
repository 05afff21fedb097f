//! Items of the log's table: events in lanes, heads of lanes, states of photos, checkpoints.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sparks_domain::{
    Event, FaceId, ImageId, InvalidId, Lane, Level, PhotoState, Position, RecordedEvent, Seq, Timestamp,
};
use sparks_engine::{Checkpoint, StoreError};

use super::attribute_value::{Fields, attributes, key_fields, n, number, s, text, to_dynamo};

/// The partition of all heads.
pub(crate) const HEADS: &str = "HEAD";
/// The attribute of a photo's state that marks rows of its last event as still to be written.
pub(crate) const PENDING: &str = "pending";
/// The attribute of an event with the faces that were enrolled with it.
const TEMPLATES: &str = "templates";
/// The attribute with the data of an event, or with a part of it.
const DATA: &str = "event_data";
/// The attribute of an event with the number of parts of its data, where it does not fit into one item.
const PARTS: &str = "parts";
/// The most bytes of an event's data in one item: leaves room for the other attributes within the 400 KB of an item.
const MAX_DATA_BYTES: usize = 256 << 10;

/// The level of logs in which the data of an event, and the faces of a photo, may be stored in several items. Earlier releases read
/// the first of them only.
pub(crate) const SEVERAL_ITEMS: Level = Level(2);

/// The number of lanes for photos. Fixed when the log is created: a photo never changes its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PhotoLanes(pub u16);

impl PhotoLanes {
    /// Returns the lane of all events about this photo.
    pub fn of(self, image: &ImageId) -> Lane {
        let hash = Sha256::digest(image.as_str());
        let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Lane(1 + u16::try_from(number % u64::from(self.0.max(1))).unwrap_or_default())
    }

    /// Returns the lane of this event.
    pub fn of_event(self, event: &Event) -> Lane {
        event.image().map_or(Lane::IDENTITY, |image| self.of(image))
    }
}

/// Returns the partition of a lane's events.
pub(crate) fn lane_partition(lane: Lane) -> String {
    match lane {
        Lane::IDENTITY => "EVENTS".to_owned(),
        Lane(number) => format!("EVENTS#{number}"),
    }
}

/// Returns the beginning of the sort key of the event at this position.
pub(crate) fn sort_key_prefix(Seq(seq): Seq) -> String {
    format!("{seq:012}")
}

/// Returns the sort key of a lane's head.
pub(crate) fn head_sort_key(Lane(lane): Lane) -> String {
    format!("{lane:05}")
}

/// Returns the key of a lane's head.
pub(crate) fn head_key(lane: Lane) -> Fields {
    key_fields(HEADS, &head_sort_key(lane))
}

/// The attribute of a lane's head with the position of its last event that enrolled a face.
pub(crate) const LAST_ENROLLMENT: &str = "taught";

/// Returns whether an event after this one may have enrolled a face; true if the head lacks the attribute.
pub(crate) fn has_enrollment_since(head: &Fields, Seq(after): Seq) -> Result<bool, StoreError> {
    Ok(!head.contains_key(LAST_ENROLLMENT) || number(head, LAST_ENROLLMENT)? > after)
}

/// Parses the head of a lane: the lane and its last position.
pub(crate) fn parse_head(fields: &Fields) -> Result<(Lane, Seq), StoreError> {
    let lane = text(fields, "SK")?.parse().map_err(|e| StoreError::Unreadable(format!("head of a lane: {e}")))?;
    Ok((Lane(lane), Seq(number(fields, "seq")?)))
}

/// The attribute of the identity lane's head with the reader level of the log. Absent at the first level.
pub(crate) const LEVEL: &str = "level";

/// Parses the reader level that the head of the identity lane holds.
pub(crate) fn parse_level(head: &Fields) -> Result<Level, StoreError> {
    let level = u32::try_from(number(head, LEVEL)?).unwrap_or(u32::MAX);
    Ok(Level(level).max(Level::FIRST))
}

/// Returns the key of a photo's state.
pub(crate) fn state_key(image: &ImageId) -> Fields {
    key_fields(&format!("IMG#{image}"), "STATE")
}

/// Returns the item of a photo's state.
pub(crate) fn state_fields(image: &ImageId, state: &PhotoState, pending: bool) -> Result<Fields, StoreError> {
    let Ok(Value::Object(attributes)) = serde_json::to_value(state) else {
        return Err(StoreError::Unreadable(format!("failed to serialize the state of photo {image}")));
    };
    let mut fields = state_key(image);
    fields.extend(attributes.iter().map(|(name, value)| (name.clone(), to_dynamo(value))));
    fields.extend(pending.then(|| (PENDING.to_owned(), AttributeValue::Bool(true))));
    Ok(fields)
}

/// Parses a photo's state, and whether rows of its last event are still to be written.
pub(crate) fn parse_state(fields: &Fields) -> Result<(PhotoState, bool), StoreError> {
    let mut attributes = attributes(fields);
    let pending = attributes.remove(PENDING).is_some();
    let state = serde_json::from_value(Value::Object(attributes));
    let unreadable = |e| StoreError::Unreadable(format!("state {}: {e}", text(fields, "PK").unwrap_or_default()));
    Ok((state.map_err(unreadable)?, pending))
}

/// The items of an event.
pub(crate) struct EventItems {
    /// The event, with the first part of its data.
    pub event: Fields,
    /// The other parts of its data.
    pub parts: Vec<Fields>,
}

/// Returns whether the event is stored in several items, where the level of the log allows it.
pub(crate) fn has_several_items(event: &Event) -> bool {
    event.to_data().len() > MAX_DATA_BYTES
}

/// Returns the items of an event in a log of this level, with the IDs of the faces that are enrolled with it.
pub(crate) fn event_items(recorded: &RecordedEvent, templates: &[FaceId], level: Level) -> EventItems {
    let data = recorded.event.to_data();
    let max_bytes = if level < SEVERAL_ITEMS { usize::MAX } else { MAX_DATA_BYTES };
    let mut texts = split(&data, max_bytes).into_iter();
    let mut event = event_fields(recorded, templates, texts.next().unwrap_or_default());
    let parts = (1..).zip(texts).map(|(number, text)| {
        let mut part = part_key(recorded.lane, recorded.seq, number);
        part.insert(DATA.to_owned(), s(text));
        part
    });
    let parts: Vec<Fields> = parts.collect();
    if !parts.is_empty() {
        event.insert(PARTS.to_owned(), n(1 + parts.len()));
    }
    EventItems { event, parts }
}

/// Splits a text into pieces of at most this many bytes, between characters.
fn split(text: &str, most: usize) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while rest.len() > most {
        let (piece, later) = rest.split_at(rest.floor_char_boundary(most));
        pieces.push(piece);
        rest = later;
    }
    pieces.push(rest);
    pieces
}

/// Returns the key of a part of an event's data. The partition is not that of the lane, in which every item is an event.
fn part_key(Lane(lane): Lane, seq: Seq, part: usize) -> Fields {
    key_fields(&format!("DATA#{lane}"), &format!("{}#{part:05}", sort_key_prefix(seq)))
}

/// Returns the keys of the other parts of an event's data.
pub(crate) fn part_keys(lane: Lane, event: &Fields) -> Result<Vec<Fields>, StoreError> {
    let (seq, parts) = (event_seq(lane, event)?, number(event, PARTS)?);
    Ok((1..usize::try_from(parts).unwrap_or_default()).map(|part| part_key(lane, seq, part)).collect())
}

/// Appends the other parts of its data, in any order, to an event.
pub(crate) fn append_parts(lane: Lane, event: &mut Fields, mut parts: Vec<Fields>) -> Result<(), StoreError> {
    let expected = part_keys(lane, event)?.len();
    if parts.len() != expected {
        let reason = format!("{} of {expected} further parts of its data are stored", parts.len());
        return Err(unreadable(lane, event, &reason));
    }
    parts.sort_by_key(|part| text(part, "SK").unwrap_or_default().to_owned());
    let mut data = text(event, DATA)?.to_owned();
    for part in &parts {
        data.push_str(text(part, DATA)?);
    }
    event.insert(DATA.to_owned(), s(data));
    event.remove(PARTS);
    Ok(())
}

fn event_fields(recorded: &RecordedEvent, templates: &[FaceId], data: &str) -> Fields {
    let sort_key = format!("{}#{}", sort_key_prefix(recorded.seq), recorded.when);
    let mut fields = key_fields(&lane_partition(recorded.lane), &sort_key);
    let texts = [
        ("event_id", recorded.id.to_string()),
        ("actor", recorded.actor.clone()),
        ("when_occurred", recorded.when.to_string()),
        ("event_type", recorded.event.event_type().to_owned()),
        (DATA, data.to_owned()),
    ];
    fields.extend(texts.map(|(name, text)| (name.to_owned(), s(text))));
    if !templates.is_empty() {
        let names = templates.iter().map(|face| s(face.to_string())).collect();
        fields.insert(TEMPLATES.to_owned(), AttributeValue::L(names));
    }
    fields
}

/// The faces that were enrolled with an event.
pub(crate) struct EventTemplates {
    pub lane: Lane,
    pub seq: Seq,
    pub templates: Vec<FaceId>,
}

/// The projection of an event's item for [`EventTemplates`]: the event itself is not read.
pub(crate) const TEMPLATES_PROJECTION: &str = "SK, templates";

/// Parses the position of an event of this lane.
pub(crate) fn event_seq(lane: Lane, fields: &Fields) -> Result<Seq, StoreError> {
    let seq = text(fields, "SK")?.split('#').next().and_then(|digits| digits.parse().ok()).map(Seq);
    seq.ok_or_else(|| unreadable(lane, fields, "the sort key does not begin with a number"))
}

/// Parses an event of this lane.
pub(crate) fn parse_event(lane: Lane, fields: &Fields) -> Result<RecordedEvent, StoreError> {
    let bad = |reason: String| unreadable(lane, fields, &reason);
    Ok(RecordedEvent {
        lane,
        seq: event_seq(lane, fields)?,
        id: text(fields, "event_id")?.parse().map_err(|e: InvalidId| bad(e.to_string()))?,
        actor: text(fields, "actor")?.to_owned(),
        when: text(fields, "when_occurred")?.parse::<Timestamp>().map_err(|e| bad(e.to_string()))?,
        event: Event::parse(text(fields, "event_type")?, text(fields, DATA)?).map_err(|e| bad(e.to_string()))?,
    })
}

/// Parses the faces that were enrolled with an event of this lane.
pub(crate) fn parse_event_templates(lane: Lane, fields: &Fields) -> Result<EventTemplates, StoreError> {
    let names = fields.get(TEMPLATES).and_then(|value| value.as_l().ok()).map(Vec::as_slice).unwrap_or_default();
    let face = |name: &AttributeValue| {
        let name = name.as_s().map_err(|_| unreadable(lane, fields, "a template is not a string"))?;
        name.parse().map_err(|e: InvalidId| unreadable(lane, fields, &e.to_string()))
    };
    let templates = names.iter().map(face).collect::<Result<_, StoreError>>()?;
    Ok(EventTemplates { lane, seq: event_seq(lane, fields)?, templates })
}

fn unreadable(lane: Lane, fields: &Fields, reason: &str) -> StoreError {
    StoreError::UnreadableLog(format!("event {} of lane {lane}: {reason}", text(fields, "SK").unwrap_or_default()))
}

/// Returns the key of a checkpoint.
pub(crate) fn checkpoint_key(mark: Checkpoint) -> Fields {
    key_fields(
        "MARK",
        match mark {
            Checkpoint::Followed => "FOLLOWED",
            Checkpoint::Considered => "CONSIDERED",
        },
    )
}

/// Returns a position as checkpoints store it: a number for each lane.
pub(crate) fn position_value(position: &Position) -> AttributeValue {
    let lanes = position.lanes().map(|(lane, Seq(seq))| (lane.to_string(), n(seq)));
    AttributeValue::M(lanes.collect::<BTreeMap<_, _>>().into_iter().collect())
}

/// Parses the position of a checkpoint.
pub(crate) fn parse_position(fields: &Fields) -> Result<Position, StoreError> {
    let Some(Ok(lanes)) = fields.get("position").map(AttributeValue::as_m) else { return Ok(Position::default()) };
    let lane = |name: &String| {
        let lane = name.parse().map_err(|e| StoreError::Unreadable(format!("checkpoint of lane {name:?}: {e}")))?;
        Ok((Lane(lane), Seq(number(lanes, name)?)))
    };
    lanes.keys().map(lane).collect()
}
