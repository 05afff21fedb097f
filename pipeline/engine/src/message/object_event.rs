//! Something happened to an object of a bucket, whoever tells: S3, EventBridge or the platform.

use super::{
    key::{self, Folder},
    malformed::{Malformed, cut},
    request::{FinishedVariants, PhotoRef, ProfileRef, RemovedRef, Request},
};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    /// The object was written, for the first time or again.
    Created,
    /// The object was deleted by somebody.
    Removed,
}

/// Something happened to an object.
pub(super) struct ObjectEvent<'a> {
    pub happened: Happened,
    /// The bucket. That it is missing matters only if the object is our business.
    pub bucket: Result<&'a str, Malformed>,
    /// The key, decoded.
    pub key: String,
    pub version: Option<String>,
    pub sequencer: Option<String>,
    pub file_name: Option<String>,
    pub finished: Option<FinishedVariants>,
}

impl<'a> ObjectEvent<'a> {
    /// An object that was written, and nothing else is known.
    pub fn created(bucket: Result<&'a str, Malformed>, key: &str) -> Self {
        Self {
            happened: Happened::Created,
            bucket,
            key: key.to_owned(),
            version: None,
            sequencer: None,
            file_name: None,
            finished: None,
        }
    }

    /// What is to be done about it in the bucket `ours`.
    pub fn into_request(self, ours: &str) -> Result<Request, Malformed> {
        let folder = Folder::of(&self.key);
        if folder == Folder::Other || key::is_no_photo(&self.key) {
            // A console marks a folder by an object whose name ends like one.
            key::check(self.key.strip_suffix('/').unwrap_or(&self.key))?;
            let why = format!("the key {:?} is neither that of an original nor of a profile picture", self.key);
            return Ok(Request::Ignored { why });
        }
        check_bucket(self.bucket.clone()?, ours)?;
        match (folder, self.happened) {
            (Folder::Profiles, Happened::Created) => self.into_profile(),
            (Folder::Profiles, Happened::Removed) => {
                key::check(&self.key)?;
                let why = format!("the profile picture {:?} is gone, and nothing of ours depends on it", self.key);
                Ok(Request::Ignored { why })
            }
            (_, Happened::Created) => self.into_photo(),
            (_, Happened::Removed) => self.into_removed(),
        }
    }

    fn into_photo(self) -> Result<Request, Malformed> {
        let image = key::image(&self.key)?;
        let Self { key, version, sequencer, file_name, finished, .. } = self;
        // Pictures of another photo are no pictures of this one.
        let finished =
            finished.filter(|f| key::is_variant_of(&f.large, &image) && key::is_variant_of(&f.medium, &image));
        Ok(Request::Photo(PhotoRef { image, key, version, sequencer, file_name, finished }))
    }

    fn into_profile(self) -> Result<Request, Malformed> {
        let email = key::owner(&self.key)?;
        let Self { key, version, sequencer, .. } = self;
        Ok(Request::Profile(ProfileRef { email, key, version, sequencer }))
    }

    fn into_removed(self) -> Result<Request, Malformed> {
        let image = key::image(&self.key)?;
        let Self { key, version, sequencer, .. } = self;
        Ok(Request::Removed(RemovedRef { image, key, version, sequencer }))
    }
}

/// Objects of other buckets may have the same keys as ours.
pub(super) fn check_bucket(bucket: &str, ours: &str) -> Result<(), Malformed> {
    if bucket == ours {
        return Ok(());
    }
    Err(Malformed::OtherBucket { bucket: cut(bucket), ours: ours.to_owned() })
}

/// The version that an ETag names: HTTP quotes it, notifications do not.
pub(super) fn version(e_tag: Option<&str>) -> Option<String> {
    said(e_tag.map(|e_tag| e_tag.trim_matches('"')))
}

/// What a field says; an empty text says nothing.
pub(super) fn said(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}
