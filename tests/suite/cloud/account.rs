//! Test harness: an AWS account on the emulator with all cloud resources, and the binary that uses it.

use std::{
    ffi::OsStr,
    fs::File,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sparks_aws::{DynamoStore, S3Objects, Tables};
use sparks_domain::{Key, Position, Presence};
use sparks_engine::{Commit, Content, Objects, PutMode, Store};
use sparks_tests::{
    album::Photo,
    binary::{FAST_VARIANTS, binary},
    emulator::Emulator,
    platform_actions::original_key,
    samples::{empty_commit, set, uploader},
    snapshot::count,
    worker::image_of,
};
use tempfile::TempDir;

/// The bucket's name.
pub const BUCKET: &str = "photos";

/// Few lanes, so that workers conflict.
const LANES: &str = "8";

/// An account whose resources `sparks setup` created.
pub struct Account {
    pub emulator: Emulator,
    pub store: DynamoStore,
    pub objects: S3Objects,
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Account {
    /// Creates an account. These settings override the defaults of the tests.
    pub async fn new(settings: &[(&str, &str)]) -> Self {
        let emulator = Emulator::start().await;
        let (connection, folder) = (emulator.connect().await, tempfile::tempdir().unwrap());
        let defaults = [
            ("SPARKS_BACKEND", "aws"),
            ("SPARKS_BUCKET", BUCKET),
            ("SPARKS_AWS_ENDPOINT", &emulator.endpoint()),
            ("SPARKS_AWS_LANES", LANES),
            ("SPARKS_AWS_EVENTS_TOPIC", "events"),
            ("SPARKS_RUN_LISTEN", "127.0.0.1:0"),
            ("SPARKS_FACES_ANALYZER", "synthetic"),
            ("SPARKS_JOBS", "1"),
        ];
        let variables: Vec<_> =
            defaults.iter().chain(settings).map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let setup = command(&emulator, &folder, &variables, ["setup"]).output().unwrap();
        assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
        let tables = Tables { platform: "sparks".into(), log: "sparks-events".into(), faces: "sparks-faces".into() };
        let lanes = settings.iter().find(|(name, _)| *name == "SPARKS_AWS_LANES").map_or(LANES, |(_, lanes)| lanes);
        let store = DynamoStore::open(&connection, tables, lanes.parse().unwrap()).await.unwrap();
        let objects = S3Objects::new(&connection, BUCKET);
        Self { emulator, store, objects, folder, variables }
    }

    /// Returns a path in the temporary folder of the account.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns `sparks ...` in this account.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        command(&self.emulator, &self.folder, &self.variables, args)
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must succeed and returns its standard output.
    pub fn text<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must succeed and returns the JSON lines that it prints.
    pub fn lines<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Vec<Value> {
        self.text(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the rows of the table without timestamps, sorted by key.
    pub fn items(&self) -> Vec<Value> {
        without_times(self.lines(["items"]))
    }

    /// Uploads a photo as the platform does: creates the row, then stores the object.
    pub async fn upload(&self, row: &Value, bytes: Vec<u8>) {
        self.create_row(row).await;
        self.put(row["s3Key"].as_str().unwrap(), bytes).await;
    }

    /// Creates the row as the platform does.
    pub async fn create_row(&self, row: &Value) {
        let mut attributes = row.clone();
        let fields = attributes.as_object_mut().unwrap();
        let key = Key::new(row["PK"].as_str().unwrap(), row["SK"].as_str().unwrap());
        for name in ["PK", "SK", "images"] {
            fields.remove(name);
        }
        fields.insert("persons".into(), Value::Array(Vec::new()));
        let mutations = vec![set(&key, Presence::Any, attributes)];
        self.store.commit(&Commit { mutations, ..empty_commit() }).await.unwrap();
    }

    /// Uploads these photos.
    pub async fn upload_all(&self, photos: &[Photo]) {
        for photo in photos {
            self.upload(&row(photo), photo.jpeg.clone()).await;
        }
    }

    /// Returns the number of processed photos.
    pub async fn processed(&self) -> usize {
        count(&self.store.read_log(&Position::default(), 10_000).await.unwrap(), "PhotoProcessed")
    }

    /// Waits at most two minutes until this many photos are processed.
    pub async fn wait_for_photos(&self, photos: usize) {
        let started = Instant::now();
        while self.processed().await < photos {
            assert!(started.elapsed() < Duration::from_secs(120), "{} photos in two minutes", self.processed().await);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    pub async fn put(&self, key: &str, bytes: Vec<u8>) {
        let content = Content::image("image/jpeg");
        self.objects.put(key, bytes, content, PutMode::Replace).await.unwrap();
    }
}

/// Returns the row that the platform creates for a photo.
pub fn row(photo: &Photo) -> Value {
    let Key { pk, sk } = Key::image(&image_of(photo), &uploader());
    json!({ "PK": pk, "SK": sk, "entityType": "IMAGE", "imageId": image_of(photo), "s3Key": original_key(photo), "tags": [] })
}

/// A running worker. It is killed when it is dropped.
pub struct RunningWorker {
    process: Child,
    log: PathBuf,
}

impl RunningWorker {
    /// Starts `sparks run` with these environment variables.
    pub fn start<'a>(account: &Account, settings: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let log = account.path(&format!("worker-{}.log", fastrand::u64(..)));
        let mut command = account.command(["run"]);
        command.envs(settings).stderr(File::create(&log).unwrap()).stdout(Stdio::null());
        Self { process: command.spawn().unwrap(), log }
    }

    /// Returns what the worker has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Stops the worker with SIGTERM and waits until it has ended.
    pub async fn stop(mut self) {
        let sent = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let status = tokio::task::spawn_blocking(move || self.process.wait().unwrap()).await.unwrap();
        assert!(status.success());
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits at most two minutes until the condition holds.
pub async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < Duration::from_secs(120), "timeout after two minutes: {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Returns rows without timestamps, sorted by key.
pub fn without_times(mut items: Vec<Value>) -> Vec<Value> {
    for item in &mut items {
        let row = item.as_object_mut().unwrap();
        for time in ["createdAt", "uploaded_datetime", "lastModified"] {
            row.remove(time);
        }
        if let Some(images) = row.get_mut("images").and_then(Value::as_object_mut) {
            images.remove("processedAt");
        }
    }
    items.sort_by_key(|item| (item["PK"].as_str().map(str::to_owned), item["SK"].as_str().map(str::to_owned)));
    items
}

fn command<S: AsRef<OsStr>>(
    emulator: &Emulator,
    folder: &TempDir,
    variables: &[(String, String)],
    args: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(binary());
    command.args(args).current_dir(folder.path()).envs(emulator.environment());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPARKS_")) {
        command.env_remove(name);
    }
    command.envs(FAST_VARIANTS).envs(variables.iter().cloned());
    command
}
