//! Profile pictures of the platform's users.

use std::time::Duration;

use serde_json::json;
use sparks_domain::{Email, Key, Timestamp};
use sparks_engine::{Content, Objects, PutMode, upload_event};

use crate::{
    memory::MemoryObjects,
    photo_content::{Look, PhotoContent},
    platform::{BUCKET, Platform},
};

/// The profile picture that a user uploaded last.
#[derive(Debug, Clone)]
pub(crate) struct ProfilePicture {
    pub content: PhotoContent,
    pub uploaded: Timestamp,
}

/// How the worker learns of a profile picture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfileNotice {
    /// Whether S3 notifies, instead of the platform after it has changed the row.
    pub is_object_event: bool,
    pub delay: Duration,
}

/// The shortest time between two pictures of a user: S3 orders objects by whole seconds.
const BETWEEN_PICTURES: i64 = 2000;

impl Platform {
    /// Uploads a profile picture of a user. Each has a key of its own, and earlier ones stay in the bucket.
    pub async fn change_profile(&self, user: u32, face: Look, is_damaged: bool, notice: ProfileNotice) {
        let now = self.clock.now();
        let is_too_soon = |last: &ProfilePicture| now.as_millis() - last.uploaded.as_millis() < BETWEEN_PICTURES;
        if self.profiles().get(&user).is_some_and(is_too_soon) {
            return;
        }
        let content = self.new_version(vec![face], is_damaged);
        self.set_profile(user, ProfilePicture { content: content.clone(), uploaded: now });
        let (email, body) = (user_email(user), content.to_string().into_bytes());
        let (key, version, bytes) =
            (format!("profiles/{email}/{}.jpg", content.serial), MemoryObjects::version(&body), body.len() as u64);
        self.story.tell(|| format!("platform: {email} uploads the profile picture {key} ({content})"));
        let stored = self.objects.put(&key, body, Content::image("image/jpeg"), PutMode::Replace).await;
        assert!(stored.is_ok(), "the bucket takes an upload");
        if notice.is_object_event {
            let sequencer = format!("{:016X}", 1_000_000 + content.serial);
            self.send(&upload_event(BUCKET, &key, bytes, &version, &sequencer, ""), notice.delay);
        }
        self.store
            .change_row(&Key::user(&email), |row| {
                let changed = json!({ "entityType": "USER", "email": email, "profilePicture": key, "updatedAt": now });
                let mut row = row.unwrap_or_default();
                row.extend(changed.as_object().cloned().unwrap_or_default());
                Some(row)
            })
            .await;
        if !notice.is_object_event {
            let message =
                json!({ "bucketName": BUCKET, "objectKey": key, "isProfilePicture": true, "userEmail": email });
            self.send(&message.to_string(), notice.delay);
        }
    }
}

/// Returns the e-mail address of a user.
pub(crate) fn user_email(user: u32) -> Email {
    #[allow(clippy::unwrap_used, reason = "an address of this form is valid")]
    format!("user{user}@example.org").parse().unwrap()
}
