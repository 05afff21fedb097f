//! S3 event notifications, received directly from S3 or through SNS.

use serde_json::{Value, json};

use super::{
    fields::Fields,
    key,
    malformed::{MalformedMessage, truncate},
    object_event::{ObjectChange, ObjectEvent, non_empty, version_from_etag},
    request::Request,
};

/// Returns the notification that S3 sends for this upload. `file_name` is an additional field that other consumers ignore.
pub fn upload_event(bucket: &str, key: &str, bytes: u64, version: &str, sequencer: &str, file_name: &str) -> String {
    let object = json!({ "key": key::encode(key), "size": bytes, "eTag": version, "sequencer": sequencer });
    let s3 = json!({ "bucket": { "name": bucket }, "object": object });
    json!({ "Records": [{ "eventName": "ObjectCreated:Put", "s3": s3, "fileName": file_name }] }).to_string()
}

/// Parses all records of a notification, in order. A malformed record among several becomes a [`Request::Malformed`], so that
/// the other records are still processed.
pub(super) fn parse(fields: &Fields<'_>, own_bucket: &str) -> Result<Vec<Request>, MalformedMessage> {
    let records = fields.required_list("Records")?;
    if records.is_empty() {
        return Err(fields.bad("Records", "is empty, where at least one record is expected"));
    }
    if let [record] = records {
        return Ok(vec![parse_record(record, own_bucket)?]);
    }
    let parse_one = |(n, record): (usize, &Value)| {
        let malformed_record = |malformed| {
            let (number, records) = (n + 1, records.len());
            Request::Malformed(MalformedMessage::InRecord { number, records, malformed: Box::new(malformed) })
        };
        parse_record(record, own_bucket).unwrap_or_else(malformed_record)
    };
    Ok(records.iter().enumerate().map(parse_one).collect())
}

/// Parses the test event that S3 sends when bucket notifications are configured.
pub(super) fn parse_test_event(fields: &Fields<'_>) -> Result<Request, MalformedMessage> {
    match fields.required_text("Event")? {
        "s3:TestEvent" => Ok(Request::Ignored { reason: "s3:TestEvent only tests that notifications arrive".into() }),
        other => Err(fields.bad("Event", format!("is {:?}, and only \"s3:TestEvent\" is known", truncate(other)))),
    }
}

fn parse_record(record: &Value, own_bucket: &str) -> Result<Request, MalformedMessage> {
    let record = Fields::of_record(record, "Records")?;
    let name = record.text("eventName")?;
    let Some(change) = object_change(name) else {
        let reason = format!("the event {:?} asks for nothing", truncate(name.unwrap_or_default()));
        return Ok(Request::Ignored { reason });
    };
    let s3 = record.required_object("s3")?;
    let object = s3.required_object("object")?;
    let event = ObjectEvent {
        change,
        bucket: s3.required_object("bucket").and_then(|bucket| bucket.required_text("name")),
        key: key::decode(object.required_text("key")?)?,
        version: version_from_etag(object.text("eTag")?),
        sequencer: non_empty(object.text("sequencer")?),
        file_name: non_empty(record.text("fileName")?),
        finished: None,
    };
    event.into_request(own_bucket)
}

/// Returns the change that an event name denotes. `None` for events that need no action: lifecycle expiration, restore, tagging,
/// ACL changes and any event type S3 adds later. Some S3-compatible stores prefix the name with `s3:`, as the bucket
/// configuration does.
fn object_change(name: Option<&str>) -> Option<ObjectChange> {
    let Some(name) = name else { return Some(ObjectChange::Created) };
    let (kind, _) = name.strip_prefix("s3:").unwrap_or(name).split_once(':')?;
    match kind {
        "ObjectCreated" => Some(ObjectChange::Created),
        "ObjectRemoved" => Some(ObjectChange::Removed),
        _ => None,
    }
}
