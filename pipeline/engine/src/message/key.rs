//! Keys of objects: how S3 writes them, and what they say.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sparks_domain::{Email, ImageId, InvalidId};

use super::malformed::Malformed;

/// The most bytes a key can have in S3.
pub(super) const LONGEST: usize = 1024;

const ORIGINALS: &str = "originals/";
const PROFILES: [&str; 2] = ["profiles/", "profile-pictures/"];
pub(crate) const ENDINGS: [&str; 5] = ["jpg", "jpeg", "png", "webp", "gif"];

/// Whose business the objects in a folder are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folder {
    /// Photos.
    Originals,
    /// Users' pictures of themselves.
    Profiles,
    /// Our own output, or somebody else's.
    Other,
}

impl Folder {
    /// The folder of this key.
    pub fn of(key: &str) -> Self {
        if key.starts_with(ORIGINALS) {
            Self::Originals
        } else if within_profiles(key).is_some() {
            Self::Profiles
        } else {
            Self::Other
        }
    }
}

/// The key that S3 wrote into a notification. It writes a blank as `+`, and only then escapes: a `+` of the name itself
/// arrives as %2B.
pub(super) fn decode(encoded: &str) -> Result<String, Malformed> {
    let blanks = encoded.replace('+', " ");
    let decoded = percent_decode_str(&blanks).decode_utf8();
    let key = decoded.map_err(|_| Malformed::bad_key(encoded, "its percent escapes are not valid UTF-8"))?;
    Ok(key.into_owned())
}

/// The key as S3 would write it into a notification.
pub(super) fn encode(key: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'*');
    // A %20 of the name itself is %2520 by now.
    utf8_percent_encode(key, ESCAPED).to_string().replace("%20", "+")
}

/// What holds for every key, ours or not: nothing in it can lead out of its folder or garble a log.
pub(super) fn check(key: &str) -> Result<(), Malformed> {
    let bad = |reason: &str| Err(Malformed::bad_key(key, reason));
    if key.len() > LONGEST {
        return bad(&format!("it has {} bytes, and {LONGEST} are the most", key.len()));
    }
    if key.contains('\\') {
        return bad("it contains a backslash, and folders are parted by /");
    }
    if key.chars().any(char::is_control) {
        return bad("it contains a control character");
    }
    match key.split('/').find(|segment| ["", ".", ".."].contains(segment)) {
        Some("") => bad("it has an empty segment: one / stands between two names, and none at either end"),
        Some(dots) => bad(&format!("it has the segment {dots:?}, which is not a name")),
        None => Ok(()),
    }
}

/// Whether this is a folder's own key, or stands among the originals and is none by its ending.
pub(super) fn is_no_photo(key: &str) -> bool {
    let ending = key.rsplit_once('.').map_or("", |(_, ending)| ending);
    let foreign = key.starts_with(ORIGINALS) && !ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known));
    key.ends_with('/') || foreign
}

/// The photo whose original has this key.
pub(super) fn image(key: &str) -> Result<ImageId, Malformed> {
    check(key)?;
    let bad = |what: String| {
        let expected = format!("{ORIGINALS}{{imageId}}.{{{}}}", ENDINGS.join(","));
        Malformed::bad_key(key, format!("{what}; expected {expected}"))
    };
    let name = key.strip_prefix(ORIGINALS).ok_or_else(|| bad(format!("it is not under {ORIGINALS}")))?;
    if name.contains('/') {
        return Err(bad("it is in a folder of its own".into()));
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.parse().map_err(|invalid: InvalidId| bad(invalid.to_string()))
}

/// The user whose profile picture has this key.
pub(super) fn owner(key: &str) -> Result<Email, Malformed> {
    check(key)?;
    let bad = |what: String| {
        Malformed::bad_key(
            key,
            format!("{what}; expected {}", PROFILES.map(|f| format!("{f}{{email}}/...")).join(" or ")),
        )
    };
    let inside = within_profiles(key).ok_or_else(|| bad("it is not that of a profile picture".into()))?;
    let (email, _) = inside.split_once('/').ok_or_else(|| bad("it is not in a user's folder".into()))?;
    email.parse().map_err(|invalid: InvalidId| bad(invalid.to_string()))
}

/// Whether this is the key of a picture made of this photo.
pub(super) fn is_variant_of(key: &str, image: &ImageId) -> bool {
    let name = key.strip_prefix("processed/").and_then(|name| name.strip_prefix(image.as_str()));
    name.is_some_and(|rest| !rest.contains('/')) && check(key).is_ok()
}

fn within_profiles(key: &str) -> Option<&str> {
    PROFILES.iter().find_map(|folder| key.strip_prefix(folder))
}
