//! Objects in S3.

use async_trait::async_trait;
use aws_sdk_s3::{
    Client,
    primitives::{ByteStream, DateTime},
    types::Object as Found,
};
use sparks_domain::Timestamp;
use sparks_engine::{Content, Listed, Object, Objects, ObjectsError, PutMode, object_key};

use crate::{
    connect::Connection,
    trouble::{Trouble, patiently, pauses},
};

/// A bucket in the cloud.
pub struct S3Objects {
    client: Client,
    bucket: String,
}

/// As many keys as one listing has.
const PAGE: i32 = 1000;
/// How often a body that breaks off is gone on with.
const RESUMES: usize = 3;

/// What no object is called: to read it is to learn whether we may read at all.
pub(crate) const NOT_THERE: &str = "sparks-doctor-looks-for-what-is-not-there";

/// Why an object is only partly here.
enum Partly {
    /// It has so many bytes: more than asked for.
    TooLarge(u64),
    /// The connection broke, or the object changed.
    Broken(Trouble),
}

impl S3Objects {
    /// Works on this bucket.
    pub fn new(connection: &Connection, bucket: &str) -> Self {
        Self { client: connection.s3(), bucket: bucket.to_owned() }
    }

    /// Reads the body, and where it breaks off goes on from there, if the object is still the same.
    async fn read(&self, key: &str, most: u64) -> Result<Object, Partly> {
        let mut object = Object { bytes: Vec::new(), version: String::new() };
        let mut resumes = 0..RESUMES;
        loop {
            match self.read_on(key, most, &mut object).await {
                Err(Partly::Broken(_)) if !object.bytes.is_empty() && resumes.next().is_some() => {}
                read => return read.map(|()| object),
            }
        }
    }

    /// Why S3 says 403 to whoever reads this object: because we may read none, or because of the object itself.
    ///
    /// The bucket, and an object that is not there, tell which. Without `s3:ListBucket` S3 says 403 of missing objects, too,
    /// so that nobody can tell; with it, whoever may read gets a 404 for an object that is not there, and a 403 is about the
    /// one object. A key of KMS stands before many objects: what it refuses is no single one.
    async fn closed(&self, key: &str, trouble: Trouble) -> ObjectsError {
        let (whole, reason) = (key.to_owned(), trouble.denial());
        let listed = patiently(|| self.client.head_bucket().bucket(&self.bucket).send()).await;
        if listed.is_err_and(|trouble| trouble.is_forbidden()) {
            let missing = "without s3:ListBucket S3 says the same of an object that is missing";
            return ObjectsError::Denied { key: whole, reason: format!("{reason}; {missing}") };
        }
        let beside = format!("{}{NOT_THERE}", &key[..key.rfind('/').map_or(0, |slash| slash + 1)]);
        let other = patiently(|| self.client.get_object().bucket(&self.bucket).key(&beside).send()).await;
        match other {
            Err(other) if other.status == Some(404) && !trouble.words.contains("kms:") => {
                let reason = format!("{trouble}; others beside it are open to us: look at its owner and its key");
                ObjectsError::Forbidden { key: whole, reason }
            }
            _ => ObjectsError::Denied { key: whole, reason },
        }
    }

    async fn read_on(&self, key: &str, most: u64, object: &mut Object) -> Result<(), Partly> {
        let mut here = object.bytes.len();
        let resumed = (here > 0).then_some(());
        let get = || {
            let get = self.client.get_object().bucket(&self.bucket).key(key);
            let get = get.set_range(resumed.map(|()| format!("bytes={here}-")));
            get.set_if_match(resumed.map(|()| format!("\"{}\"", object.version))).send()
        };
        let mut answer = patiently(get).await.map_err(Partly::Broken)?;
        // Not every service goes on in the middle: one that begins anew says no range.
        if answer.content_range.is_none() {
            object.bytes.clear();
            here = 0;
        }
        let length = answer.content_length.and_then(|length| u64::try_from(length).ok()).unwrap_or_default();
        if here as u64 + length > most {
            return Err(Partly::TooLarge(here as u64 + length));
        }
        object.version = version(answer.e_tag.as_deref());
        object.bytes.reserve(usize::try_from(length).unwrap_or_default());
        while let Some(chunk) = answer.body.next().await {
            let broken = |error| Partly::Broken(Trouble { code: None, status: None, words: format!("{error}") });
            object.bytes.extend_from_slice(&chunk.map_err(broken)?);
            if object.bytes.len() as u64 > most {
                return Err(Partly::TooLarge(object.bytes.len() as u64));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Objects for S3Objects {
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError> {
        object_key(key)?;
        match self.read(key, most_bytes).await {
            Ok(object) => Ok(object),
            Err(Partly::TooLarge(bytes)) => {
                Err(ObjectsError::TooLarge { key: key.to_owned(), bytes, most: most_bytes })
            }
            Err(Partly::Broken(trouble)) if trouble.is_forbidden() => Err(self.closed(key, trouble).await),
            Err(Partly::Broken(trouble)) => Err(failed(key, trouble)),
        }
    }

    async fn put(&self, key: &str, body: Vec<u8>, content: Content, mode: PutMode) -> Result<bool, ObjectsError> {
        object_key(key)?;
        let body = bytes::Bytes::from(body);
        let put = || {
            let put = self.client.put_object().bucket(&self.bucket).key(key).body(ByteStream::from(body.clone()));
            let put = put.content_type(content.content_type).cache_control(content.cache_control);
            put.set_if_none_match((mode == PutMode::IfAbsent).then(|| "*".to_owned())).send()
        };
        let mut pauses = pauses();
        loop {
            match patiently(put).await {
                Ok(_) => return Ok(true),
                Err(trouble) if trouble.status == Some(412) => return Ok(false),
                // Somebody else is writing it: whether they do is not known yet.
                Err(trouble) if trouble.status == Some(409) => match pauses.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return Err(failed(key, trouble)),
                },
                Err(trouble) => return Err(failed(key, trouble)),
            }
        }
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        object_key(key)?;
        let delete = || self.client.delete_object().bucket(&self.bucket).key(key).send();
        match patiently(delete).await.map_err(|trouble| failed(key, trouble)) {
            Ok(_) | Err(ObjectsError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, ObjectsError> {
        object_key(key)?;
        let head = || self.client.head_object().bucket(&self.bucket).key(key).send();
        match patiently(head).await {
            Ok(answer) => Ok(Some(answer.content_length.and_then(|n| u64::try_from(n).ok()).unwrap_or_default())),
            Err(trouble) if trouble.is_forbidden() => Err(self.closed(key, trouble).await),
            Err(trouble) => match failed(key, trouble) {
                ObjectsError::NotFound(_) => Ok(None),
                error => Err(error),
            },
        }
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Listed>, ObjectsError> {
        let (mut found, mut token) = (Vec::new(), None::<String>);
        while found.len() < most {
            let room = i32::try_from(most - found.len()).unwrap_or(PAGE).min(PAGE);
            let list = || {
                let list = self.client.list_objects_v2().bucket(&self.bucket).prefix(prefix).max_keys(room);
                let list = list.set_start_after(after.filter(|after| !after.is_empty()).map(str::to_owned));
                list.set_continuation_token(token.clone()).send()
            };
            let answer = patiently(list).await.map_err(|trouble| failed(prefix, trouble))?;
            found.extend(answer.contents.unwrap_or_default().iter().filter_map(listed));
            token = answer.next_continuation_token;
            if token.is_none() {
                break;
            }
        }
        found.truncate(most);
        Ok(found)
    }

    /// Whether the bucket is there and ours. Nothing is stored for it: whoever hears of new objects would hear of that.
    async fn check(&self) -> Result<(), ObjectsError> {
        let head = || self.client.head_bucket().bucket(&self.bucket).send();
        patiently(head).await.map(drop).map_err(|trouble| {
            let (key, place) = ("check".to_owned(), format!("bucket {}", self.bucket));
            match trouble.is_forbidden() {
                true => {
                    ObjectsError::Denied { key, reason: trouble.in_place(&format!("{place}: s3:ListBucket")).denial() }
                }
                false => ObjectsError::Unavailable { key, reason: trouble.in_place(&place).words },
            }
        })
    }
}

/// What the trouble means for this object. A bucket that is not there is no missing object.
pub(crate) fn failed(key: &str, trouble: Trouble) -> ObjectsError {
    let key = key.to_owned();
    match trouble.status {
        Some(404) if !trouble.is(&["NoSuchBucket"]) => ObjectsError::NotFound(key),
        _ if trouble.is_forbidden() => {
            let all = "s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket are needed";
            ObjectsError::Denied { key, reason: format!("{}; {all}", trouble.denial()) }
        }
        _ if trouble.is_busy() => ObjectsError::Busy { key, reason: trouble.words },
        _ => ObjectsError::Unavailable { key, reason: trouble.words },
    }
}

fn listed(object: &Found) -> Option<Listed> {
    let modified = object.last_modified().and_then(|time: &DateTime| time.to_millis().ok()).unwrap_or_default();
    let bytes = object.size().and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
    Some(Listed { key: object.key()?.to_owned(), bytes, modified: Timestamp::from_millis(modified) })
}

/// The version as messages call it: without quotes.
pub(crate) fn version(e_tag: Option<&str>) -> String {
    e_tag.unwrap_or_default().trim_start_matches("W/").trim_matches('"').to_owned()
}
