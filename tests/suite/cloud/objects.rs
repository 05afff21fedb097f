//! The S3 adapter: contract suites, interrupted downloads, and denied access.

use std::sync::Arc;

use sparks_aws::S3Objects;
use sparks_engine::{Content, DependencyError, Objects, ObjectsError, PutMode};
use sparks_tests::{
    contract::{self, OutageFixture},
    emulator::{self, Emulator},
    proxy::{Proxy, serve_responses},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s3_objects_keep_the_contract() {
    let emulator = Emulator::start().await;
    let connection = emulator.connect().await;
    let make = async || Arc::new(S3Objects::new(&connection, &emulator.bucket().await)) as Arc<dyn Objects>;
    contract::objects(make).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_unreachable_service_is_reported_as_unavailable() {
    let emulator = Emulator::start().await;
    let make = async || {
        let proxy = Arc::new(Proxy::start(&emulator.endpoint()).await);
        let connection = emulator::connect(&proxy.endpoint()).await;
        let objects = Arc::new(S3Objects::new(&connection, &emulator.bucket().await));
        let (start, end) = (Arc::clone(&proxy), proxy);
        OutageFixture {
            objects,
            start_outage: Box::new(move || start.set_down(true)),
            end_outage: Box::new(move || end.set_down(false)),
        }
    };
    contract::outage(make).await.assert_passed();
}

/// Returns the head of a response with a body of this length.
fn head(status: &str, length: usize, range: &str) -> String {
    format!("HTTP/1.1 {status}\r\nETag: \"v1\"\r\nContent-Length: {length}\r\n{range}Connection: close\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_interrupted_download_resumes_if_the_object_is_unchanged() {
    let interrupted = format!("{}01234", head("200 OK", 10, ""));
    let rest = format!("{}56789", head("206 Partial Content", 5, "Content-Range: bytes 5-9/10\r\n"));
    let (endpoint, requests) = serve_responses(vec![interrupted.clone(), rest]).await;
    let objects = S3Objects::new(&emulator::connect(&endpoint).await, "photos");
    let object = objects.get("a", 100).await.unwrap();
    assert_eq!((object.bytes.as_slice(), object.version.as_str()), (b"0123456789".as_slice(), "v1"));
    let requests = requests.await.unwrap();
    assert!(!requests[0].contains("range: ") && !requests[0].contains("if-match: "), "{}", requests[0]);
    assert!(requests[1].contains("range: bytes=5-") && requests[1].contains("if-match: \"v1\""), "{}", requests[1]);

    // A service without support for ranges sends the whole object again.
    let whole = format!("{}0123456789", head("200 OK", 10, ""));
    let (endpoint, _) = serve_responses(vec![interrupted.clone(), whole]).await;
    let objects = S3Objects::new(&emulator::connect(&endpoint).await, "photos");
    assert_eq!(objects.get("a", 100).await.unwrap().bytes, b"0123456789");

    // Two versions are never mixed.
    let changed = head("412 Precondition Failed", 0, "");
    let (endpoint, _) = serve_responses(vec![interrupted, changed.clone(), changed.clone(), changed]).await;
    let objects = S3Objects::new(&emulator::connect(&endpoint).await, "photos");
    let mixed = objects.get("a", 100).await;
    assert!(matches!(mixed, Err(ObjectsError::Dependency { error: DependencyError::Unavailable(_), .. })), "{mixed:?}");
}

/// A missing object may appear later; a forbidden one needs a permission.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_forbidden_object_is_distinguished_from_a_missing_one() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let objects = S3Objects::new(&emulator::connect(&proxy.endpoint()).await, &emulator.bucket().await);
    let denied = |objects: &Result<(), ObjectsError>| {
        matches!(objects, Err(ObjectsError::Dependency { error: DependencyError::AccessDenied(_), .. }))
    };
    assert!(matches!(objects.get("a", 10).await, Err(ObjectsError::NotFound(_))));
    let body = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
    proxy.intercept(move |_, _| Some((403, body.to_owned())));
    let content = Content::image("image/jpeg");
    for refused in [
        objects.get("a", 10).await.map(drop),
        objects.head("a").await.map(drop),
        objects.delete("a").await,
        objects.put("a", vec![1], content, PutMode::Replace).await.map(drop),
    ] {
        assert!(denied(&refused), "{refused:?}");
        assert!(refused.unwrap_err().to_string().contains("sparks doctor"), "the remedy is not named");
    }
    let message = |refused: Result<(), ObjectsError>| refused.unwrap_err().to_string();
    let ambiguous = message(objects.get("a", 10).await.map(drop));
    assert!(ambiguous.contains("s3:ListBucket") && ambiguous.contains("missing"), "{ambiguous}");
    let checked = objects.check().await;
    assert!(denied(&checked), "{checked:?}");

    proxy.intercept(move |target, _| target.ends_with("/forbidden").then(|| (403, body.to_owned())));
    let one_forbidden =
        [objects.get("originals/forbidden", 10).await.map(drop), objects.head("originals/forbidden").await.map(drop)];
    for refused in one_forbidden {
        assert!(matches!(refused, Err(ObjectsError::Forbidden { .. })), "{refused:?}");
    }
    assert!(matches!(objects.get("originals/allowed", 10).await, Err(ObjectsError::NotFound(_))));

    proxy.intercept(move |target, _| target.contains("/originals/").then(|| (403, body.to_owned())));
    let all = objects.get("originals/forbidden", 10).await.map(drop);
    assert!(denied(&all), "{all:?}");
}
