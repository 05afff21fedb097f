//! Object keys in messages: URL encoding, validation and the identifiers they contain.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sparks_domain::{Email, ImageId, object_keys};

use super::malformed::MalformedMessage;

/// S3's maximum length of a key, in bytes.
pub(super) const MAX_KEY_BYTES: usize = 1024;

/// The folder of a key, which determines how its object is processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folder {
    /// Original photos.
    Originals,
    /// Profile pictures of users.
    Profiles,
    /// Output of the worker, or foreign objects.
    Other,
}

impl Folder {
    /// Returns the folder of this key.
    pub fn of(key: &str) -> Self {
        if object_keys::is_original(key) {
            Self::Originals
        } else if object_keys::is_profile(key) {
            Self::Profiles
        } else {
            Self::Other
        }
    }
}

/// Decodes a key as S3 encodes it in notifications: `+` is a space, and a literal `+` is `%2B`.
pub(super) fn decode(encoded: &str) -> Result<String, MalformedMessage> {
    let with_spaces = encoded.replace('+', " ");
    let decoded = percent_decode_str(&with_spaces).decode_utf8();
    let key = decoded.map_err(|_| MalformedMessage::bad_key(encoded, "its percent escapes are not valid UTF-8"))?;
    Ok(key.into_owned())
}

/// Encodes a key as S3 does in notifications.
pub(super) fn encode(key: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'*');
    // Unambiguous: a literal %20 in the key has become %2520.
    utf8_percent_encode(key, ESCAPED).to_string().replace("%20", "+")
}

/// Validates any key: no path traversal, no control characters that could corrupt a log.
pub(super) fn validate(key: &str) -> Result<(), MalformedMessage> {
    let bad = |reason: &str| Err(MalformedMessage::bad_key(key, reason));
    if key.len() > MAX_KEY_BYTES {
        return bad(&format!("it has {} bytes; the maximum is {MAX_KEY_BYTES}", key.len()));
    }
    if key.contains('\\') {
        return bad("it contains a backslash; the separator is /");
    }
    if key.chars().any(char::is_control) {
        return bad("it contains a control character");
    }
    match key.split('/').find(|segment| ["", ".", ".."].contains(segment)) {
        Some("") => bad("it has an empty segment; names are separated by exactly one /, with none at either end"),
        Some(dots) => bad(&format!("it has the segment {dots:?}, which is not a name")),
        None => Ok(()),
    }
}

/// Whether the key denotes a folder, or an object among the originals without an image extension.
pub(super) fn is_not_a_photo(key: &str) -> bool {
    key.ends_with('/') || object_keys::is_original(key) && !object_keys::has_image_extension(key)
}

/// Returns the photo whose original has this key.
pub(super) fn image_id(key: &str) -> Result<ImageId, MalformedMessage> {
    validate(key)?;
    object_keys::image_of_original(key).map_err(|error| {
        let (folder, extensions) = (object_keys::ORIGINALS, object_keys::IMAGE_EXTENSIONS.join(","));
        MalformedMessage::bad_key(key, format!("{error}; expected {folder}{{imageId}}.{{{extensions}}}"))
    })
}

/// Returns the user whose profile picture has this key.
pub(super) fn profile_owner(key: &str) -> Result<Email, MalformedMessage> {
    validate(key)?;
    object_keys::user_of_profile(key).map_err(|error| {
        let expected = object_keys::PROFILES.map(|folder| format!("{folder}{{email}}/...")).join(" or ");
        MalformedMessage::bad_key(key, format!("{error}; expected {expected}"))
    })
}

/// Whether this is the valid key of a variant of this photo.
pub(super) fn is_variant_of(key: &str, image: &ImageId) -> bool {
    object_keys::is_variant_of(key, image) && validate(key).is_ok()
}
