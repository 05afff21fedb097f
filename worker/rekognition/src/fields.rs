//! The members that several operations share, and what each may be.

use uuid::Uuid;

use crate::{
    filter::Filter,
    members::{Members, Text},
    refusal::Refusal,
};

/// As many faces of a collection can be asked for at once.
pub const MOST_FACES: i64 = 4096;

const COLLECTION: Text = Text { min: 1, max: 255, pattern: r"[a-zA-Z0-9_.\-]+", fits: is_collection };
const EXTERNAL: Text = Text { min: 1, max: 255, pattern: r"[a-zA-Z0-9_.\-:]+", fits: is_external };
const USER: Text = Text { min: 1, max: 128, pattern: r"[a-zA-Z0-9_.\-:]+", fits: is_external };
const TOKEN: Text = Text { min: 0, max: 255, pattern: ".*", fits: |_| true };
const FACE: Text = Text {
    min: 0,
    max: usize::MAX,
    pattern: "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    fits: is_face,
};
const TAG: Text = Text {
    min: 1,
    max: 128,
    pattern: r"^(?!aws:)[\p{L}\p{Z}\p{N}_.:/=+\-@]*$",
    fits: |t| !t.starts_with("aws:") && is_tag(t),
};
const TAG_VALUE: Text = Text { min: 0, max: 256, pattern: r"^([\p{L}\p{Z}\p{N}_.:/=+\-@]*)$", fits: is_tag };
const MOST_TAGS: usize = 200;

const FILTERS: [(&str, Filter); 5] = [
    ("NONE", Filter::None),
    ("AUTO", Filter::Auto),
    ("LOW", Filter::Low),
    ("MEDIUM", Filter::Medium),
    ("HIGH", Filter::High),
];

fn is_collection(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn is_external(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-:".contains(&byte))
}

fn is_face(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |group: &&str| group.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(is_hex)
}

fn is_tag(text: &str) -> bool {
    let is_separator = |c: char| c.is_whitespace() && !c.is_control();
    text.chars().all(|c| c.is_alphanumeric() || is_separator(c) || "_.:/=+-@".contains(c))
}

pub fn collection(members: &mut Members) -> Result<String, Refusal> {
    let read = members.text("CollectionId", &COLLECTION)?;
    members.required("CollectionId", read)
}

pub fn external(members: &mut Members) -> Result<Option<String>, Refusal> {
    members.text("ExternalImageId", &EXTERNAL)
}

pub fn user(members: &mut Members) -> Result<Option<String>, Refusal> {
    members.text("UserId", &USER)
}

pub fn token(members: &mut Members) -> Result<Option<String>, Refusal> {
    members.text("NextToken", &TOKEN)
}

/// How many of a list at most; the service's own number where none is asked for.
pub fn page(members: &mut Members) -> Result<Option<usize>, Refusal> {
    let most = members.integer("MaxResults", 0, MOST_FACES)?;
    Ok(most.and_then(|most| usize::try_from(most).ok()).filter(|most| *most > 0))
}

pub fn most(members: &mut Members, max: i64) -> Result<Option<usize>, Refusal> {
    Ok(members.integer("MaxFaces", 1, max)?.and_then(|most| usize::try_from(most).ok()))
}

pub fn face(members: &mut Members) -> Result<Uuid, Refusal> {
    let read = members.text("FaceId", &FACE)?;
    Ok(uuid(&members.required("FaceId", read)?))
}

pub fn faces(members: &mut Members) -> Result<Option<Vec<Uuid>>, Refusal> {
    let most = usize::try_from(MOST_FACES).unwrap_or(usize::MAX);
    Ok(members.texts("FaceIds", 1, most, &FACE)?.map(|faces| faces.iter().map(|face| uuid(face)).collect()))
}

/// What fits the pattern is one.
fn uuid(text: &str) -> Uuid {
    Uuid::try_parse(text).unwrap_or_default()
}

pub fn tags(members: &mut Members) -> Result<Vec<(String, String)>, Refusal> {
    members.map("Tags", MOST_TAGS, &TAG, &TAG_VALUE)
}

pub fn filter(members: &mut Members) -> Result<Option<Filter>, Refusal> {
    members.choice("QualityFilter", &FILTERS)
}
