//! S3's events as EventBridge tells them. Unlike notifications they do not encode keys.

use super::{
    fields::Fields,
    malformed::{Malformed, cut},
    object_event::{Happened, ObjectEvent, said, version},
    request::Request,
};

/// What the event asks for.
pub(super) fn read(fields: &Fields<'_>, ours: &str) -> Result<Request, Malformed> {
    let source = fields.required_text("source")?;
    if source != "aws.s3" {
        return Err(fields.bad("source", format!("is {:?}, and only \"aws.s3\" is known", cut(source))));
    }
    let happened = match fields.required_text("detail-type")? {
        "Object Created" => Happened::Created,
        "Object Deleted" => Happened::Removed,
        other => return Ok(Request::Ignored { why: format!("the event {:?} asks for nothing", cut(other)) }),
    };
    let detail = fields.required_object("detail")?;
    if happened == Happened::Removed && detail.text("reason")? == Some("Lifecycle Expiration") {
        return Ok(Request::Ignored { why: "expiration by a lifecycle deletes nothing of ours".into() });
    }
    let object = detail.required_object("object")?;
    let event = ObjectEvent {
        happened,
        bucket: detail.required_object("bucket").and_then(|bucket| bucket.required_text("name")),
        key: object.required_text("key")?.to_owned(),
        version: version(object.text("etag")?),
        sequencer: said(object.text("sequencer")?),
        file_name: None,
        finished: None,
    };
    event.into_request(ours)
}
