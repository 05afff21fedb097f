//! Identifiers, each validated when it is parsed.

use std::{fmt, num::NonZeroU32, str::FromStr};

use serde::{Deserialize, Serialize};
use svix_ksuid::{Ksuid, KsuidLike};
use uuid::Uuid;

/// The error returned when a text is not a valid identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct InvalidId {
    /// The text.
    pub text: String,
    /// The expected form.
    pub expected: &'static str,
}

/// The ID of a photo: only a UUID or a KSUID, because it is a bare partition key in a table with other rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageId(String);

impl ImageId {
    /// Returns the ID of a photo taken at `unix_seconds` (the KSUID epoch, if earlier or unknown) with this content
    /// hash.
    pub fn of_content(unix_seconds: Option<i64>, content: [u8; 16]) -> Self {
        const EPOCH: i64 = 1_400_000_000;
        let seconds = unix_seconds.unwrap_or(EPOCH).clamp(EPOCH, EPOCH + i64::from(u32::MAX)) - EPOCH;
        let mut raw = [0; 20];
        raw[..4].copy_from_slice(&u32::try_from(seconds).unwrap_or(u32::MAX).to_be_bytes());
        raw[4..].copy_from_slice(&content);
        Self(Ksuid::from_bytes(raw).to_string())
    }

    /// Returns the ID under which the faces of a user's profile pictures are numbered. No photo or row has it.
    pub fn of_profile(email: &Email) -> Self {
        const NAMESPACE: Uuid = Uuid::from_u128(0x8f4b_2d3e_6c1a_4e57_9b0d_5a7c_e1f2_3b46);
        Self(Uuid::new_v5(&NAMESPACE, email.as_str().as_bytes()).to_string())
    }

    /// Returns the ID under which the face in an adopted person's crop is stored. No photo or row has it.
    pub fn of_crop(person: PersonId) -> Self {
        const NAMESPACE: Uuid = Uuid::from_u128(0x2c9e_71d4_05b8_4f63_a1d7_6e0b_93fc_8a25);
        Self(Uuid::new_v5(&NAMESPACE, person.to_string().as_bytes()).to_string())
    }

    /// Returns the ID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ImageId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let is_uuid = text.len() == 36 && Uuid::try_parse(text).is_ok();
        // 27 base-62 digits can exceed 20 bytes; texts sort as their values do, so the largest KSUID is the limit.
        let is_ksuid = text.len() == 27
            && text.bytes().all(|b| b.is_ascii_alphanumeric())
            && text <= "aWgEPTl1tmebfsQzFP4bxwgy80V";
        if is_uuid || is_ksuid {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId { text: text.to_owned(), expected: "an image ID (a UUID or a KSUID)" })
        }
    }
}

/// The ID of a person: `person{N}`, N from 1, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PersonId(NonZeroU32);

impl PersonId {
    /// Returns the person with this number; there is no person 0.
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// Returns the number after `person`.
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for PersonId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "person{}", self.0)
    }
}

impl FromStr for PersonId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        text.strip_prefix("person")
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0'))
            .and_then(|digits| digits.parse().ok())
            .map(Self)
            .ok_or_else(|| InvalidId { text: text.to_owned(), expected: "a person ID (person1, person2, ...)" })
    }
}

/// The ID of one face in one photo: `{imageId}#{n}`. Events refer to faces by ID only, never by signature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FaceId {
    /// The photo.
    pub image: ImageId,
    /// The face's number in the photo, from 0.
    pub n: u16,
}

impl FaceId {
    /// Returns the ID of the face in an adopted person's crop.
    pub fn of_crop(person: PersonId) -> Self {
        Self { image: ImageId::of_crop(person), n: 0 }
    }
}

impl fmt::Display for FaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.image, self.n)
    }
}

impl FromStr for FaceId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        text.split_once('#')
            .and_then(|(image, n)| Some(Self { image: image.parse().ok()?, n: n.parse().ok()? }))
            .filter(|face| face.to_string() == text)
            .ok_or_else(|| InvalidId { text: text.to_owned(), expected: "a face ID ({imageId}#{n})" })
    }
}

/// An e-mail address, as far as a key needs it: text before and after one `@`, no whitespace, no `#`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Email(String);

impl Email {
    /// Returns the address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Email {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let fits = text.len() <= 254 && !text.chars().any(|c| c == '#' || c.is_whitespace() || c.is_control());
        let (before, after) = text.split_once('@').unwrap_or_default();
        if fits && !before.is_empty() && !after.is_empty() && !after.contains('@') {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId { text: text.to_owned(), expected: "an e-mail address" })
        }
    }
}

/// The ID of an event: a UUIDv5 of its type and subject, so that a repeat has the same ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventId(Uuid);

impl EventId {
    /// Returns the ID of the event of this type about this subject.
    pub fn about(event_type: &str, subject: &str) -> Self {
        const SPARKS: Uuid = Uuid::from_u128(0x7370_6172_6b73_5f65_7665_6e74_5f6c_6f67);
        Self(Uuid::new_v5(&SPARKS, format!("{event_type}/{subject}").as_bytes()))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for EventId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Uuid::try_parse(text)
            .map(Self)
            .map_err(|_| InvalidId { text: text.to_owned(), expected: "an event ID (a UUID)" })
    }
}

/// Conversions from and to text, which serde uses.
macro_rules! as_text {
    ($($id:ident),*) => {$(
        impl TryFrom<String> for $id {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$id> for String {
            fn from(id: $id) -> String {
                id.to_string()
            }
        }
    )*};
}
as_text!(ImageId, PersonId, FaceId, Email, EventId);

macro_rules! display_inner {
    ($($id:ident),*) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
display_inner!(ImageId, Email);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_ids_are_uuids_or_ksuids_and_nothing_else() {
        for good in [
            "02df423f-0d45-4d59-b987-2ade841d0fbf",
            "0ujtsYcgvSTl8PAuAdqWYSMnLOv",
            "000000000000000000000000000",
            "aWgEPTl1tmebfsQzFP4bxwgy80V",
        ] {
            assert_eq!(good.parse::<ImageId>().map(|id| id.to_string()).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "UNKNOWN_PERSONS",
            "person1",
            "../secret",
            "02df423f0d454d59b9872ade841d0fbf",
            "{02df423f-0d45-4d59-b987-2ade841d0fbf}",
            "0ujtsYcgvSTl8PAuAdqWYSMnLO",
            "0ujtsYcgvSTl8PAuAdqWYSMnLO!",
            "aWgEPTl1tmebfsQzFP4bxwgy80W",
            "zzzzzzzzzzzzzzzzzzzzzzzzzzz",
        ] {
            assert!(bad.parse::<ImageId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn content_ids_sort_by_time_taken() {
        let old = ImageId::of_content(Some(1_500_000_000), [255; 16]);
        let new = ImageId::of_content(Some(1_500_000_001), [0; 16]);
        assert!(old < new);
        assert_eq!(ImageId::of_content(None, [7; 16]), ImageId::of_content(Some(0), [7; 16]));
        assert_eq!(ImageId::of_content(Some(i64::MAX), [255; 16]).as_str(), "aWgEPTl1tmebfsQzFP4bxwgy80V");
        assert_eq!(old.as_str().parse(), Ok(old));
    }

    #[test]
    fn person_and_face_ids_have_one_spelling() {
        assert_eq!("person12".parse::<PersonId>().map(PersonId::number), Ok(12));
        for bad in ["person0", "person01", "person", "Person1", "person+1", "person-1", "person99999999999"] {
            assert!(bad.parse::<PersonId>().is_err(), "{bad}");
        }
        let face = "0ujtsYcgvSTl8PAuAdqWYSMnLOv#3";
        assert_eq!(face.parse::<FaceId>().map(|f| f.to_string()).as_deref(), Ok(face));
        assert!("0ujtsYcgvSTl8PAuAdqWYSMnLOv#03".parse::<FaceId>().is_err());
    }

    #[test]
    fn the_same_subject_has_the_same_event_id() {
        assert_eq!(EventId::about("PhotoProcessed", "a/1"), EventId::about("PhotoProcessed", "a/1"));
        assert_ne!(EventId::about("PhotoProcessed", "a/1"), EventId::about("PhotoRejected", "a/1"));
    }
}
