//! What a photo costs, counted on the wire.

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
    snapshot::{groups, truth},
};

use super::account::{Account, Running};

/// The requests to DynamoDB that came by.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<(String, Value)>>>);

impl Requests {
    fn listen(&self, proxy: &Proxy) {
        let requests = self.clone();
        proxy.judge(move |target, body| {
            if let Some(action) = target.strip_prefix("DynamoDB_20120810.") {
                let body = serde_json::from_slice(body).unwrap_or_default();
                requests.0.lock().unwrap().push((action.to_owned(), body));
            }
            None
        });
    }

    fn count(&self, action: &str, is_meant: impl Fn(&Value) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|(name, body)| name == action && is_meant(body)).count()
    }

    /// Questions to partitions whose name begins like this.
    fn queries(&self, partition: &str) -> usize {
        self.count("Query", |body| is_asked(body, partition))
    }
}

fn is_asked(body: &Value, partition: &str) -> bool {
    let values = body["ExpressionAttributeValues"].as_object().unwrap();
    values.values().any(|value| value["S"].as_str().is_some_and(|name| name.starts_with(partition)))
}

/// Whether a lane is read for what it teaches.
fn is_lesson(body: &Value) -> bool {
    body["ProjectionExpression"] == "SK, templates"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_of_known_persons_costs_two_reads_and_a_transaction_and_nothing_is_scanned() {
    let account = Account::new(&[("SPARKS_AWS_POLL_SECONDS", "1")]).await;
    let photos: Vec<Photo> = (0..28).map(|n| photo(n, &[n as usize % 4, 4])).collect();
    account.upload_all(&photos[..4]).await;
    account.text(["run", "--drain"]);

    let (proxy, requests) = (Proxy::start(&account.emulator.endpoint()).await, Requests::default());
    requests.listen(&proxy);
    let worker = Running::start(&account, [("SPARKS_AWS_ENDPOINT", proxy.endpoint())]);
    account.upload_all(&photos[4..]).await;
    account.until(photos.len()).await;
    // Long enough for a worker with nothing to do to tidy up.
    tokio::time::sleep(Duration::from_secs(8)).await;
    worker.stop().await;

    let fresh = photos.len() - 4;
    assert_eq!(requests.count("TransactWriteItems", |_| true), fresh, "one transaction for each photo");
    let is_state = |body: &Value| body["Key"]["SK"]["S"] == "STATE";
    let is_identity = |body: &Value| body["RequestItems"].to_string().contains("UNKNOWN_PERSONS");
    let is_row = |body: &Value| body["TableName"] == "sparks";
    // Whoever follows the log or tidies up asks for the heads, and then who is who, what is new, and how far they had come.
    let is_following = |body: &Value| {
        let asked = body.to_string();
        ["LANES", "HEAD", "EVENTS", "MARK", "NOBODY", "sparks-faces", "UNKNOWN_PERSONS"]
            .iter()
            .any(|name| asked.contains(name))
    };
    let reads = ["GetItem", "BatchGetItem", "Query"];
    let all: usize = reads.iter().map(|action| requests.count(action, |_| true)).sum();
    let following: usize = reads.iter().map(|action| requests.count(action, is_following)).sum();
    let (rows, states) = (requests.count("Query", is_row), requests.count("GetItem", is_state));
    let identities = requests.count("BatchGetItem", is_identity);
    println!(
        "{fresh} photos: {rows} rows, {states} states; {identities} times who is who; {following} of {all} to follow"
    );
    assert_eq!(all, following + rows + states, "every read is accounted for");
    assert_eq!(rows + states, fresh, "one read to look a photo up");
    assert!(identities <= fresh + requests.queries("HEAD"), "one read to see whether persons have changed meanwhile");
    assert_eq!(requests.count("Scan", |_| true), 0);
    let log = account.store.read_log(&Position::default(), 1000).await.unwrap();
    assert_eq!(groups(&log), truth(&photos));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_do_not_read_what_others_write_where_it_teaches_nothing() {
    let account = Account::new(&[("SPARKS_AWS_POLL_SECONDS", "1"), ("SPARKS_FACES_ANALYZER", "off")]).await;
    let (proxy, requests) = (Proxy::start(&account.emulator.endpoint()).await, Requests::default());
    requests.listen(&proxy);
    let workers = [0, 1].map(|_| Running::start(&account, [("SPARKS_AWS_ENDPOINT", proxy.endpoint())]));
    let photos: Vec<Photo> = (0..24).map(|n| photo(n, &[])).collect();
    account.upload_all(&photos).await;
    account.until(photos.len()).await;
    // Long enough for both to look at the heads of all lanes.
    tokio::time::sleep(Duration::from_secs(2)).await;
    for worker in workers {
        worker.stop().await;
    }
    assert!(requests.queries("HEAD") > 0);
    assert_eq!(requests.count("Query", is_lesson), 0, "lanes that were read for what they teach");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_starts_reads_the_snapshot_instead_of_the_log() {
    const SNAPSHOT: &str = "gallery/templates.json";
    let account = Account::new(&[("SPARKS_AWS_POLL_SECONDS", "1")]).await;
    let photos: Vec<Photo> = (0..16).map(|n| photo(n, &[n as usize % 4])).collect();
    let (proxy, requests) = (Proxy::start(&account.emulator.endpoint()).await, Requests::default());
    requests.listen(&proxy);
    let work = async |photos: &[Photo]| {
        account.upload_all(photos).await;
        let mut command = account.command(["run", "--drain"]);
        let output = command.env("SPARKS_AWS_ENDPOINT", proxy.endpoint()).output().unwrap();
        assert!(output.status.success());
        let seen = std::mem::take(&mut *requests.0.lock().unwrap());
        let first = |body: &Value| is_lesson(body) && is_asked(body, "000000000001");
        let read = seen.iter().filter(|(action, body)| action == "Query" && first(body)).count();
        (read, String::from_utf8(output.stderr).unwrap())
    };
    work(&photos[..8]).await;
    let snapshot = account.objects.get(SNAPSHOT, 1 << 20).await.unwrap();
    let names: Value = serde_json::from_slice(&snapshot.bytes).unwrap();
    assert!(names["templates"].as_array().unwrap().len() >= 4, "{names}");
    let fields: Vec<&String> = names.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["identity", "position", "templates", "v"], "names, and nothing that a face looks like");

    let (read, _) = work(&photos[8..10]).await;
    assert_eq!(read, 0, "no lane is read from its beginning");
    // One that is no snapshot, and one of another log.
    let id = names["identity"][1].as_str().unwrap();
    let other = String::from_utf8(snapshot.bytes).unwrap().replace(id, "00000000-0000-5000-8000-000000000000");
    for (bad, warns, fresh) in [("{\"v\":1}", true, &photos[10..12]), (other.as_str(), false, &photos[12..14])] {
        account.put(SNAPSHOT, bad.as_bytes().to_vec()).await;
        let (read, said) = work(fresh).await;
        assert!(read > 0, "the log is read from its beginning");
        assert_eq!(said.contains("not a snapshot"), warns, "{said}");
    }
    let (read, _) = work(&photos[14..]).await;
    assert_eq!(read, 0, "there is a good one again");
    let log = account.store.read_log(&Position::default(), 1000).await.unwrap();
    assert_eq!(groups(&log), truth(&photos));
}
