//! The object store on S3.

use async_trait::async_trait;
use aws_sdk_s3::{
    Client,
    primitives::{ByteStream, DateTime},
    types::Object as Found,
};
use sparks_domain::Timestamp;
use sparks_engine::{
    Content, DependencyError, Object, ObjectEntry, ObjectInfo, Objects, ObjectsError, PutMode, object_key, sha256,
};

use crate::{
    connect::Connection,
    error::AwsError,
    retry::{backoff, with_retry},
};

/// A bucket.
pub struct S3Objects {
    client: Client,
    bucket: String,
}

/// Keys per page of a listing, as S3 limits them.
const PAGE: i32 = 1000;
/// The name of the user metadata with the SHA-256 of the body.
const SHA256: &str = "sha256";
/// Times that an interrupted download is resumed.
const RESUMES: usize = 3;

/// A key that no object has. Reading it tells a missing permission (403) from a missing object (404).
pub(crate) const ABSENT_KEY: &str = "sparks-doctor-looks-for-what-is-not-there";

/// Errors of a download.
enum ReadError {
    /// The object has this many bytes, more than allowed.
    TooLarge(u64),
    /// The request failed, the connection broke, or the object changed between two ranges.
    Failed(AwsError),
}

impl S3Objects {
    /// Creates the adapter of this bucket.
    pub fn new(connection: &Connection, bucket: &str) -> Self {
        Self { client: connection.s3(), bucket: bucket.to_owned() }
    }

    /// Downloads the object. An interrupted download is resumed by range if the object is unchanged.
    async fn read(&self, key: &str, most: u64) -> Result<Object, ReadError> {
        let mut object = Object { bytes: Vec::new(), version: String::new() };
        let mut resumes = 0..RESUMES;
        loop {
            match self.resume_read(key, most, &mut object).await {
                Err(ReadError::Failed(_)) if !object.bytes.is_empty() && resumes.next().is_some() => {}
                read => return read.map(|()| object),
            }
        }
    }

    /// Finds out whether a 403 is about this object alone or about the worker's permissions.
    ///
    /// S3 answers 403 for a missing object to a caller without `s3:ListBucket`, and 404 to a caller with it. So if the
    /// bucket can be listed and an absent key beside the object gives 404, the 403 is about the object itself. A denied KMS
    /// key affects many objects, so it counts as a missing permission.
    async fn explain_access_denied(&self, key: &str, error: AwsError) -> ObjectsError {
        let (whole, reason) = (key.to_owned(), error.access_denied_reason());
        let listed = with_retry(|| self.client.head_bucket().bucket(&self.bucket).send()).await;
        if listed.is_err_and(|error| error.is_access_denied()) {
            let missing = "without s3:ListBucket S3 also denies access to objects that do not exist";
            let error = DependencyError::AccessDenied(format!("{reason}; {missing}"));
            return ObjectsError::Dependency { key: whole, error };
        }
        let beside = format!("{}{ABSENT_KEY}", &key[..key.rfind('/').map_or(0, |slash| slash + 1)]);
        let other = with_retry(|| self.client.get_object().bucket(&self.bucket).key(&beside).send()).await;
        match other {
            Err(other) if other.status == Some(404) && !error.message.contains("kms:") => {
                let reason = format!(
                    "{error}; other objects of the bucket can be read: check the owner and the KMS key of this one"
                );
                ObjectsError::Forbidden { key: whole, reason }
            }
            _ => ObjectsError::Dependency { key: whole, error: DependencyError::AccessDenied(reason) },
        }
    }

    async fn resume_read(&self, key: &str, most: u64, object: &mut Object) -> Result<(), ReadError> {
        let mut here = object.bytes.len();
        let resumed = (here > 0).then_some(());
        let get = || {
            let get = self.client.get_object().bucket(&self.bucket).key(key);
            let get = get.set_range(resumed.map(|()| format!("bytes={here}-")));
            get.set_if_match(resumed.map(|()| format!("\"{}\"", object.version))).send()
        };
        let mut answer = with_retry(get).await.map_err(ReadError::Failed)?;
        // A server without range requests sends the whole object, and no `Content-Range`.
        if answer.content_range.is_none() {
            object.bytes.clear();
            here = 0;
        }
        let length = answer.content_length.and_then(|length| u64::try_from(length).ok()).unwrap_or_default();
        if here as u64 + length > most {
            return Err(ReadError::TooLarge(here as u64 + length));
        }
        object.version = etag_version(answer.e_tag.as_deref());
        object.bytes.reserve(usize::try_from(length).unwrap_or_default());
        while let Some(chunk) = answer.body.next().await {
            let interrupted = |error| {
                let message = format!("download interrupted: {error}");
                ReadError::Failed(AwsError::new("S3", "GetObject", None, message))
            };
            object.bytes.extend_from_slice(&chunk.map_err(interrupted)?);
            if object.bytes.len() as u64 > most {
                return Err(ReadError::TooLarge(object.bytes.len() as u64));
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
            Err(ReadError::TooLarge(bytes)) => {
                Err(ObjectsError::TooLarge { key: key.to_owned(), bytes, most: most_bytes })
            }
            Err(ReadError::Failed(error)) if error.is_access_denied() => {
                Err(self.explain_access_denied(key, error).await)
            }
            Err(ReadError::Failed(error)) => Err(objects_error(key, error)),
        }
    }

    async fn put(&self, key: &str, body: Vec<u8>, content: Content, mode: PutMode) -> Result<bool, ObjectsError> {
        object_key(key)?;
        let (digest, body) = (sha256(&body), bytes::Bytes::from(body));
        let (if_none_match, if_match) = match &mode {
            PutMode::Replace => (None, None),
            PutMode::IfAbsent => (Some("*".to_owned()), None),
            PutMode::IfVersion(version) => (None, Some(format!("\"{version}\""))),
        };
        let put = || {
            let put = self.client.put_object().bucket(&self.bucket).key(key).body(ByteStream::from(body.clone()));
            let put = put.content_type(content.content_type).cache_control(content.cache_control);
            let put = put.metadata(SHA256, &digest);
            put.set_if_none_match(if_none_match.clone()).set_if_match(if_match.clone()).send()
        };
        let mut backoff = backoff();
        loop {
            match with_retry(put).await {
                Ok(_) => return Ok(true),
                Err(error) if error.status == Some(412) => return Ok(false),
                // The object that was to be replaced does not exist.
                Err(error) if error.status == Some(404) && error.has_code(&["NoSuchKey"]) => return Ok(false),
                // S3 answers 409 (conflict) while another conditional write to the key is in progress.
                Err(error) if error.status == Some(409) => match backoff.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return Err(objects_error(key, error)),
                },
                Err(error) => return Err(objects_error(key, error)),
            }
        }
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        object_key(key)?;
        let delete = || self.client.delete_object().bucket(&self.bucket).key(key).send();
        match with_retry(delete).await.map_err(|error| objects_error(key, error)) {
            Ok(_) | Err(ObjectsError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Needs permission to read the object as well.
    async fn delete_version(&self, key: &str, version: &str) -> Result<(), ObjectsError> {
        object_key(key)?;
        let if_match = format!("\"{version}\"");
        let delete = || self.client.delete_object().bucket(&self.bucket).key(key).if_match(&if_match).send();
        let mut backoff = backoff();
        loop {
            match with_retry(delete).await {
                Ok(_) => return Ok(()),
                Err(error) if error.status == Some(412) => return Ok(()),
                // S3 answers 409 (conflict) while another request writes the key.
                Err(error) if error.status == Some(409) => match backoff.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return Err(objects_error(key, error)),
                },
                Err(error) => match objects_error(key, error) {
                    ObjectsError::NotFound(_) => return Ok(()),
                    error => return Err(error),
                },
            }
        }
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectInfo>, ObjectsError> {
        object_key(key)?;
        let head = || self.client.head_object().bucket(&self.bucket).key(key).send();
        match with_retry(head).await {
            Ok(answer) => Ok(Some(ObjectInfo {
                bytes: answer.content_length.and_then(|n| u64::try_from(n).ok()).unwrap_or_default(),
                version: etag_version(answer.e_tag.as_deref()),
                sha256: answer.metadata.and_then(|mut metadata| metadata.remove(SHA256)),
                modified: timestamp(answer.last_modified.as_ref()),
            })),
            Err(error) if error.is_access_denied() => Err(self.explain_access_denied(key, error).await),
            Err(error) => match objects_error(key, error) {
                ObjectsError::NotFound(_) => Ok(None),
                error => Err(error),
            },
        }
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<ObjectEntry>, ObjectsError> {
        let (mut found, mut token) = (Vec::new(), None::<String>);
        while found.len() < most {
            let room = i32::try_from(most - found.len()).unwrap_or(PAGE).min(PAGE);
            let list = || {
                let list = self.client.list_objects_v2().bucket(&self.bucket).prefix(prefix).max_keys(room);
                let list = list.set_start_after(after.filter(|after| !after.is_empty()).map(str::to_owned));
                list.set_continuation_token(token.clone()).send()
            };
            let answer = with_retry(list).await.map_err(|error| objects_error(prefix, error))?;
            found.extend(answer.contents.unwrap_or_default().iter().filter_map(to_entry));
            token = answer.next_continuation_token;
            if token.is_none() {
                break;
            }
        }
        found.truncate(most);
        Ok(found)
    }

    /// Checks that the bucket exists and can be listed. Stores nothing: a write would cause an event notification.
    async fn check(&self) -> Result<(), ObjectsError> {
        let head = || self.client.head_bucket().bucket(&self.bucket).send();
        with_retry(head).await.map(drop).map_err(|error| {
            let bucket = format!("bucket {}", self.bucket);
            let context = if error.is_access_denied() { format!("{bucket}: s3:ListBucket") } else { bucket };
            ObjectsError::Dependency { key: "check".to_owned(), error: error.with_context(&context).into() }
        })
    }
}

/// Classifies an error for this object. A missing bucket is not a missing object.
pub(crate) fn objects_error(key: &str, error: AwsError) -> ObjectsError {
    let key = key.to_owned();
    let error = match error.status {
        Some(404) if !error.has_code(&["NoSuchBucket"]) => return ObjectsError::NotFound(key),
        _ if error.is_access_denied() => {
            let all = "required: s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket";
            DependencyError::AccessDenied(format!("{}; {all}", error.access_denied_reason()))
        }
        _ => error.into(),
    };
    ObjectsError::Dependency { key, error }
}

fn to_entry(object: &Found) -> Option<ObjectEntry> {
    let bytes = object.size().and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
    Some(ObjectEntry { key: object.key()?.to_owned(), bytes, modified: timestamp(object.last_modified()) })
}

fn timestamp(time: Option<&DateTime>) -> Timestamp {
    Timestamp::from_millis(time.and_then(|time| time.to_millis().ok()).unwrap_or_default())
}

/// Returns the ETag as event notifications spell it: without quotes.
pub(crate) fn etag_version(e_tag: Option<&str>) -> String {
    e_tag.unwrap_or_default().trim_start_matches("W/").trim_matches('"').to_owned()
}
