//! The photo platform: uploads, deletions, and the notifications about them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::json;
use sparks_domain::{Email, ImageId, Key, PhotoStatus, object_keys};
use sparks_engine::{Clock, Content, Objects, PutMode, Store, Upload, upload_event};

use crate::{
    audit::Audit,
    memory::{MemoryObjects, MemoryQueue, MemoryStore},
    photo_content::{Look, PhotoContent},
    plan::Notice,
    profile::ProfilePicture,
    story::Story,
};

/// The name of the bucket.
pub(crate) const BUCKET: &str = "simulated";

/// The platform, and what it believes of each photo.
pub(crate) struct Platform {
    pub store: MemoryStore,
    pub objects: MemoryObjects,
    pub queue: MemoryQueue,
    pub clock: Arc<dyn Clock>,
    pub story: Story,
    audit: Arc<Audit>,
    truth: Mutex<Truth>,
}

#[derive(Default)]
struct Truth {
    /// The current content of each photo; `None` after its deletion.
    photos: BTreeMap<u64, Option<PhotoContent>>,
    /// The last profile picture of each user.
    profiles: BTreeMap<u32, ProfilePicture>,
    /// Every content that was ever uploaded, by its version.
    versions: BTreeMap<String, PhotoContent>,
    serial: u64,
    /// All messages that were sent, with the time.
    messages: Vec<SentMessage>,
}

#[derive(Clone)]
struct SentMessage {
    body: String,
    sent: sparks_domain::Timestamp,
}

impl Platform {
    pub fn new(
        store: MemoryStore,
        objects: MemoryObjects,
        queue: MemoryQueue,
        clock: Arc<dyn Clock>,
        story: Story,
        audit: Arc<Audit>,
    ) -> Self {
        Self { store, objects, queue, clock, story, audit, truth: Mutex::default() }
    }

    /// Returns the current content of each photo that exists, and `None` for each that was deleted.
    pub fn photos(&self) -> Vec<(ImageId, Option<PhotoContent>)> {
        let photos = self.truth().photos.clone();
        photos.into_iter().map(|(photo, content)| (image(photo), content)).collect()
    }

    /// Returns the content that was uploaded as this version.
    pub fn content_of(&self, version: &str) -> Option<PhotoContent> {
        self.truth().versions.get(version).cloned()
    }

    /// Uploads a photo or another version of it. A photo that is being deleted is not uploaded again before that is done: no
    /// platform gives a new upload the ID of a photo that its user has just deleted.
    pub async fn upload(&self, photo: u64, faces: Vec<Look>, is_damaged: bool, notice: Notice) {
        let is_deleted = matches!(self.truth().photos.get(&photo), Some(None));
        if is_deleted && !self.is_deletion_done(photo).await {
            return;
        }
        let content = self.new_version(faces, is_damaged);
        self.truth().photos.insert(photo, Some(content.clone()));
        let (image, body) = (image(photo), content.to_string().into_bytes());
        self.story.tell(|| format!("platform: uploads {image} ({content})"));
        let upload = Upload {
            bucket: BUCKET.into(),
            key: object_keys::original(&image, "jpg"),
            image,
            uploader: uploader(),
            version: MemoryObjects::version(&body),
            bytes: body.len() as u64,
            file_name: String::new(),
            when: self.clock.now(),
        };
        let stored = self.objects.put(&upload.key, body, Content::image("image/jpeg"), PutMode::Replace).await;
        assert!(stored.is_ok(), "the bucket takes an upload");
        let message = match notice.is_complete {
            true => {
                let sequencer = format!("{:016X}", 1_000_000 + content.serial);
                upload_event(BUCKET, &upload.key, upload.bytes, &upload.version, &sequencer, "")
            }
            false => json!({ "bucketName": BUCKET, "objectKey": upload.key }).to_string(),
        };
        self.send(&message, notice.delay);
        tokio::time::sleep(notice.row_delay).await;
        let is_current = self.truth().photos.get(&photo) == Some(&Some(content));
        if is_current {
            let (key, row) = upload.row();
            self.store.change_row(&key, |existing| Some(existing.unwrap_or(row))).await;
        }
    }

    /// Returns the last profile picture of each user.
    pub fn profiles(&self) -> BTreeMap<u32, ProfilePicture> {
        self.truth().profiles.clone()
    }

    pub(super) fn set_profile(&self, user: u32, picture: ProfilePicture) {
        self.truth().profiles.insert(user, picture);
    }

    /// Returns the content of a new upload, which is a version of its own.
    pub(super) fn new_version(&self, faces: Vec<Look>, is_damaged: bool) -> PhotoContent {
        let mut truth = self.truth();
        truth.serial += 1;
        let content = PhotoContent { serial: truth.serial, faces, is_damaged };
        let version = MemoryObjects::version(content.to_string().as_bytes());
        self.audit.uploaded(version.clone(), content.serial);
        truth.versions.insert(version, content.clone());
        content
    }

    /// Asks the worker to delete a photo.
    pub fn delete(&self, photo: u64) {
        if self.forget(photo) {
            self.story.tell(|| format!("platform: requests deletion of {}", image(photo)));
            let body = json!({ "action": "delete", "imageId": image(photo), "uploadedBy": uploader() });
            self.send(&body.to_string(), Duration::ZERO);
        }
    }

    /// Deletes object and row, as the platform's API does, and lets S3 notify.
    pub async fn remove(&self, photo: u64) {
        if !self.forget(photo) {
            return;
        }
        let image = image(photo);
        self.story.tell(|| format!("platform: removes {image}"));
        let key = object_keys::original(&image, "jpg");
        let removed = self.objects.delete(&key).await;
        assert!(removed.is_ok(), "the bucket deletes an object");
        self.store.change_row(&Key::image(&image, &uploader()), |_| None).await;
        let serial = self.truth().serial;
        let object = json!({ "key": key, "sequencer": format!("{:016X}", 1_000_000 + serial) });
        let s3 = json!({ "bucket": { "name": BUCKET }, "object": object });
        let body = json!({ "Records": [{ "eventName": "ObjectRemoved:Delete", "s3": s3 }] });
        self.send(&body.to_string(), Duration::ZERO);
    }

    /// Delivers an earlier message once more: a standard queue may do so at any time.
    pub fn redeliver(&self, message: usize) {
        let messages = self.truth().messages.clone();
        if let Some(message) = messages.get(message % messages.len().max(1)) {
            self.story.tell(|| format!("queue: redelivers {}", message.body));
            self.queue.send_again(&message.body, message.sent);
        }
    }

    pub(super) fn send(&self, body: &str, delay: Duration) {
        self.queue.send_after(body, delay);
        self.truth().messages.push(SentMessage { body: body.to_owned(), sent: self.clock.now() });
    }

    /// Marks a photo as deleted. Returns whether it existed.
    fn forget(&self, photo: u64) -> bool {
        let key = Key::image(&image(photo), &uploader());
        if !self.store.rows().iter().any(|row| row.key == key) {
            return false; // nothing that a user sees and could delete
        }
        let mut truth = self.truth();
        truth.serial += 1;
        match truth.photos.get_mut(&photo) {
            Some(content @ Some(_)) => {
                *content = None;
                true
            }
            _ => false,
        }
    }

    async fn is_deletion_done(&self, photo: u64) -> bool {
        let image = image(photo);
        let state = self.store.photo(&image).await.ok().flatten();
        let is_deleted = state.is_none_or(|state| state.status == PhotoStatus::Deleted);
        let is_gone = self.objects.body(&object_keys::original(&image, "jpg")).is_none();
        is_deleted && is_gone && self.queue.is_empty()
    }

    fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the ID of the photo with this number.
pub(crate) fn image(photo: u64) -> ImageId {
    let mut content = [0; 16];
    content[8..].copy_from_slice(&photo.to_be_bytes());
    ImageId::of_content(None, content)
}

/// Returns the user who uploads all photos.
pub(crate) fn uploader() -> Email {
    #[allow(clippy::unwrap_used, reason = "a constant")]
    "user@example.org".parse().unwrap()
}
