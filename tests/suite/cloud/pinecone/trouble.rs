//! An index that is busy, away, closed, or somebody else's too.

use std::time::{Duration, Instant};

use serde_json::json;
use sparks_engine::{Collection, IndexError, Secret};
use sparks_pinecone::{Access, Operation, Pinecone};
use sparks_tests::{
    pinecone::PineconeServer,
    proxy::Proxy,
    samples::{image, person},
};

use super::{
    DIMENSIONS, MODEL, access, calls, empty, lesson, named, nearest, probe, signature,
    strictness::{headers, raw},
    who,
};

#[tokio::test]
async fn whoever_asks_too_often_waits_as_long_as_is_asked_for() {
    let (server, index) = empty().await;
    server.throttle(2, Some("1"));
    let began = Instant::now();
    index.learn(&[lesson(1, 1, MODEL, 0.0)], false).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(calls(&index, Operation::Upsert), 3);
    server.throttle(1, None);
    assert_eq!(who(&nearest(&index, MODEL, 0.0, 9).await), [1]);
    assert_eq!(calls(&index, Operation::Query), 2);
}

#[tokio::test]
async fn whoever_is_to_wait_for_long_is_told_at_once() {
    let (server, index) = empty().await;
    server.throttle(100, Some("3600"));
    let error = index.learn(&[lesson(1, 1, MODEL, 0.0)], false).await.unwrap_err();
    assert!(matches!(&error, IndexError::Busy(words) if words.contains("upsert") && words.contains("429")), "{error}");
    assert_eq!(calls(&index, Operation::Upsert), 1);
    server.throttle(100, None);
    let error = index.nearest(&probe(MODEL, Some(signature(0.0))), 1).await.unwrap_err();
    assert!(matches!(error, IndexError::Busy(_)), "{error}");
    assert_eq!(calls(&index, Operation::Query), 5, "a few times, and no more");
}

#[tokio::test]
async fn an_outage_is_no_answer() {
    let (server, index) = empty().await;
    index.learn(&[lesson(1, 1, MODEL, 0.0)], false).await.unwrap();
    server.set_down(true);
    let host = server.endpoint().replace("http://", "");
    let is_away = |error: IndexError| {
        let words = error.to_string();
        assert!(matches!(error, IndexError::Unavailable(_)), "{words}");
        assert!(words.contains(&host) && words.contains("503"), "{words}");
    };
    is_away(index.nearest(&probe(MODEL, Some(signature(0.0))), 1).await.unwrap_err());
    is_away(index.forget(&[person(1)]).await.unwrap_err());
    is_away(index.check().await.unwrap_err());
    server.set_down(false);
    assert_eq!(who(&nearest(&index, MODEL, 0.0, 1).await), [1]);
}

#[tokio::test]
async fn silence_is_no_answer() {
    let server = PineconeServer::start(DIMENSIONS).await;
    let proxy = Proxy::start(&server.endpoint()).await;
    let access = Access { host: proxy.endpoint(), ..access(&server, PineconeServer::KEY, "sparks") };
    let index = Pinecone::new(&access).unwrap();
    proxy.set_down(true);
    let error = index.check().await.unwrap_err();
    assert!(matches!(error, IndexError::Unavailable(_)), "{error}");
    proxy.set_down(false);
    index.check().await.unwrap();
    proxy.judge(|_, _| Some((200, "<html>".to_owned())));
    let error = index.describe().await.unwrap_err();
    assert!(matches!(&error, IndexError::Unavailable(words) if words.contains("cannot be read")), "{error}");
    let secure = Access { host: proxy.endpoint().replace("http:", "https:"), ..access.clone() };
    let error = Pinecone::new(&secure).unwrap().check().await.unwrap_err();
    assert!(matches!(error, IndexError::Unavailable(_)), "whoever speaks no TLS: {error}");
    drop(proxy);
    let error = Pinecone::new(&access).unwrap().check().await.unwrap_err();
    assert!(matches!(&error, IndexError::Unavailable(words) if words.contains("refused")), "{error}");
}

#[tokio::test]
async fn nobody_waits_for_an_answer_for_ever() {
    let (server, index) = empty().await;
    server.set_latency(Duration::from_secs(3600));
    let began = Instant::now();
    let error = index.nearest(&probe(MODEL, Some(signature(0.0))), 1).await.unwrap_err();
    assert!(matches!(&error, IndexError::Unavailable(words) if words.contains("timed out")), "{error}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_check_costs_nothing_while_all_is_well() {
    let (server, index) = empty().await;
    for _ in 0..3 {
        index.check().await.unwrap();
    }
    assert_eq!(calls(&index, Operation::Stats), 1, "nothing had been asked before");
    server.set_down(true);
    index.learn(&[lesson(1, 1, MODEL, 0.0)], false).await.unwrap_err();
    server.set_down(false);
    index.check().await.unwrap();
    index.check().await.unwrap();
    assert_eq!(calls(&index, Operation::Stats), 2);
}

#[tokio::test]
async fn a_wrong_key_opens_nothing_and_is_shown_to_nobody() {
    let server = PineconeServer::start(DIMENSIONS).await;
    let proxy = Proxy::start(&server.endpoint()).await;
    let key = "pcsk_hunter2";
    let access = Access { host: proxy.endpoint(), ..access(&server, key, "sparks") };
    let index = Pinecone::new(&access).unwrap();
    let mut shown = vec![format!("{access:?} {index:?}")];
    // Also where the service, or whoever stands before it, repeats what it was told.
    for status in [None, Some(400), Some(401), Some(403), Some(404)] {
        proxy.judge(move |_, _| {
            Some((status?, json!({ "code": 16, "message": format!("no such key: {key}") }).to_string()))
        });
        let error = index.check().await.unwrap_err();
        assert!(matches!(error, IndexError::Denied(_)), "{error}");
        shown.extend([error.to_string(), format!("{error:?}")]);
    }
    assert!(shown.iter().all(|text| !text.contains("hunter2")), "{shown:#?}");
    assert!(Pinecone::new(&Access { key: Secret::new("hunter2\n"), ..access }).is_err());
}

#[tokio::test]
async fn signatures_that_do_not_fit_are_refused() {
    let server = PineconeServer::start(DIMENSIONS + 1).await;
    let index = Pinecone::new(&access(&server, PineconeServer::KEY, "sparks")).unwrap();
    for error in [
        index.learn(&[lesson(1, 1, MODEL, 0.0)], false).await.unwrap_err(),
        index.nearest(&probe(MODEL, Some(signature(0.0))), 1).await.unwrap_err(),
    ] {
        let IndexError::Denied(words) = error else { panic!("{error}") };
        assert!(words.contains("Vector dimension 16 does not match the dimension of the index 17"), "{words}");
    }
    assert_eq!(calls(&index, Operation::Query), 1, "asking again does not help");
}

#[tokio::test]
async fn what_others_keep_is_passed_over_and_stays() {
    let (server, index) = empty().await;
    let namespace = "sparks:synthetic-1";
    index.learn(&[lesson(1, 1, MODEL, 0.3)], false).await.unwrap();
    let values = signature(0.0).to_unit();
    let vector =
        |id: &str, person: serde_json::Value| json!({ "id": id, "values": values, "metadata": { "person": person } });
    let foreign = json!({ "namespace": namespace, "vectors": [
        { "id": "bare", "values": values },
        vector("doc1#chunk1", json!("person1")),
        vector("person1", json!(["person1"])),
        vector("person1#not-a-photo#0", json!("person1")),
        vector(&format!("person3#{}", named(&lesson(3, 1, MODEL, 0.0)).1), json!(3)),
    ] });
    let (status, answer) = raw(&server, "POST", "/vectors/upsert", &headers(), &foreign.to_string()).await;
    assert_eq!((status, &answer["upsertedCount"]), (200, &json!(5)), "{answer}");
    let found = nearest(&index, MODEL, 0.3, 9).await;
    assert_eq!(found, [(1, 1.0)]);
    index.unlearn(&image(1), &[person(1)]).await.unwrap();
    assert_eq!(server.ids(namespace).len(), 5);
    assert_eq!(nearest(&index, MODEL, 0.0, 9).await, []);
}
