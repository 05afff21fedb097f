//! Objects in S3 keep the contract that files keep.

use std::sync::Arc;

use sparks_aws::S3Objects;
use sparks_engine::{Content, Objects, ObjectsError, PutMode};
use sparks_tests::{
    contract::{self, OutageRig},
    emulator::{self, Emulator},
    proxy::{Proxy, answers},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_objects_keep_their_contract() {
    let emulator = Emulator::start().await;
    let connection = emulator.connect().await;
    let make = async || Arc::new(S3Objects::new(&connection, &emulator.bucket().await)) as Arc<dyn Objects>;
    contract::objects(make).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_service_that_does_not_answer_is_an_outage() {
    let emulator = Emulator::start().await;
    let make = async || {
        let proxy = Arc::new(Proxy::start(&emulator.endpoint()).await);
        let connection = emulator::connect(&proxy.endpoint()).await;
        let objects = Arc::new(S3Objects::new(&connection, &emulator.bucket().await));
        let (away, back) = (Arc::clone(&proxy), proxy);
        OutageRig { objects, away: Box::new(move || away.set_down(true)), back: Box::new(move || back.set_down(false)) }
    };
    contract::outage(make).await.assert_passed();
}

/// The head of an answer whose body has so many bytes.
fn head(status: &str, length: usize, range: &str) -> String {
    format!("HTTP/1.1 {status}\r\nETag: \"v1\"\r\nContent-Length: {length}\r\n{range}Connection: close\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_body_that_breaks_off_is_gone_on_with_if_the_object_is_the_same() {
    let begun = format!("{}01234", head("200 OK", 10, ""));
    let rest = format!("{}56789", head("206 Partial Content", 5, "Content-Range: bytes 5-9/10\r\n"));
    let (endpoint, asked) = answers(vec![begun.clone(), rest]).await;
    let objects = S3Objects::new(&emulator::connect(&endpoint).await, "photos");
    let object = objects.get("a", 100).await.unwrap();
    assert_eq!((object.bytes.as_slice(), object.version.as_str()), (b"0123456789".as_slice(), "v1"));
    let asked = asked.await.unwrap();
    assert!(!asked[0].contains("range: ") && !asked[0].contains("if-match: "), "{}", asked[0]);
    assert!(asked[1].contains("range: bytes=5-") && asked[1].contains("if-match: \"v1\""), "{}", asked[1]);

    // A service that knows no ranges begins anew.
    let whole = format!("{}0123456789", head("200 OK", 10, ""));
    let (endpoint, _) = answers(vec![begun.clone(), whole]).await;
    let objects = S3Objects::new(&emulator::connect(&endpoint).await, "photos");
    assert_eq!(objects.get("a", 100).await.unwrap().bytes, b"0123456789");

    // Two versions are never mixed.
    let changed = head("412 Precondition Failed", 0, "");
    let (endpoint, _) = answers(vec![begun, changed.clone(), changed.clone(), changed]).await;
    let objects = S3Objects::new(&emulator::connect(&endpoint).await, "photos");
    let mixed = objects.get("a", 100).await;
    assert!(matches!(mixed, Err(ObjectsError::Unavailable { .. })), "{mixed:?}");
}

/// What is not there will be, and what is not ours needs somebody who grants it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_forbidden_object_is_told_from_a_missing_one() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let objects = S3Objects::new(&emulator::connect(&proxy.endpoint()).await, &emulator.bucket().await);
    let denied = |objects: &Result<(), ObjectsError>| matches!(objects, Err(ObjectsError::Denied { .. }));
    assert!(matches!(objects.get("a", 10).await, Err(ObjectsError::NotFound(_))));
    let words = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
    proxy.judge(move |_, _| Some((403, words.to_owned())));
    let content = Content::picture("image/jpeg");
    for refused in [
        objects.get("a", 10).await.map(drop),
        objects.head("a").await.map(drop),
        objects.delete("a").await,
        objects.put("a", vec![1], content, PutMode::Replace).await.map(drop),
    ] {
        assert!(denied(&refused), "{refused:?}");
        assert!(refused.unwrap_err().to_string().contains("sparks doctor"), "the remedy is not named");
    }
    let words_of = |refused: Result<(), ObjectsError>| refused.unwrap_err().to_string();
    let unsure = words_of(objects.get("a", 10).await.map(drop));
    assert!(unsure.contains("s3:ListBucket") && unsure.contains("missing"), "{unsure}");
    let checked = objects.check().await;
    assert!(denied(&checked), "{checked:?}");

    proxy.judge(move |target, _| target.ends_with("/closed").then(|| (403, words.to_owned())));
    let alone = [objects.get("originals/closed", 10).await.map(drop), objects.head("originals/closed").await.map(drop)];
    for refused in alone {
        assert!(matches!(refused, Err(ObjectsError::Forbidden { .. })), "{refused:?}");
    }
    assert!(matches!(objects.get("originals/open", 10).await, Err(ObjectsError::NotFound(_))));

    proxy.judge(move |target, _| target.contains("/originals/").then(|| (403, words.to_owned())));
    let all = objects.get("originals/closed", 10).await.map(drop);
    assert!(denied(&all), "{all:?}");
}
