//! What a message can ask for.

use sparks_domain::{Email, ImageId};

use super::Malformed;

/// What a message, or one record of it, asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Take a photo in.
    Photo(PhotoRef),
    /// Find out who a user is.
    Profile(ProfileRef),
    /// Delete a photo, and credit its uploader.
    Delete(DeleteRef),
    /// Clean up after a photo whose original is gone.
    Removed(RemovedRef),
    /// Nothing: the message is acknowledged.
    Ignored {
        /// Why there is nothing to do.
        why: String,
    },
    /// One record of several that asks for nothing we know: a human must see it.
    Refused(Malformed),
}

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
    /// The pictures made of it, where somebody else has made them already.
    pub finished: Option<FinishedVariants>,
}

/// The pictures that somebody else has made of a photo: only its faces are left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedVariants {
    /// The key of the large one, under `processed/`.
    pub large: String,
    /// The key of the medium one, under `processed/`.
    pub medium: String,
}

/// A user's picture of themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRef {
    /// Whose picture it is.
    pub email: Email,
    /// The picture.
    pub key: String,
    /// The version that was uploaded, where the message tells.
    pub version: Option<String>,
    /// Orders versions of the same key, where the message tells.
    pub sequencer: Option<String>,
}

/// Somebody wants a photo gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteRef {
    /// The photo.
    pub image: ImageId,
    /// Who uploaded it, as the message claims: the IMAGE row decides.
    pub uploader: Email,
}

/// The original of a photo is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedRef {
    /// The photo.
    pub image: ImageId,
    /// Its original.
    pub key: String,
    /// The version that is gone, where the message tells.
    pub version: Option<String>,
    /// Orders what happened to the same key, where the message tells.
    pub sequencer: Option<String>,
}
