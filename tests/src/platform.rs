//! What the platform and its users do, besides uploading.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use sparks_domain::{Email, Key, Presence};
use sparks_embedded::Embedded;
use sparks_engine::{Commit, Content, Objects, PutMode, Queue, Store};

use crate::{
    album::Photo,
    samples::{nothing, set, uploader},
    worker::{BUCKET, image_of},
};

/// Sends a message that nobody has sent before.
pub async fn send(backend: &Embedded, body: Value) {
    static SENT: AtomicU64 = AtomicU64::new(0);
    let name = format!("platform/{}", SENT.fetch_add(1, Ordering::Relaxed));
    backend.queue.send(&body.to_string(), &name).await.expect("a queue");
}

/// The message by which a user deletes their photo.
pub fn deletion(photo: &Photo) -> Value {
    json!({ "action": "delete", "imageId": image_of(photo), "uploadedBy": uploader() })
}

/// The message that the original of a photo was removed.
pub fn removal(photo: &Photo) -> Value {
    let object = json!({ "key": original(photo), "sequencer": "FFFFFFFFFFFFFFFF" });
    json!({ "Records": [{
        "eventName": "ObjectRemoved:Delete",
        "eventSource": "aws:s3",
        "s3": { "bucket": { "name": BUCKET }, "object": object },
    }] })
}

/// Where the original of a photo is.
pub fn original(photo: &Photo) -> String {
    format!("originals/{}.jpg", image_of(photo))
}

/// Makes a row, or changes one.
pub async fn write(backend: &Embedded, key: &Key, row: Value) {
    let commit = Commit { mutations: vec![set(key, Presence::Any, row)], ..nothing() };
    backend.store.commit(&commit).await.expect("a row");
}

/// Makes a user.
pub async fn sign_up(backend: &Embedded, email: &Email) {
    let row = json!({ "entityType": "USER", "email": email, "username": "somebody", "karma": 7 });
    write(backend, &Key::user(email), row).await;
}

/// Allows the uploader so many uploads more.
pub async fn allow(backend: &Embedded, uploads: u32) {
    write(backend, &Key::limit(&uploader()), json!({ "entityType": "DEFAULT_LIMIT", "limit": uploads })).await;
}

/// How many more uploads the uploader is allowed.
pub async fn allowed(backend: &Embedded) -> Value {
    let row = backend.store.get(&Key::limit(&uploader())).await.expect("an answer").expect("a limit");
    row.attributes["limit"].clone()
}

/// Stores a user's picture of themselves and sends the message about it.
pub async fn show_oneself(backend: &Embedded, email: &Email, photo: &Photo) {
    let key = format!("profiles/{email}/{}.jpg", photo.number);
    let content = Content::picture("image/jpeg");
    backend.objects.put(&key, photo.jpeg.clone(), content, PutMode::Replace).await.expect("a stored picture");
    let message = json!({ "bucketName": BUCKET, "objectKey": key, "isProfilePicture": true, "userEmail": email });
    send(backend, message).await;
}
