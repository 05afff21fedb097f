//! An account with everything that a worker needs, and the binary that works in it.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::Value;
use sparks_aws::{DynamoStore, S3Objects, Tables};
use sparks_domain::{Key, Presence};
use sparks_engine::{Commit, Content, Objects, PutMode, Store};
use sparks_tests::{
    binary::binary,
    emulator::Emulator,
    samples::{nothing, set},
};
use tempfile::TempDir;

/// The bucket's name.
pub const BUCKET: &str = "photos";

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
            ("SPARKS_AWS_LANES", "8"),
            ("SPARKS_AWS_EVENTS_TOPIC", "events"),
            ("SPARKS_RUN_LISTEN", "127.0.0.1:0"),
            ("SPARKS_FACES_ANALYZER", "synthetic"),
            ("SPARKS_JOBS", "1"),
        ];
        let variables: Vec<_> = usual.iter().chain(settings).map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let made = command(&emulator, &folder, &variables, ["setup"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let tables = Tables { platform: "sparks".into(), log: "sparks-events".into(), faces: "sparks-faces".into() };
        let store = DynamoStore::open(&connection, tables, 8).await.unwrap();
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

    pub async fn put(&self, key: &str, bytes: Vec<u8>) {
        let content = Content::picture("image/jpeg");
        self.objects.put(key, bytes, content, PutMode::Replace).await.unwrap();
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
