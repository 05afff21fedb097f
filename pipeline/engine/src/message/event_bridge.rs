//! S3 events as EventBridge delivers them. Unlike in S3 notifications, keys are not URL-encoded.

use super::{
    fields::Fields,
    malformed::{MalformedMessage, truncate},
    object_event::{ObjectChange, ObjectEvent, non_empty, version_from_etag},
    request::Request,
};

/// Parses the event into a request for the bucket `own_bucket`.
pub(super) fn parse(fields: &Fields<'_>, own_bucket: &str) -> Result<Request, MalformedMessage> {
    let source = fields.required_text("source")?;
    if source != "aws.s3" {
        return Err(fields.bad("source", format!("is {:?}, and only \"aws.s3\" is known", truncate(source))));
    }
    let change = match fields.required_text("detail-type")? {
        "Object Created" => ObjectChange::Created,
        "Object Deleted" => ObjectChange::Removed,
        other => return Ok(Request::Ignored { reason: format!("the event {:?} asks for nothing", truncate(other)) }),
    };
    let detail = fields.required_object("detail")?;
    if change == ObjectChange::Removed && detail.text("reason")? == Some("Lifecycle Expiration") {
        return Ok(Request::Ignored { reason: "expiration by a lifecycle deletes nothing of ours".into() });
    }
    let object = detail.required_object("object")?;
    let event = ObjectEvent {
        change,
        bucket: detail.required_object("bucket").and_then(|bucket| bucket.required_text("name")),
        key: object.required_text("key")?.to_owned(),
        version: version_from_etag(object.text("etag")?),
        sequencer: non_empty(object.text("sequencer")?),
        file_name: None,
        finished: None,
    };
    event.into_request(own_bucket)
}
