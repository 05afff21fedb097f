//! The platform and two workers write to one table at the same time: neither overwrites attributes of the other.

use std::process::Command;

use async_trait::async_trait;
use serde_json::{Value, json};
use sparks_domain::Key;
use sparks_embedded::Embedded;
use sparks_engine::{Maintenance, Objects};
use sparks_tests::{
    platform_actions::send,
    platform_simulator::{PlatformHost, PlatformSimulator, run_beside_workers, seed},
    worker::{BUCKET, open},
};

use crate::sparks::Sparks;

/// A data folder as the simulated platform uses it.
struct Folder {
    sparks: Sparks,
    backend: Embedded,
}

#[async_trait]
impl PlatformHost for Folder {
    fn store(&self) -> &dyn Maintenance {
        self.backend.store.as_ref()
    }

    fn objects(&self) -> &dyn Objects {
        self.backend.objects.as_ref()
    }

    fn bucket(&self) -> &str {
        BUCKET
    }

    async fn put_row(&self, Key { pk, sk }: &Key, row: &Value) {
        let put = "INSERT OR REPLACE INTO items (PK, SK, item) VALUES (?, ?, ?)";
        self.sparks.database().execute(put, [pk, sk, &row.to_string()]).unwrap();
    }

    async fn send(&self, message: Value) {
        send(&self.backend, message).await;
    }

    async fn notify_object_change(&self, key: &str, exists: bool) {
        let name = if exists { "ObjectCreated:Put" } else { "ObjectRemoved:Delete" };
        let s3 = json!({ "bucket": { "name": BUCKET }, "object": { "key": key.replace('@', "%40") } });
        self.send(json!({ "Records": [{ "eventName": name, "eventSource": "aws:s3", "s3": s3 }] })).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_hundred_platform_actions_beside_two_workers_conflict_in_nothing() {
    let sparks = Sparks::new();
    let backend = open(&sparks.data());
    let host = Folder { sparks, backend };
    let command = |args: &[&str]| {
        let mut command = host.sparks.command(args);
        command.env("SPARKS_FACES_ANALYZER", "synthetic").env("SPARKS_RUN_LISTEN", "127.0.0.1:0");
        command.env("SPARKS_LOG", "error");
        command
    };
    let json = |args: &[&str]| -> Value {
        let output = command(&[args, &["--json"]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let drain = || assert!(command(&["run", "--drain"]).status().unwrap().success());
    let mut platform = PlatformSimulator::start(seed(), &host).await;
    let mut workers = [command(&["run"]).spawn().unwrap(), command(&["run"]).spawn().unwrap()];
    run_beside_workers(&mut platform, &host, 500).await;
    drain();
    for worker in &mut workers {
        assert!(Command::new("kill").args(["-TERM", &worker.id().to_string()]).status().unwrap().success());
        assert!(worker.wait().unwrap().success());
    }
    drain();
    assert_eq!(host.sparks.text(["dlq", "ls", "--json"]), "", "dead letters");
    let verified = json(&["verify", "--repair"]);
    platform.assert_drift_is_expected(&verified);
    platform.assert_table_matches(&host).await;
    assert_eq!(json(&["verify"])["clean"], true);
    assert_eq!(json(&["rebuild"])["changed"], 0);
    platform.assert_table_matches(&host).await;
    let ((photos, deleted), named) = (platform.photo_counts(), platform.renamed_persons());
    println!("{photos} photos, {deleted} deleted, {named} persons renamed, {} rows repaired", verified["differences"]);
    assert!(
        photos > 40 && deleted > 20 && named > 0,
        "too few actions: {photos} photos, {deleted} deleted, {named} renamed"
    );
}
