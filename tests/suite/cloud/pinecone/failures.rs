//! Failures of Pinecone: throttled, unavailable, access denied; and vectors of other programs.

use std::time::{Duration, Instant};

use serde_json::json;
use sparks_engine::{DependencyError, FaceCollection, IndexError, RemovedFaces, Secret};
use sparks_pinecone::{Operation, Pinecone, PineconeConfig};
use sparks_tests::{
    pinecone_server::PineconeServer,
    proxy::Proxy,
    samples::{image, person},
};

use super::{
    DIMENSIONS, MODEL, calls, config, empty_index, enrollment, face_of, nearest, numbers, probe,
    server_validation::{headers, raw},
    signature,
};

#[tokio::test]
async fn a_throttled_call_waits_for_the_retry_after_header() {
    let (server, index) = empty_index().await;
    server.throttle(2, Some("1"));
    let started = Instant::now();
    index.enroll(&[enrollment(1, 1, MODEL, 0.0)], false).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(calls(&index, Operation::Upsert), 3);
    server.throttle(1, None);
    assert_eq!(numbers(&nearest(&index, MODEL, 0.0, 9).await), [1]);
    assert_eq!(calls(&index, Operation::Query), 2);
}

#[tokio::test]
async fn a_long_retry_after_is_reported_as_throttled_at_once() {
    let (server, index) = empty_index().await;
    server.throttle(100, Some("3600"));
    let error = index.enroll(&[enrollment(1, 1, MODEL, 0.0)], false).await.unwrap_err();
    assert!(
        matches!(&error, IndexError::Dependency(DependencyError::Throttled(reason)) if reason.contains("upsert") && reason.contains("429")),
        "{error}"
    );
    assert_eq!(calls(&index, Operation::Upsert), 1);
    server.throttle(100, None);
    let error = index.nearest(&probe(MODEL, Some(signature(0.0))), 1).await.unwrap_err();
    assert!(matches!(error, IndexError::Dependency(DependencyError::Throttled(_))), "{error}");
    assert_eq!(calls(&index, Operation::Query), 5, "a limited number of retries");
}

#[tokio::test]
async fn server_errors_are_reported_as_unavailable() {
    let (server, index) = empty_index().await;
    index.enroll(&[enrollment(1, 1, MODEL, 0.0)], false).await.unwrap();
    server.set_down(true);
    let host = server.endpoint().replace("http://", "");
    let assert_unavailable = |error: IndexError| {
        let text = error.to_string();
        assert!(matches!(error, IndexError::Dependency(DependencyError::Unavailable(_))), "{text}");
        assert!(text.contains(&host) && text.contains("503"), "{text}");
    };
    assert_unavailable(index.nearest(&probe(MODEL, Some(signature(0.0))), 1).await.unwrap_err());
    assert_unavailable(index.remove_persons(&[person(1)]).await.unwrap_err());
    assert_unavailable(index.check().await.unwrap_err());
    server.set_down(false);
    assert_eq!(numbers(&nearest(&index, MODEL, 0.0, 1).await), [1]);
}

#[tokio::test]
async fn closed_connections_and_invalid_responses_are_unavailable() {
    let server = PineconeServer::start(DIMENSIONS).await;
    let proxy = Proxy::start(&server.endpoint()).await;
    let proxied = PineconeConfig { host: proxy.endpoint(), ..config(&server, PineconeServer::KEY, "sparks") };
    let index = Pinecone::new(&proxied).unwrap();
    proxy.set_down(true);
    let error = index.check().await.unwrap_err();
    assert!(matches!(error, IndexError::Dependency(DependencyError::Unavailable(_))), "{error}");
    proxy.set_down(false);
    index.check().await.unwrap();
    proxy.intercept(|_, _| Some((200, "<html>".to_owned())));
    let error = index.describe().await.unwrap_err();
    assert!(
        matches!(&error, IndexError::Dependency(DependencyError::Unavailable(reason)) if reason.contains("failed to parse the response")),
        "{error}"
    );
    let secure = PineconeConfig { host: proxy.endpoint().replace("http:", "https:"), ..proxied.clone() };
    let error = Pinecone::new(&secure).unwrap().check().await.unwrap_err();
    assert!(matches!(error, IndexError::Dependency(DependencyError::Unavailable(_))), "no TLS: {error}");
    drop(proxy);
    let error = Pinecone::new(&proxied).unwrap().check().await.unwrap_err();
    assert!(
        matches!(&error, IndexError::Dependency(DependencyError::Unavailable(reason)) if reason.contains("refused")),
        "{error}"
    );
}

#[tokio::test]
async fn a_missing_response_is_a_timeout() {
    let (server, index) = empty_index().await;
    server.set_latency(Duration::from_secs(3600));
    let started = Instant::now();
    let error = index.nearest(&probe(MODEL, Some(signature(0.0))), 1).await.unwrap_err();
    assert!(
        matches!(&error, IndexError::Dependency(DependencyError::Unavailable(reason)) if reason.contains("timed out")),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_check_needs_no_call_after_a_success() {
    let (server, index) = empty_index().await;
    for _ in 0..3 {
        index.check().await.unwrap();
    }
    assert_eq!(calls(&index, Operation::Stats), 1, "no call before");
    server.set_down(true);
    index.enroll(&[enrollment(1, 1, MODEL, 0.0)], false).await.unwrap_err();
    server.set_down(false);
    index.check().await.unwrap();
    index.check().await.unwrap();
    assert_eq!(calls(&index, Operation::Stats), 2);
}

#[tokio::test]
async fn a_wrong_key_is_access_denied_and_never_printed() {
    let server = PineconeServer::start(DIMENSIONS).await;
    let proxy = Proxy::start(&server.endpoint()).await;
    let key = "pcsk_hunter2";
    let proxied = PineconeConfig { host: proxy.endpoint(), ..config(&server, key, "sparks") };
    let index = Pinecone::new(&proxied).unwrap();
    let mut shown = vec![format!("{proxied:?} {index:?}")];
    // Even if the service or a proxy repeats the key in its response.
    for status in [None, Some(400), Some(401), Some(403), Some(404)] {
        proxy.intercept(move |_, _| {
            Some((status?, json!({ "code": 16, "message": format!("no such key: {key}") }).to_string()))
        });
        let error = index.check().await.unwrap_err();
        assert!(matches!(error, IndexError::Dependency(DependencyError::AccessDenied(_))), "{error}");
        shown.extend([error.to_string(), format!("{error:?}")]);
    }
    assert!(shown.iter().all(|text| !text.contains("hunter2")), "{shown:#?}");
    assert!(Pinecone::new(&PineconeConfig { key: Secret::new("hunter2\n"), ..proxied }).is_err());
}

#[tokio::test]
async fn signatures_of_a_wrong_dimension_are_refused() {
    let server = PineconeServer::start(DIMENSIONS + 1).await;
    let index = Pinecone::new(&config(&server, PineconeServer::KEY, "sparks")).unwrap();
    for error in [
        index.enroll(&[enrollment(1, 1, MODEL, 0.0)], false).await.unwrap_err(),
        index.nearest(&probe(MODEL, Some(signature(0.0))), 1).await.unwrap_err(),
    ] {
        let IndexError::Dependency(DependencyError::AccessDenied(reason)) = error else { panic!("{error}") };
        assert!(reason.contains("Vector dimension 16 does not match the dimension of the index 17"), "{reason}");
    }
    assert_eq!(calls(&index, Operation::Query), 1, "no retry");
}

#[tokio::test]
async fn vectors_of_other_programs_are_ignored_and_kept() {
    let (server, index) = empty_index().await;
    let namespace = "sparks:synthetic-1";
    index.enroll(&[enrollment(1, 1, MODEL, 0.3)], false).await.unwrap();
    let values = signature(0.0).to_unit();
    let vector =
        |id: &str, person: serde_json::Value| json!({ "id": id, "values": values, "metadata": { "person": person } });
    let foreign = json!({ "namespace": namespace, "vectors": [
        { "id": "bare", "values": values },
        vector("doc1#chunk1", json!("person1")),
        vector("person1", json!(["person1"])),
        vector("person1#not-a-photo#0", json!("person1")),
        vector(&format!("person3#{}", face_of(&enrollment(3, 1, MODEL, 0.0)).1), json!(3)),
    ] });
    let (status, response) = raw(&server, "POST", "/vectors/upsert", &headers(), &foreign.to_string()).await;
    assert_eq!((status, &response["upsertedCount"]), (200, &json!(5)), "{response}");
    let found = nearest(&index, MODEL, 0.3, 9).await;
    assert_eq!(found, [(1, 1.0)]);
    index.remove_faces(&RemovedFaces::all(&image(1)), &[person(1)]).await.unwrap();
    assert_eq!(server.ids(namespace).len(), 5);
    assert_eq!(nearest(&index, MODEL, 0.0, 9).await, []);
}
