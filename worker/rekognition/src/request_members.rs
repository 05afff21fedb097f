//! Request members that several operations share, with their constraints.

use uuid::Uuid;

use crate::{
    api_error::ApiError,
    member_reader::{MemberReader, StringRule},
    quality_filter::QualityFilter,
};

/// Maximum number of faces in a request or response.
pub const MAX_FACES: i64 = 4096;

const COLLECTION: StringRule = StringRule { min: 1, max: 255, pattern: r"[a-zA-Z0-9_.\-]+", is_match: is_collection };
const EXTERNAL: StringRule = StringRule { min: 1, max: 255, pattern: r"[a-zA-Z0-9_.\-:]+", is_match: is_external };
const USER: StringRule = StringRule { min: 1, max: 128, pattern: r"[a-zA-Z0-9_.\-:]+", is_match: is_external };
const TOKEN: StringRule = StringRule { min: 0, max: 255, pattern: ".*", is_match: |_| true };
const FACE: StringRule = StringRule {
    min: 0,
    max: usize::MAX,
    pattern: "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    is_match: is_face,
};
const TAG: StringRule = StringRule {
    min: 1,
    max: 128,
    pattern: r"^(?!aws:)[\p{L}\p{Z}\p{N}_.:/=+\-@]*$",
    is_match: |t| !t.starts_with("aws:") && is_tag(t),
};
const TAG_VALUE: StringRule =
    StringRule { min: 0, max: 256, pattern: r"^([\p{L}\p{Z}\p{N}_.:/=+\-@]*)$", is_match: is_tag };
const MAX_TAGS: usize = 200;

const FILTERS: [(&str, QualityFilter); 5] = [
    ("NONE", QualityFilter::None),
    ("AUTO", QualityFilter::Auto),
    ("LOW", QualityFilter::Low),
    ("MEDIUM", QualityFilter::Medium),
    ("HIGH", QualityFilter::High),
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

pub fn collection_id(members: &mut MemberReader) -> Result<String, ApiError> {
    let value = members.string("CollectionId", &COLLECTION)?;
    members.required("CollectionId", value)
}

pub fn external_image_id(members: &mut MemberReader) -> Result<Option<String>, ApiError> {
    members.string("ExternalImageId", &EXTERNAL)
}

pub fn user_id(members: &mut MemberReader) -> Result<Option<String>, ApiError> {
    members.string("UserId", &USER)
}

pub fn next_token(members: &mut MemberReader) -> Result<Option<String>, ApiError> {
    members.string("NextToken", &TOKEN)
}

/// Reads `MaxResults`; absent or 0 means the default of the operation.
pub fn max_results(members: &mut MemberReader) -> Result<Option<usize>, ApiError> {
    let max = members.integer("MaxResults", 0, MAX_FACES)?;
    Ok(max.and_then(|max| usize::try_from(max).ok()).filter(|max| *max > 0))
}

pub fn max_faces(members: &mut MemberReader, max: i64) -> Result<Option<usize>, ApiError> {
    Ok(members.integer("MaxFaces", 1, max)?.and_then(|max| usize::try_from(max).ok()))
}

pub fn face_id(members: &mut MemberReader) -> Result<Uuid, ApiError> {
    let value = members.string("FaceId", &FACE)?;
    Ok(uuid(&members.required("FaceId", value)?))
}

pub fn face_ids(members: &mut MemberReader) -> Result<Option<Vec<Uuid>>, ApiError> {
    let max = usize::try_from(MAX_FACES).unwrap_or(usize::MAX);
    Ok(members.strings("FaceIds", 1, max, &FACE)?.map(|faces| faces.iter().map(|face| uuid(face)).collect()))
}

/// Parses a face ID, which is valid because it satisfies the pattern.
fn uuid(text: &str) -> Uuid {
    Uuid::try_parse(text).unwrap_or_default()
}

pub fn tags(members: &mut MemberReader) -> Result<Vec<(String, String)>, ApiError> {
    members.map("Tags", MAX_TAGS, &TAG, &TAG_VALUE)
}

pub fn quality_filter(members: &mut MemberReader) -> Result<Option<QualityFilter>, ApiError> {
    members.choice("QualityFilter", &FILTERS)
}
