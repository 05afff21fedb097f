//! Actions of the platform and its users other than uploading a photo.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use sparks_domain::{Email, Key, Presence};
use sparks_embedded::{Embedded, FileObjects};
use sparks_engine::{Commit, Content, Objects, PutMode, Queue, Store};

use crate::{
    album::Photo,
    samples::{empty_commit, set, uploader},
    worker::{BUCKET, image_of},
};

/// Sends a message with a deduplication ID of its own.
pub async fn send(backend: &Embedded, body: Value) {
    static SENT: AtomicU64 = AtomicU64::new(0);
    let name = format!("platform/{}", SENT.fetch_add(1, Ordering::Relaxed));
    backend.queue.send(&body.to_string(), &name).await.expect("message is sent");
}

/// Returns the message with which a user deletes a photo.
pub fn deletion_message(photo: &Photo) -> Value {
    json!({ "action": "delete", "imageId": image_of(photo), "uploadedBy": uploader() })
}

/// Returns the S3 event for the removal of a photo's original.
pub fn removal_message(photo: &Photo) -> Value {
    let object = json!({ "key": original_key(photo), "sequencer": "FFFFFFFFFFFFFFFF" });
    json!({ "Records": [{
        "eventName": "ObjectRemoved:Delete",
        "eventSource": "aws:s3",
        "s3": { "bucket": { "name": BUCKET }, "object": object },
    }] })
}

/// Returns the object key of a photo's original.
pub fn original_key(photo: &Photo) -> String {
    format!("originals/{}.jpg", image_of(photo))
}

/// Replaces the original of an uploaded photo and sends the S3 event for it, without a sequencer.
pub async fn upload_again(backend: &Embedded, photo: &Photo) {
    store_original(backend, photo).await;
    send(backend, upload_message(photo)).await;
}

/// Stores the original of a photo, in place of an earlier one.
pub async fn store_original(backend: &Embedded, photo: &Photo) {
    let (key, content) = (original_key(photo), Content::image("image/jpeg"));
    backend.objects.put(&key, photo.jpeg.clone(), content, PutMode::Replace).await.expect("original is stored");
}

/// Returns the S3 event for the upload of a photo, without a sequencer.
pub fn upload_message(photo: &Photo) -> Value {
    let object = json!({ "key": original_key(photo), "eTag": FileObjects::version(&photo.jpeg) });
    json!({ "Records": [{ "eventName": "ObjectCreated:Put", "s3": { "bucket": { "name": BUCKET }, "object": object } }] })
}

/// Creates a row, or changes attributes of an existing one.
pub async fn write_row(backend: &Embedded, key: &Key, row: Value) {
    let commit = Commit { mutations: vec![set(key, Presence::Any, row)], ..empty_commit() };
    backend.store.commit(&commit).await.expect("row is written");
}

/// Creates a USER row.
pub async fn sign_up(backend: &Embedded, email: &Email) {
    let row = json!({ "entityType": "USER", "email": email, "username": "ann", "karma": 7 });
    write_row(backend, &Key::user(email), row).await;
}

/// Sets the number of uploads that the sample uploader has left.
pub async fn set_upload_limit(backend: &Embedded, uploads: u32) {
    write_row(backend, &Key::limit(&uploader()), json!({ "entityType": "DEFAULT_LIMIT", "limit": uploads })).await;
}

/// Returns the number of uploads that the sample uploader has left.
pub async fn upload_limit(backend: &Embedded) -> Value {
    let row = backend.store.get(&Key::limit(&uploader())).await.expect("store answers").expect("LIMIT row exists");
    row.attributes["limit"].clone()
}

/// Stores a user's profile picture and sends the message for it.
pub async fn upload_profile_picture(backend: &Embedded, email: &Email, photo: &Photo) {
    let key = format!("profiles/{email}/{}.jpg", photo.number);
    let content = Content::image("image/jpeg");
    backend.objects.put(&key, photo.jpeg.clone(), content, PutMode::Replace).await.expect("profile picture is stored");
    let message = json!({ "bucketName": BUCKET, "objectKey": key, "isProfilePicture": true, "userEmail": email });
    send(backend, message).await;
}
