//! The environment of the workers: services, proxies that add latency, and settings.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use sparks_aws::{DynamoStore, Tables};
use sparks_domain::{Event, Key, Position, Presence};
use sparks_engine::{Commit, Maintenance, Store};
use sparks_tests::{
    album::Photo,
    binary::binary,
    dynoxide::Dynoxide,
    emulator::environment,
    platform_actions::original_key,
    proxy::Proxy,
    samples::{empty_commit, set, uploader},
    worker::image_of,
};
use tempfile::TempDir;

use crate::services::Services;

const BUCKET: &str = "photos";
const LANES: u16 = 64;

/// The services and the proxies in front of them.
pub struct Environment {
    _dynoxide: Dynoxide,
    services: Services,
    /// In front of DynamoDB, and in front of all other services.
    proxies: [Proxy; 2],
    store: DynamoStore,
    folder: TempDir,
}

impl Environment {
    /// Starts all services. Every request of a worker has this latency.
    pub async fn new(latency: Duration) -> Self {
        let (dynoxide, services) = (Dynoxide::start().await, Services::start().await);
        let proxies = [Proxy::start(&dynoxide.endpoint()).await, Proxy::start(&services.endpoint()).await];
        proxies.iter().for_each(|proxy| proxy.set_latency(latency));
        let connection = dynoxide.connect().await;
        let tables = Tables { platform: "sparks".into(), log: "sparks-events".into(), faces: "sparks-faces".into() };
        dynoxide.create_tables(&tables).await;
        let store = DynamoStore::open(&connection, tables, LANES).await.unwrap();
        Self { _dynoxide: dynoxide, services, proxies, store, folder: tempfile::tempdir().unwrap() }
    }

    /// Uploads photos as the platform does.
    pub async fn upload(&self, photos: &[Photo]) {
        for photo in photos {
            let row =
                json!({ "entityType": "IMAGE", "imageId": image_of(photo), "s3Key": original_key(photo), "tags": [] });
            let mutations = vec![set(&Key::image(&image_of(photo), &uploader()), Presence::Any, row)];
            self.store.commit(&Commit { mutations, ..empty_commit() }).await.unwrap();
            self.services.upload(BUCKET, &original_key(photo), &photo.jpeg);
        }
    }

    /// Starts a worker that processes one photo at a time.
    pub fn start_worker(&self) -> Worker {
        let ([tables, others], [work, dead]) = (&self.proxies, self.services.queues());
        let settings = [
            ("SPARKS_BACKEND", "aws"),
            ("SPARKS_BUCKET", BUCKET),
            ("SPARKS_AWS_ENDPOINT", &others.endpoint()),
            ("SPARKS_AWS_ENDPOINTS_DYNAMODB", &tables.endpoint()),
            ("SPARKS_AWS_QUEUE", &work),
            ("SPARKS_AWS_DEAD_LETTER_QUEUE", &dead),
            ("SPARKS_AWS_EVENTS_TOPIC", "arn:aws:sns:eu-central-1:000000000000:events"),
            ("SPARKS_RUN_LISTEN", "127.0.0.1:0"),
            ("SPARKS_FACES_ANALYZER", "off"),
            ("SPARKS_JOBS", "1"),
        ];
        let mut command = Command::new(binary());
        command.arg("run").current_dir(self.folder.path()).stderr(Stdio::null()).envs(environment());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPARKS_")) {
            command.env_remove(name);
        }
        Worker(command.envs(settings).spawn().unwrap())
    }

    /// Waits until this many photos are committed. Polls rarely, because it shares the cores with the workers.
    pub async fn wait_for_photos(&self, photos: usize) {
        let started = Instant::now();
        while self.store.heads().await.unwrap().lanes().map(|(_, seq)| seq.0).sum::<u64>() < photos as u64 {
            assert!(
                started.elapsed() < Duration::from_secs(180),
                "timeout: fewer than {photos} photos in three minutes"
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Returns the times of the commits in milliseconds, in order. Asserts that each photo was processed once.
    pub async fn commits(&self, photos: usize) -> Vec<i64> {
        let log = self.store.read_log(&Position::default(), 100_000).await.unwrap();
        assert!(log.iter().all(|recorded| matches!(recorded.event, Event::PhotoProcessed(_))), "a photo was rejected");
        assert_eq!(log.len(), photos);
        let mut times: Vec<i64> = log.iter().map(|recorded| recorded.when.as_millis()).collect();
        times.sort_unstable();
        times
    }

    /// Returns the targets of all requests of workers since the last call.
    pub fn take_requests(&self) -> Vec<String> {
        self.proxies.iter().flat_map(Proxy::take_requests).collect()
    }
}

/// A running worker. It is killed when it is dropped.
pub struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
