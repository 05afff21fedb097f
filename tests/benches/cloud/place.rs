//! Where workers work: services, what stands before them, and the settings that lead there.

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
    platform::original,
    proxy::Proxy,
    samples::{nothing, set, uploader},
    worker::image_of,
};
use tempfile::TempDir;

use crate::services::Services;

const BUCKET: &str = "photos";
const LANES: u16 = 64;

/// A cloud, and the way to it.
pub struct Place {
    _dynoxide: Dynoxide,
    services: Services,
    /// Before DynamoDB, and before everything else.
    proxies: [Proxy; 2],
    store: DynamoStore,
    folder: TempDir,
}

impl Place {
    /// One in which every request of a worker takes this long on its way.
    pub async fn new(latency: Duration) -> Self {
        let (dynoxide, services) = (Dynoxide::start().await, Services::start().await);
        let proxies = [Proxy::start(&dynoxide.endpoint()).await, Proxy::start(&services.endpoint()).await];
        proxies.iter().for_each(|proxy| proxy.set_latency(latency));
        let connection = dynoxide.connect().await;
        let tables = Tables { platform: "sparks".into(), log: "sparks-events".into(), faces: "sparks-faces".into() };
        dynoxide.make(&tables).await;
        let store = DynamoStore::open(&connection, tables, LANES).await.unwrap();
        Self { _dynoxide: dynoxide, services, proxies, store, folder: tempfile::tempdir().unwrap() }
    }

    /// What the platform does when somebody uploads photos.
    pub async fn upload(&self, photos: &[Photo]) {
        for photo in photos {
            let row =
                json!({ "entityType": "IMAGE", "imageId": image_of(photo), "s3Key": original(photo), "tags": [] });
            let mutations = vec![set(&Key::image(&image_of(photo), &uploader()), Presence::Any, row)];
            self.store.commit(&Commit { mutations, ..nothing() }).await.unwrap();
            self.services.upload(BUCKET, &original(photo), &photo.jpeg);
        }
    }

    /// Starts a worker, which takes one photo at a time.
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

    /// Waits until so many photos are decided on. Asks for little: this is on the same cores.
    pub async fn until(&self, photos: usize) {
        let started = Instant::now();
        while self.store.heads().await.unwrap().lanes().map(|(_, seq)| seq.0).sum::<u64>() < photos as u64 {
            assert!(started.elapsed() < Duration::from_secs(180), "not {photos} photos in three minutes");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// When each photo was committed, in milliseconds, the earliest first. All of them are taken, and nothing else happened.
    pub async fn commits(&self, photos: usize) -> Vec<i64> {
        let log = self.store.read_log(&Position::default(), 100_000).await.unwrap();
        assert!(log.iter().all(|recorded| matches!(recorded.event, Event::PhotoProcessed(_))), "a photo was refused");
        assert_eq!(log.len(), photos);
        let mut times: Vec<i64> = log.iter().map(|recorded| recorded.when.as_millis()).collect();
        times.sort_unstable();
        times
    }

    /// What workers have asked for since the last time.
    pub fn take_requests(&self) -> Vec<String> {
        self.proxies.iter().flat_map(Proxy::take_seen).collect()
    }
}

/// A worker that runs. Ends when it is dropped.
pub struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
