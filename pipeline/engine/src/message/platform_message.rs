//! The platform's own message forms. Keys are not URL-encoded.

use serde_json::Value;
use sparks_domain::{Email, InvalidId};

use super::{
    fields::Fields,
    key,
    malformed::{MalformedMessage, truncate},
    object_event::{ObjectEvent, check_bucket},
    request::{DeleteRef, FinishedVariants, ProfileRef, Request},
};

/// Parses a message that comes neither from S3 nor from EventBridge.
pub(super) fn parse(fields: &Fields<'_>, own_bucket: &str) -> Result<Request, MalformedMessage> {
    if fields.has("action") {
        parse_action(fields)
    } else if fields.flag("isProfilePicture")? {
        parse_profile(fields, own_bucket)
    } else if fields.has("originalObjectKey") {
        parse_thumbnails(fields, own_bucket)
    } else if fields.has("objectKey") {
        ObjectEvent::created(fields.required_text("bucketName"), fields.required_text("objectKey")?)
            .into_request(own_bucket)
    } else {
        Err(unknown_form(fields))
    }
}

fn unknown_form(fields: &Fields<'_>) -> MalformedMessage {
    let known = "`Records` (S3), `Type` and `Message` (SNS), `detail-type` (EventBridge), `action`, `originalObjectKey` or \
                 `objectKey` (the platform)";
    MalformedMessage::NotAMessage(format!("its fields are {:?}; expected {known}", fields.names()))
}

fn parse_action(fields: &Fields<'_>) -> Result<Request, MalformedMessage> {
    match fields.required_text("action")? {
        "delete" => {
            let (image, uploader) = (parse_id(fields, "imageId")?, parse_id(fields, "uploadedBy")?);
            Ok(Request::Delete(DeleteRef { image, uploader }))
        }
        other => Err(fields.bad("action", format!("is {:?}, and only \"delete\" is known", truncate(other)))),
    }
}

/// Parses the message that a photo's variants are rendered. If it does not say where they are, the worker renders them itself:
/// an unusable hint costs work, not the photo.
fn parse_thumbnails(fields: &Fields<'_>, own_bucket: &str) -> Result<Request, MalformedMessage> {
    let event = ObjectEvent::created(fields.required_text("bucketName"), fields.required_text("originalObjectKey")?);
    ObjectEvent { finished: finished_variants(fields), ..event }.into_request(own_bucket)
}

fn finished_variants(fields: &Fields<'_>) -> Option<FinishedVariants> {
    let key = |name: &str, suffix: &str| {
        let named = fields.value(name).and_then(Value::as_str);
        named.or_else(|| key_with_suffix(fields.value("processedImages")?, suffix)).map(str::to_owned)
    };
    Some(FinishedVariants { large: key("largeImageKey", "large")?, medium: key("mediumImageKey", "medium")? })
}

/// Returns the key that the list has for this suffix, written with or without a leading `_` or `-`.
fn key_with_suffix<'a>(images: &'a Value, suffix: &str) -> Option<&'a str> {
    let has_suffix = |image: &&Value| {
        let written = image.get("suffix").and_then(Value::as_str);
        written.is_some_and(|written| written.trim_start_matches(['_', '-']) == suffix)
    };
    images.as_array()?.iter().find(has_suffix)?.get("key")?.as_str()
}

/// Parses the message about an uploaded profile picture. Both the message and the key name the user, and they must agree.
fn parse_profile(fields: &Fields<'_>, own_bucket: &str) -> Result<Request, MalformedMessage> {
    check_bucket(fields.required_text("bucketName")?, own_bucket)?;
    let (key, email) = (fields.required_text("objectKey")?, parse_id::<Email>(fields, "userEmail")?);
    if key::profile_owner(key)? != email {
        let reason = format!(
            "it is not in the folder of {email}; expected profiles/{email}/... or profile-pictures/{email}/..."
        );
        return Err(MalformedMessage::bad_key(key, reason));
    }
    Ok(Request::Profile(ProfileRef { email, key: key.to_owned(), version: None, sequencer: None }))
}

fn parse_id<T: std::str::FromStr<Err = InvalidId>>(fields: &Fields<'_>, name: &str) -> Result<T, MalformedMessage> {
    let text = fields.required_text(name)?;
    let wrong =
        |invalid: InvalidId| fields.bad(name, format!("is {:?}, which is not {}", truncate(text), invalid.expected));
    text.parse().map_err(wrong)
}
