//! The requests that messages make.

use sparks_domain::{Email, ImageId};

use super::MalformedMessage;

/// The request of a message, or of one record of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Process an uploaded photo.
    Photo(PhotoRef),
    /// Identify a user by a profile picture.
    Profile(ProfileRef),
    /// Delete a photo and credit the upload limit of its uploader.
    Delete(DeleteRef),
    /// Clean up after the original of a photo was removed.
    Removed(RemovedRef),
    /// Nothing: the message is acknowledged.
    Ignored {
        /// Why there is nothing to do.
        reason: String,
    },
    /// One malformed record of several: the message becomes a dead letter after the other records are processed.
    Malformed(MalformedMessage),
}

/// An uploaded photo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhotoRef {
    /// The photo.
    pub image: ImageId,
    /// The key of its original.
    pub key: String,
    /// The uploaded version, if the message contains it.
    pub version: Option<String>,
    /// S3's sequencer, which orders versions of the same key, if the message contains it.
    pub sequencer: Option<String>,
    /// The file name at the uploader, if the message contains it.
    pub file_name: Option<String>,
    /// The variants of the photo, if the platform has rendered them already.
    pub finished: Option<FinishedVariants>,
}

/// The variants that the platform has rendered of a photo: only its faces remain to be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedVariants {
    /// The key of the large variant, under `processed/`.
    pub large: String,
    /// The key of the medium variant, under `processed/`.
    pub medium: String,
}

/// A profile picture of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRef {
    /// The user.
    pub email: Email,
    /// The key of the picture.
    pub key: String,
    /// The uploaded version, if the message contains it.
    pub version: Option<String>,
    /// S3's sequencer, which orders versions of the same key, if the message contains it.
    pub sequencer: Option<String>,
}

/// A photo to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteRef {
    /// The photo.
    pub image: ImageId,
    /// The uploader according to the message. The IMAGE row is authoritative.
    pub uploader: Email,
}

/// A photo whose original was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedRef {
    /// The photo.
    pub image: ImageId,
    /// The key of its original.
    pub key: String,
    /// The removed version, if the message contains it.
    pub version: Option<String>,
    /// S3's sequencer, which orders events of the same key, if the message contains it.
    pub sequencer: Option<String>,
}
