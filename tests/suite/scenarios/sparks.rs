//! Runs the binary on a data folder.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;
use sparks_tests::binary::FAST_VARIANTS;
pub use sparks_tests::binary::{binary, root};
use tempfile::TempDir;

/// A temporary data folder and the binary that uses it.
pub struct Sparks {
    folder: TempDir,
}

impl Sparks {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Returns the data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns a path beside the data folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns `sparks --data DATA ...`, in an environment without other `SPARKS_` variables than the fast variants.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(binary());
        command.arg("--data").arg(self.data()).args(args).current_dir(self.folder.path());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPARKS_")) {
            command.env_remove(name);
        }
        command.envs(FAST_VARIANTS);
        command
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

    /// Runs a command with `--json` that must succeed and returns what it prints.
    pub fn json<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned()).chain(["--json".into()]);
        serde_json::from_str(&self.text(args)).unwrap()
    }

    /// Starts a command without waiting for it.
    pub fn start<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the rows of the table.
    pub fn items(&self) -> Vec<Value> {
        lines(&self.text(["items"]))
    }

    /// Returns the rows of the table without timestamps.
    pub fn items_without_times(&self) -> Vec<Value> {
        let mut items = self.items();
        for item in &mut items {
            let row = item.as_object_mut().unwrap();
            for time in ["createdAt", "uploaded_datetime", "lastModified"] {
                row.remove(time);
            }
            if let Some(images) = row.get_mut("images").and_then(Value::as_object_mut) {
                images.remove("processedAt");
            }
        }
        items
    }

    /// Returns the event log.
    pub fn events(&self) -> Vec<Value> {
        lines(&self.text(["events", "--json"]))
    }

    /// Returns the events of one type.
    pub fn events_of(&self, event_type: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event_type"] == event_type).collect()
    }

    /// Creates an album of synthetic photos beside the data folder.
    pub fn synth(&self, photos: usize, identities: usize, more: &[&str]) -> PathBuf {
        let album = self.path("album");
        let (photos, identities) = (photos.to_string(), identities.to_string());
        let args = ["synth", album.to_str().unwrap(), "--photos", &photos, "--identities", &identities];
        self.text(args.iter().chain(more));
        album
    }

    /// Opens the database.
    pub fn database(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.data().join("sparks.db")).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        connection
    }

    /// Returns the number of rows of a table of the database. Unlike a command it starts no process, which matters while a test waits.
    pub fn count(&self, table: &str) -> u64 {
        let count = format!("SELECT count(*) FROM {table}");
        self.database().query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned()
    }

    /// Asserts that every person of the table has a crop under the key in its row.
    pub fn assert_crops(&self) {
        for person in self.items().iter().filter(|item| item["entityType"] == "PERSON") {
            let crop = self.data().join("objects").join(person["s3Key"].as_str().unwrap());
            assert!(crop.is_file(), "{} is missing", crop.display());
        }
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
