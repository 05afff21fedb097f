//! S3's own notifications, as they come straight from S3 or raw through SNS.

use serde_json::{Value, json};

use super::{
    fields::Fields,
    key,
    malformed::{Malformed, cut},
    object_event::{Happened, ObjectEvent, said, version},
    request::Request,
};

/// The message that S3 would send for this upload. `file_name` rides along where other readers ignore it.
pub fn upload_event(bucket: &str, key: &str, bytes: u64, version: &str, sequencer: &str, file_name: &str) -> String {
    let object = json!({ "key": key::encode(key), "size": bytes, "eTag": version, "sequencer": sequencer });
    let s3 = json!({ "bucket": { "name": bucket }, "object": object });
    json!({ "Records": [{ "eventName": "ObjectCreated:Put", "s3": s3, "fileName": file_name }] }).to_string()
}

/// What the records of a notification ask for, in their order. One that asks for nothing we know keeps the others from nothing.
pub(super) fn read(fields: &Fields<'_>, bucket: &str) -> Result<Vec<Request>, Malformed> {
    let records = fields.required_list("Records")?;
    if records.is_empty() {
        return Err(fields.bad("Records", "is empty, where at least one record is expected"));
    }
    if let [record] = records {
        return Ok(vec![read_record(record, bucket)?]);
    }
    let read = |(n, record): (usize, &Value)| {
        let refused = |malformed| {
            let (number, records) = (n + 1, records.len());
            Request::Refused(Malformed::InRecord { number, records, malformed: Box::new(malformed) })
        };
        read_record(record, bucket).unwrap_or_else(refused)
    };
    Ok(records.iter().enumerate().map(read).collect())
}

/// What S3 sends when somebody sets notifications up.
pub(super) fn read_test(fields: &Fields<'_>) -> Result<Request, Malformed> {
    match fields.required_text("Event")? {
        "s3:TestEvent" => Ok(Request::Ignored { why: "s3:TestEvent only tests that notifications arrive".into() }),
        other => Err(fields.bad("Event", format!("is {:?}, and only \"s3:TestEvent\" is known", cut(other)))),
    }
}

fn read_record(record: &Value, ours: &str) -> Result<Request, Malformed> {
    let record = Fields::of_record(record, "Records")?;
    let name = record.text("eventName")?;
    let Some(happened) = happened(name) else {
        let why = format!("the event {:?} asks for nothing", cut(name.unwrap_or_default()));
        return Ok(Request::Ignored { why });
    };
    let s3 = record.required_object("s3")?;
    let object = s3.required_object("object")?;
    let event = ObjectEvent {
        happened,
        bucket: s3.required_object("bucket").and_then(|bucket| bucket.required_text("name")),
        key: key::decode(object.required_text("key")?)?,
        version: version(object.text("eTag")?),
        sequencer: said(object.text("sequencer")?),
        file_name: said(record.text("fileName")?),
        finished: None,
    };
    event.into_request(ours)
}

/// What an event's name says; `None` for what concerns us not: expiration by a lifecycle, restoring, tags, rights, and whatever
/// S3 will invent. Some stores that speak S3 write `s3:` before the name, as the configuration does.
fn happened(name: Option<&str>) -> Option<Happened> {
    let Some(name) = name else { return Some(Happened::Created) };
    let (kind, _) = name.strip_prefix("s3:").unwrap_or(name).split_once(':')?;
    match kind {
        "ObjectCreated" => Some(Happened::Created),
        "ObjectRemoved" => Some(Happened::Removed),
        _ => None,
    }
}
