//! A change of an object in a bucket, in the form common to S3, EventBridge and the platform.

use super::{
    key::{self, Folder},
    malformed::{MalformedMessage, truncate},
    request::{FinishedVariants, PhotoRef, ProfileRef, RemovedRef, Request},
};

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectChange {
    /// The object was written, for the first time or again.
    Created,
    /// The object was deleted.
    Removed,
}

/// A change of an object.
pub(super) struct ObjectEvent<'a> {
    pub change: ObjectChange,
    /// The bucket. A missing bucket is an error only if the key is one the worker processes.
    pub bucket: Result<&'a str, MalformedMessage>,
    /// The key, decoded.
    pub key: String,
    pub version: Option<String>,
    pub sequencer: Option<String>,
    pub file_name: Option<String>,
    pub finished: Option<FinishedVariants>,
}

impl<'a> ObjectEvent<'a> {
    /// Returns the event of a written object of which only bucket and key are known.
    pub fn created(bucket: Result<&'a str, MalformedMessage>, key: &str) -> Self {
        Self {
            change: ObjectChange::Created,
            bucket,
            key: key.to_owned(),
            version: None,
            sequencer: None,
            file_name: None,
            finished: None,
        }
    }

    /// Returns the request that this event makes of a worker whose bucket is `own_bucket`.
    pub fn into_request(self, own_bucket: &str) -> Result<Request, MalformedMessage> {
        let folder = Folder::of(&self.key);
        if folder == Folder::Other || key::is_not_a_photo(&self.key) {
            // The S3 console creates an empty object whose key ends in / for a folder.
            key::validate(self.key.strip_suffix('/').unwrap_or(&self.key))?;
            let reason = format!("the key {:?} is neither that of an original nor of a profile picture", self.key);
            return Ok(Request::Ignored { reason });
        }
        check_bucket(self.bucket.clone()?, own_bucket)?;
        match (folder, self.change) {
            (Folder::Profiles, ObjectChange::Created) => self.into_profile(),
            (Folder::Profiles, ObjectChange::Removed) => {
                key::validate(&self.key)?;
                let reason = format!("no stored data depends on the removed profile picture {:?}", self.key);
                Ok(Request::Ignored { reason })
            }
            (_, ObjectChange::Created) => self.into_photo(),
            (_, ObjectChange::Removed) => self.into_removed(),
        }
    }

    fn into_photo(self) -> Result<Request, MalformedMessage> {
        let image = key::image_id(&self.key)?;
        let Self { key, version, sequencer, file_name, finished, .. } = self;
        // Variants of another photo are ignored: this photo's are rendered instead.
        let finished =
            finished.filter(|f| key::is_variant_of(&f.large, &image) && key::is_variant_of(&f.medium, &image));
        Ok(Request::Photo(PhotoRef { image, key, version, sequencer, file_name, finished }))
    }

    fn into_profile(self) -> Result<Request, MalformedMessage> {
        let email = key::profile_owner(&self.key)?;
        let Self { key, version, sequencer, .. } = self;
        Ok(Request::Profile(ProfileRef { email, key, version, sequencer }))
    }

    fn into_removed(self) -> Result<Request, MalformedMessage> {
        let image = key::image_id(&self.key)?;
        let Self { key, version, sequencer, .. } = self;
        Ok(Request::Removed(RemovedRef { image, key, version, sequencer }))
    }
}

/// Rejects other buckets: their objects may have the same keys.
pub(super) fn check_bucket(bucket: &str, own_bucket: &str) -> Result<(), MalformedMessage> {
    if bucket == own_bucket {
        return Ok(());
    }
    Err(MalformedMessage::OtherBucket { bucket: truncate(bucket), own_bucket: own_bucket.to_owned() })
}

/// Returns the version that an ETag denotes. HTTP puts it in quotes, notifications do not.
pub(super) fn version_from_etag(e_tag: Option<&str>) -> Option<String> {
    non_empty(e_tag.map(|e_tag| e_tag.trim_matches('"')))
}

/// Returns the text, or `None` if it is empty.
pub(super) fn non_empty(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}
