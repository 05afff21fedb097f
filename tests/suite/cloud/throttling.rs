//! Throttling and contention that outlast all retries are reported as throttled, so that no message is to blame.

use std::{fmt::Debug, sync::Arc, time::Duration};

use serde_json::json;
use sparks_aws::{S3Objects, SnsPublisher, SqsQueue, SsmSecrets, Timing, Topics};
use sparks_engine::{
    Commit, CommitError, Content, DependencyError, Notification, Objects, ObjectsError, PublishError, Publisher,
    PutMode, Queue, QueueError, Secrets, SecretsError, Settlement, Store, StoreError, Topic,
};
use sparks_tests::{
    emulator::{self, Emulator},
    proxy::{CannedResponse, Proxy, cancelled_transaction_response, dynamodb_error, throttled_response},
    samples::{empty_commit, image, processed},
};
use tokio::task::JoinSet;

/// Fails unless the error is throttling.
fn assert_throttled(what: &str, error: impl Into<AnyError> + Debug) {
    let shown = format!("{error:?}");
    assert!(matches!(error.into().0, DependencyError::Throttled(_)), "{what}: {shown}");
}

/// The failure of any dependency.
struct AnyError(DependencyError);

impl From<StoreError> for AnyError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Dependency(error) => Self(error),
            other => Self(DependencyError::Unavailable(other.to_string())),
        }
    }
}

impl From<CommitError> for AnyError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => error.into(),
            conflict => Self(DependencyError::Unavailable(conflict.to_string())),
        }
    }
}

impl From<ObjectsError> for AnyError {
    fn from(error: ObjectsError) -> Self {
        match error {
            ObjectsError::Dependency { error, .. } => Self(error),
            other => Self(DependencyError::Unavailable(other.to_string())),
        }
    }
}

impl From<QueueError> for AnyError {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Dependency(error) => Self(error),
            lost => Self(DependencyError::Unavailable(lost.to_string())),
        }
    }
}

impl From<PublishError> for AnyError {
    fn from(PublishError::Dependency(error): PublishError) -> Self {
        Self(error)
    }
}

impl From<SecretsError> for AnyError {
    fn from(error: SecretsError) -> Self {
        match error {
            SecretsError::Dependency { error, .. } => Self(error),
            other => Self(DependencyError::Unavailable(other.to_string())),
        }
    }
}

/// A transaction that lacks capacity is cancelled, and its cancellation reasons name the cause.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_transaction_that_stays_refused_is_reported_as_throttled() {
    type Refusal = fn(&[u8]) -> CannedResponse;
    let refusals: [(&str, Refusal); 6] = [
        ("ThrottlingError", |body| throttled_response("DynamoDB_20120810.TransactWriteItems", body)),
        ("ProvisionedThroughputExceeded", |body| {
            cancelled_transaction_response(body, 1, "ProvisionedThroughputExceeded", "The level of configured")
        }),
        ("TransactionConflict", |body| {
            cancelled_transaction_response(body, 0, "TransactionConflict", "Transaction is ongoing for the item")
        }),
        ("TransactionInProgressException", |_| dynamodb_error("TransactionInProgressException", "in progress")),
        ("RequestLimitExceeded", |_| dynamodb_error("RequestLimitExceeded", "the quota of the account")),
        ("ThrottlingException", |_| dynamodb_error("ThrottlingException", "Rate exceeded")),
    ];
    let emulator = Arc::new(Emulator::start().await);
    let mut checks = JoinSet::new();
    for (code, refusal) in refusals {
        let emulator = Arc::clone(&emulator);
        checks.spawn(async move {
            let proxy = Proxy::start(&emulator.endpoint()).await;
            let store = emulator.store_through(&emulator::connect(&proxy.endpoint()).await).await;
            proxy.intercept(move |target, body| target.ends_with("TransactWriteItems").then(|| refusal(body)));
            let commit = Commit { events: vec![processed(&image(1), "v1", &[])], ..empty_commit() };
            assert_throttled(code, store.commit(&commit).await.unwrap_err());
            proxy.intercept(|_, _| None);
            store.commit(&commit).await.unwrap();
        });
    }
    checks.join_all().await;
}

/// A request that no retry can make valid is no throttling, even beside a conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_invalid_transaction_is_not_reported_as_throttled() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let store = emulator.store_through(&emulator::connect(&proxy.endpoint()).await).await;
    proxy.intercept(|target, _| {
        let reasons = json!([
            { "Code": "TransactionConflict", "Message": "Transaction is ongoing for the item" },
            { "Code": "ValidationError", "Message": "Item size to update has exceeded the maximum allowed size" },
        ]);
        let body = json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled",
            "CancellationReasons": reasons,
        });
        target.ends_with("TransactWriteItems").then(|| (400, body.to_string()))
    });
    let refused = store.commit(&Commit { events: vec![processed(&image(1), "v1", &[])], ..empty_commit() }).await;
    let Err(CommitError::Store(StoreError::Refused(message))) = refused else { panic!("{refused:?}") };
    assert!(message.contains("Item size"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_that_stays_throttled_is_reported_as_throttled() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let store = emulator.store_through(&emulator::connect(&proxy.endpoint()).await).await;
    proxy.intercept(|target, body| target.starts_with("DynamoDB_").then(|| throttled_response(target, body)));
    assert_throttled("GetItem", store.photo(&image(1)).await.unwrap_err());
    proxy.intercept(|_, _| None);
    assert_eq!(store.photo(&image(1)).await.unwrap(), None);
}

/// Returns an error response of a service with a JSON protocol.
fn json_error(status: u16, kind: &str) -> CannedResponse {
    (status, json!({ "__type": kind, "message": "Rate exceeded" }).to_string())
}

/// SQS answers some of these with status 403, which is no missing permission.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_throttled_queue_is_reported_as_throttled() {
    let emulator = Arc::new(Emulator::start().await);
    let errors = [
        (403, "com.amazonaws.sqs#RequestThrottled"),
        (400, "com.amazonaws.sqs#ThrottlingException"),
        (403, "com.amazonaws.sqs#OverLimit"),
        (400, "com.amazonaws.sqs#KmsThrottled"),
    ];
    let mut checks = JoinSet::new();
    for (status, kind) in errors {
        let emulator = Arc::clone(&emulator);
        checks.spawn(async move {
            let proxy = Proxy::start(&emulator.endpoint()).await;
            let timing = Timing { visibility_timeout: Duration::from_secs(120), poll: Duration::ZERO };
            let connection = emulator::connect(&proxy.endpoint()).await;
            let queue = SqsQueue::new(&connection, emulator.queues(25).await, timing, 25);
            queue.send("m", "d").await.unwrap();
            let delivery = queue.receive(1).await.unwrap().remove(0);
            proxy.intercept(move |_, _| Some(json_error(status, kind)));
            let settled = queue.settle(delivery, Settlement::Acknowledge);
            let (received, settled) = tokio::join!(queue.receive(1), settled);
            assert_throttled(kind, received.unwrap_err());
            assert_throttled(kind, settled.unwrap_err());
        });
    }
    checks.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_throttled_bucket_is_reported_as_throttled() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let objects = S3Objects::new(&emulator::connect(&proxy.endpoint()).await, &emulator.bucket().await);
    let body = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
    proxy.intercept(move |_, _| Some((503, body.to_owned())));
    let put = objects.put("a", vec![1], Content::image("image/jpeg"), PutMode::Replace);
    let (read, written, checked) = tokio::join!(objects.get("a", 10), put, objects.check());
    assert_throttled("GetObject", read.unwrap_err());
    assert_throttled("PutObject", written.unwrap_err());
    assert_throttled("HeadBucket", checked.unwrap_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_throttled_topic_is_reported_as_throttled() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let (_, topic) = emulator.topic_with_queue(false).await;
    let topics = Topics { thumbnail_completed: None, events: Some(topic) };
    let publisher = SnsPublisher::new(&emulator::connect(&proxy.endpoint()).await, topics);
    let body = "<ErrorResponse><Error><Type>Sender</Type><Code>Throttled</Code><Message>Rate exceeded</Message></Error></ErrorResponse>";
    proxy.intercept(move |_, _| Some((429, body.to_owned())));
    let notification = Notification {
        topic: Topic::Events,
        event_type: "PhotoProcessed".into(),
        deduplication: "d".into(),
        group: "g".into(),
        body: json!({}),
    };
    assert_throttled("PublishBatch", publisher.publish(&[notification]).await.unwrap_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_throttled_parameter_store_is_reported_as_throttled() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    proxy.intercept(|_, _| Some(json_error(400, "com.amazonaws.ssm#ThrottlingException")));
    let secrets = SsmSecrets::new(&emulator::connect(&proxy.endpoint()).await);
    assert_throttled("GetParameter", secrets.secret("/sparks/key").await.unwrap_err());
}
