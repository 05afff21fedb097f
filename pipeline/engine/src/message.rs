//! What a message asks for: the edge where texts become types.

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::json;
use sparks_domain::ImageId;

/// A photo somebody uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhotoRef {
    /// The photo.
    pub image: ImageId,
    /// Its original.
    pub key: String,
    /// The version that was uploaded, where the message tells.
    pub version: Option<String>,
    /// Orders versions of the same key, where the message tells.
    pub sequencer: Option<String>,
    /// The name the file had at its owner's, where the message tells.
    pub file_name: Option<String>,
}

/// A message that asks for nothing we know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not the JSON of an upload event.
    #[error("the message is not an upload event: {0}")]
    NotAnEvent(String),
    /// An original that is not called like one.
    #[error("the key {key:?} is not that of an original: {reason}")]
    BadKey {
        /// The key, decoded.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl PhotoRef {
    /// The photos that an S3 event notification names: every record counts.
    pub fn parse(body: &str) -> Result<Vec<Self>, Malformed> {
        let notification: Notification =
            serde_json::from_str(body).map_err(|e| Malformed::NotAnEvent(e.to_string()))?;
        notification.records.into_iter().map(Self::of_record).collect()
    }

    fn of_record(record: Record) -> Result<Self, Malformed> {
        // S3 writes a blank as `+`, and only then escapes: a `+` of the name itself arrives as %2B.
        let blanks = record.s3.object.key.replace('+', " ");
        let key = percent_decode_str(&blanks).decode_utf8_lossy().into_owned();
        let bad = |reason: String| Malformed::BadKey { key: key.clone(), reason };
        let name = key.strip_prefix("originals/").ok_or_else(|| bad("it is not under originals/".into()))?;
        let (stem, ending) = name.rsplit_once('.').ok_or_else(|| bad("it has no file ending".into()))?;
        if !["jpg", "jpeg", "png", "webp", "gif"].contains(&ending) {
            return Err(bad(format!(".{ending} is not one of jpg, jpeg, png, webp, gif")));
        }
        let image = stem.parse().map_err(|e: sparks_domain::InvalidId| bad(e.to_string()))?;
        let Object { e_tag, sequencer, .. } = record.s3.object;
        Ok(Self { image, key, version: e_tag, sequencer, file_name: record.file_name })
    }
}

/// The message that S3 would send for this upload. `file_name` rides along where other readers ignore it.
pub fn upload_event(bucket: &str, key: &str, bytes: u64, version: &str, file_name: &str) -> String {
    let object = json!({ "key": key, "size": bytes, "eTag": version });
    let s3 = json!({ "bucket": { "name": bucket }, "object": object });
    json!({ "Records": [{ "eventName": "ObjectCreated:Put", "s3": s3, "fileName": file_name }] }).to_string()
}

#[derive(Deserialize)]
struct Notification {
    #[serde(rename = "Records")]
    records: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    s3: S3,
    file_name: Option<String>,
}

#[derive(Deserialize)]
struct S3 {
    object: Object,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    key: String,
    e_tag: Option<String>,
    sequencer: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "0ujtsYcgvSTl8PAuAdqWYSMnLOv";

    #[test]
    fn what_is_sent_is_understood() {
        let key = format!("originals/{IMAGE}.jpg");
        let photos = PhotoRef::parse(&upload_event("b", &key, 7, "v1", "a b+c.jpg")).expect("an event");
        assert_eq!(photos.len(), 1);
        assert_eq!((photos[0].key.as_str(), photos[0].version.as_deref()), (key.as_str(), Some("v1")));
        assert_eq!(photos[0].file_name.as_deref(), Some("a b+c.jpg"));
    }

    #[test]
    fn keys_of_others_are_refused_by_name() {
        for key in
            ["originals/UNKNOWN_PERSONS.jpg", "processed/x_large.webp", "originals/..%2Fsecret.jpg", "originals/x"]
        {
            let refused = PhotoRef::parse(&upload_event("b", key, 7, "v1", "f"));
            assert!(matches!(refused, Err(Malformed::BadKey { .. })), "{key}");
        }
        assert!(matches!(PhotoRef::parse("[]"), Err(Malformed::NotAnEvent(_))));
    }
}
