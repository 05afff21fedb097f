//! The number of requests that a photo needs, counted by a proxy.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use sparks_domain::Position;
use sparks_engine::{Objects, Store};
use sparks_tests::{
    album::{Photo, photo},
    proxy::Proxy,
    snapshot::{expected_groups, photo_groups},
};

use super::account::{Account, RunningWorker};

/// The recorded requests to DynamoDB.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<(String, Value)>>>);

impl Requests {
    fn record(&self, proxy: &Proxy) {
        let requests = self.clone();
        proxy.intercept(move |target, body| {
            if let Some(action) = target.strip_prefix("DynamoDB_20120810.") {
                let body = serde_json::from_slice(body).unwrap_or_default();
                requests.0.lock().unwrap().push((action.to_owned(), body));
            }
            None
        });
    }

    fn count(&self, action: &str, matches: impl Fn(&Value) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|(name, body)| name == action && matches(body)).count()
    }

    /// Returns the number of queries of partitions whose name starts with this.
    fn queries(&self, partition: &str) -> usize {
        self.count("Query", |body| is_query_of(body, partition))
    }
}

fn is_query_of(body: &Value, partition: &str) -> bool {
    let values = body["ExpressionAttributeValues"].as_object().unwrap();
    values.values().any(|value| value["S"].as_str().is_some_and(|name| name.starts_with(partition)))
}

/// Returns whether the query reads the templates of a lane.
fn reads_templates(body: &Value) -> bool {
    body["ProjectionExpression"] == "SK, templates"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_of_known_persons_needs_two_reads_and_one_transaction() {
    let account = Account::new(&[("SPARKS_AWS_POLL_SECONDS", "1")]).await;
    let photos: Vec<Photo> = (0..28).map(|n| photo(n, &[n as usize % 4, 4])).collect();
    account.upload_all(&photos[..4]).await;
    account.text(["run", "--drain"]);

    let (proxy, requests) = (Proxy::start(&account.emulator.endpoint()).await, Requests::default());
    requests.record(&proxy);
    let worker = RunningWorker::start(&account, [("SPARKS_AWS_ENDPOINT", proxy.endpoint())]);
    account.upload_all(&photos[4..]).await;
    account.wait_for_photos(photos.len()).await;
    // Long enough for the background tasks of an idle worker.
    tokio::time::sleep(Duration::from_secs(8)).await;
    worker.stop().await;

    let new = photos.len() - 4;
    assert_eq!(requests.count("TransactWriteItems", |_| true), new, "one transaction per photo");
    let is_state = |body: &Value| body["Key"]["SK"]["S"] == "STATE";
    let is_identity = |body: &Value| body["RequestItems"].to_string().contains("UNKNOWN_PERSONS");
    let is_row = |body: &Value| body["TableName"] == "sparks";
    // Background tasks read heads, identity events, templates, checkpoints and announcements.
    let is_background = |body: &Value| {
        let text = body.to_string();
        ["LANES", "HEAD", "EVENTS", "MARK", "WORKER", "sparks-faces", "UNKNOWN_PERSONS"]
            .iter()
            .any(|name| text.contains(name))
    };
    let reads = ["GetItem", "BatchGetItem", "Query"];
    let all: usize = reads.iter().map(|action| requests.count(action, |_| true)).sum();
    let background: usize = reads.iter().map(|action| requests.count(action, is_background)).sum();
    let (rows, states) = (requests.count("Query", is_row), requests.count("GetItem", is_state));
    let identities = requests.count("BatchGetItem", is_identity);
    println!(
        "{new} photos: {rows} rows, {states} states, {identities} identity heads; {background} of {all} by background tasks"
    );
    assert_eq!(all, background + rows + states, "a read of another kind");
    assert_eq!(rows + states, new, "one read to look up a photo");
    assert!(identities <= new + requests.queries("HEAD"), "one read of the identity head");
    assert_eq!(requests.count("Scan", |_| true), 0);
    let log = account.store.read_log(&Position::default(), 1000).await.unwrap();
    assert_eq!(photo_groups(&log), expected_groups(&photos));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lanes_without_new_templates_are_not_read() {
    let account = Account::new(&[("SPARKS_AWS_POLL_SECONDS", "1"), ("SPARKS_FACES_ANALYZER", "off")]).await;
    let (proxy, requests) = (Proxy::start(&account.emulator.endpoint()).await, Requests::default());
    requests.record(&proxy);
    let workers = [0, 1].map(|_| RunningWorker::start(&account, [("SPARKS_AWS_ENDPOINT", proxy.endpoint())]));
    let photos: Vec<Photo> = (0..24).map(|n| photo(n, &[])).collect();
    account.upload_all(&photos).await;
    account.wait_for_photos(photos.len()).await;
    // Long enough for both to read the heads of all lanes.
    tokio::time::sleep(Duration::from_secs(2)).await;
    for worker in workers {
        worker.stop().await;
    }
    assert!(requests.queries("HEAD") > 0);
    assert_eq!(requests.count("Query", reads_templates), 0, "templates were read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_starting_worker_reads_the_snapshot_instead_of_the_log() {
    const SNAPSHOT: &str = "gallery/templates.json";
    let account = Account::new(&[("SPARKS_AWS_POLL_SECONDS", "1")]).await;
    let photos: Vec<Photo> = (0..16).map(|n| photo(n, &[n as usize % 4])).collect();
    let (proxy, requests) = (Proxy::start(&account.emulator.endpoint()).await, Requests::default());
    requests.record(&proxy);
    let process = async |photos: &[Photo]| {
        account.upload_all(photos).await;
        let mut command = account.command(["run", "--drain"]);
        let output = command.env("SPARKS_AWS_ENDPOINT", proxy.endpoint()).output().unwrap();
        assert!(output.status.success());
        let seen = std::mem::take(&mut *requests.0.lock().unwrap());
        let first = |body: &Value| reads_templates(body) && is_query_of(body, "000000000001");
        let read = seen.iter().filter(|(action, body)| action == "Query" && first(body)).count();
        (read, String::from_utf8(output.stderr).unwrap())
    };
    process(&photos[..8]).await;
    let snapshot = account.objects.get(SNAPSHOT, 1 << 20).await.unwrap();
    let names: Value = serde_json::from_slice(&snapshot.bytes).unwrap();
    assert!(names["templates"].as_array().unwrap().len() >= 4, "{names}");
    let fields: Vec<&String> = names.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["identity", "position", "templates", "v"], "the snapshot contains no embeddings");

    let (read, _) = process(&photos[8..10]).await;
    assert_eq!(read, 0, "a lane was read from its beginning");
    // An invalid snapshot, and one of another log.
    let id = names["identity"][1].as_str().unwrap();
    let other = String::from_utf8(snapshot.bytes).unwrap().replace(id, "00000000-0000-5000-8000-000000000000");
    for (bad, warns, new) in [("{\"v\":1}", true, &photos[10..12]), (other.as_str(), false, &photos[12..14])] {
        account.put(SNAPSHOT, bad.as_bytes().to_vec()).await;
        let (read, log) = process(new).await;
        assert!(read > 0, "the log was not read from its beginning");
        assert_eq!(log.contains("failed to parse the gallery snapshot"), warns, "{log}");
    }
    let (read, _) = process(&photos[14..]).await;
    assert_eq!(read, 0, "a new snapshot was not used");
    let log = account.store.read_log(&Position::default(), 1000).await.unwrap();
    assert_eq!(photo_groups(&log), expected_groups(&photos));
}
