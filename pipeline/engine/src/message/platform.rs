//! The platform's own messages. They do not encode keys.

use serde_json::Value;
use sparks_domain::{Email, InvalidId};

use super::{
    fields::Fields,
    key,
    malformed::{Malformed, cut},
    object_event::{ObjectEvent, check_bucket},
    request::{DeleteRef, FinishedVariants, ProfileRef, Request},
};

/// What a message asks for that is neither S3's nor EventBridge's.
pub(super) fn read(fields: &Fields<'_>, ours: &str) -> Result<Request, Malformed> {
    if fields.has("action") {
        read_action(fields)
    } else if fields.flag("isProfilePicture")? {
        read_profile(fields, ours)
    } else if fields.has("originalObjectKey") {
        read_thumbnails(fields, ours)
    } else if fields.has("objectKey") {
        ObjectEvent::created(fields.required_text("bucketName"), fields.required_text("objectKey")?).into_request(ours)
    } else {
        Err(unknown(fields))
    }
}

fn unknown(fields: &Fields<'_>) -> Malformed {
    let known = "`Records` (S3), `Type` and `Message` (SNS), `detail-type` (EventBridge), `action`, `originalObjectKey` or \
                 `objectKey` (the platform)";
    Malformed::NotAMessage(format!("its fields are {:?}; expected {known}", fields.names()))
}

fn read_action(fields: &Fields<'_>) -> Result<Request, Malformed> {
    match fields.required_text("action")? {
        "delete" => {
            let (image, uploader) = (parsed(fields, "imageId")?, parsed(fields, "uploadedBy")?);
            Ok(Request::Delete(DeleteRef { image, uploader }))
        }
        other => Err(fields.bad("action", format!("is {:?}, and only \"delete\" is known", cut(other)))),
    }
}

/// The variants are made. If the message does not say where, we make them ourselves: an unusable hint costs work, not the photo.
fn read_thumbnails(fields: &Fields<'_>, ours: &str) -> Result<Request, Malformed> {
    let event = ObjectEvent::created(fields.required_text("bucketName"), fields.required_text("originalObjectKey")?);
    ObjectEvent { finished: finished(fields), ..event }.into_request(ours)
}

fn finished(fields: &Fields<'_>) -> Option<FinishedVariants> {
    let key = |name: &str, suffix: &str| {
        let named = fields.value(name).and_then(Value::as_str);
        named.or_else(|| listed(fields.value("processedImages")?, suffix)).map(str::to_owned)
    };
    Some(FinishedVariants { large: key("largeImageKey", "large")?, medium: key("mediumImageKey", "medium")? })
}

/// The key that the list gives to this suffix, which is written with or without what parts it from the name.
fn listed<'a>(images: &'a Value, suffix: &str) -> Option<&'a str> {
    let has_suffix = |image: &&Value| {
        let written = image.get("suffix").and_then(Value::as_str);
        written.is_some_and(|written| written.trim_start_matches(['_', '-']) == suffix)
    };
    images.as_array()?.iter().find(has_suffix)?.get("key")?.as_str()
}

/// The message names the user, and so does the key: who is believed must not depend on which of them is read.
fn read_profile(fields: &Fields<'_>, ours: &str) -> Result<Request, Malformed> {
    check_bucket(fields.required_text("bucketName")?, ours)?;
    let (key, email) = (fields.required_text("objectKey")?, parsed::<Email>(fields, "userEmail")?);
    if key::owner(key)? != email {
        let reason = format!(
            "it is not in the folder of {email}; expected profiles/{email}/... or profile-pictures/{email}/..."
        );
        return Err(Malformed::bad_key(key, reason));
    }
    Ok(Request::Profile(ProfileRef { email, key: key.to_owned(), version: None, sequencer: None }))
}

fn parsed<T: std::str::FromStr<Err = InvalidId>>(fields: &Fields<'_>, name: &str) -> Result<T, Malformed> {
    let text = fields.required_text(name)?;
    let wrong = |invalid: InvalidId| fields.bad(name, format!("is {:?}, which is not {}", cut(text), invalid.expected));
    text.parse().map_err(wrong)
}
