//! An account with everything that a worker needs, and the binary that works in it.

use std::{
    ffi::OsStr,
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
    binary::binary,
    emulator::Emulator,
    platform::original,
    samples::{nothing, set, uploader},
    snapshot::count,
    worker::image_of,
};
use tempfile::TempDir;

/// The bucket's name.
pub const BUCKET: &str = "photos";

/// Few, so that workers meet.
const LANES: &str = "8";

/// An account, made by `sparks setup`.
pub struct Account {
    pub emulator: Emulator,
    pub store: DynamoStore,
    pub objects: S3Objects,
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Account {
    /// An account in which these settings differ from the usual ones.
    pub async fn new(settings: &[(&str, &str)]) -> Self {
        let emulator = Emulator::start().await;
        let (connection, folder) = (emulator.connect().await, tempfile::tempdir().unwrap());
        let usual = [
            ("SPARKS_BACKEND", "aws"),
            ("SPARKS_BUCKET", BUCKET),
            ("SPARKS_AWS_ENDPOINT", &emulator.endpoint()),
            ("SPARKS_AWS_LANES", LANES),
            ("SPARKS_AWS_EVENTS_TOPIC", "events"),
            ("SPARKS_RUN_LISTEN", "127.0.0.1:0"),
            ("SPARKS_FACES_ANALYZER", "synthetic"),
            ("SPARKS_JOBS", "1"),
        ];
        let variables: Vec<_> = usual.iter().chain(settings).map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let made = command(&emulator, &folder, &variables, ["setup"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let tables = Tables { platform: "sparks".into(), log: "sparks-events".into(), faces: "sparks-faces".into() };
        let lanes = settings.iter().find(|(name, _)| *name == "SPARKS_AWS_LANES").map_or(LANES, |(_, lanes)| lanes);
        let store = DynamoStore::open(&connection, tables, lanes.parse().unwrap()).await.unwrap();
        let objects = S3Objects::new(&connection, BUCKET);
        Self { emulator, store, objects, folder, variables }
    }

    /// A path beside everything.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `sparks ...` in this account.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        command(&self.emulator, &self.folder, &self.variables, args)
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        self.command(args).output().unwrap()
    }

    /// Standard output of a command that must succeed.
    pub fn text<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The JSON lines that a command prints, which must succeed.
    pub fn lines<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Vec<Value> {
        self.text(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The rows of the table without what a clock wrote, by key.
    pub fn items(&self) -> Vec<Value> {
        without_times(self.lines(["items"]))
    }

    /// What the platform does when somebody uploads a photo: the row, then the object.
    pub async fn upload(&self, row: &Value, bytes: Vec<u8>) {
        self.make_row(row).await;
        self.put(row["s3Key"].as_str().unwrap(), bytes).await;
    }

    /// The row, as the platform makes it.
    pub async fn make_row(&self, row: &Value) {
        let mut attributes = row.clone();
        let fields = attributes.as_object_mut().unwrap();
        let key = Key::new(row["PK"].as_str().unwrap(), row["SK"].as_str().unwrap());
        for ours in ["PK", "SK", "images"] {
            fields.remove(ours);
        }
        fields.insert("persons".into(), Value::Array(Vec::new()));
        let mutations = vec![set(&key, Presence::Any, attributes)];
        self.store.commit(&Commit { mutations, ..nothing() }).await.unwrap();
    }

    /// Uploads these photos.
    pub async fn upload_all(&self, photos: &[Photo]) {
        for photo in photos {
            self.upload(&row(photo), photo.jpeg.clone()).await;
        }
    }

    /// How many photos are processed.
    pub async fn processed(&self) -> usize {
        count(&self.store.read_log(&Position::default(), 10_000).await.unwrap(), "PhotoProcessed")
    }

    /// Waits until so many photos are processed.
    pub async fn until(&self, photos: usize) {
        let started = Instant::now();
        while self.processed().await < photos {
            assert!(started.elapsed() < Duration::from_secs(120), "{} photos in two minutes", self.processed().await);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    pub async fn put(&self, key: &str, bytes: Vec<u8>) {
        let content = Content::picture("image/jpeg");
        self.objects.put(key, bytes, content, PutMode::Replace).await.unwrap();
    }
}

/// The row that the platform makes of a photo.
pub fn row(photo: &Photo) -> Value {
    let Key { pk, sk } = Key::image(&image_of(photo), &uploader());
    json!({ "PK": pk, "SK": sk, "entityType": "IMAGE", "imageId": image_of(photo), "s3Key": original(photo), "tags": [] })
}

/// A worker that runs, and ends with the test.
pub struct Running(Child);

impl Running {
    /// Starts `sparks run` with these settings.
    pub fn start<'a>(account: &Account, settings: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        Self(account.command(["run"]).envs(settings).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Asks it to stop, and waits until it has.
    pub async fn stop(mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap();
        assert!(asked.success());
        let ended = tokio::task::spawn_blocking(move || self.0.wait().unwrap()).await.unwrap();
        assert!(ended.success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Rows without what a clock wrote, by key.
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
    command.envs(variables.iter().cloned());
    command
}
