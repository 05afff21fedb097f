//! Test harness: a platform that stores originals, creates rows and sends messages, and workers as processes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rusqlite::{OptionalExtension, params};
use serde_json::{Value, json};

use crate::{ground_truth::truth, sparks::Sparks};

/// The bucket's name in all messages.
pub const BUCKET: &str = "sparks-photos";
/// The user who uploads.
pub const ADA: &str = "ada@example.org";

/// A data folder whose table the platform writes to as well.
pub struct Platform {
    pub sparks: Sparks,
    album: Vec<PathBuf>,
    settings: Vec<(&'static str, String)>,
}

impl Platform {
    /// Creates a platform with an album to upload.
    pub fn new(photos: usize, identities: usize) -> Self {
        let sparks = Sparks::new();
        let album = sparks.synth(photos, identities, &[]);
        let mut album: Vec<PathBuf> = fs::read_dir(album).unwrap().map(|entry| entry.unwrap().path()).collect();
        album.retain(|path| path.extension().is_some_and(|ending| ending == "jpg"));
        album.sort();
        let platform = Self { sparks, album, settings: Vec::new() };
        platform.drain();
        platform
    }

    /// Adds environment variables for every command.
    pub fn with(mut self, settings: Vec<(&'static str, String)>) -> Self {
        self.settings = settings;
        self
    }

    /// Returns the identities in each file of the album.
    pub fn truth(&self) -> BTreeMap<String, BTreeSet<u64>> {
        truth(self.album[0].parent().unwrap())
    }

    /// Returns the number of photos in the album.
    pub fn album_size(&self) -> usize {
        self.album.len()
    }

    /// Returns `sparks ...` with the platform's bucket and the synthetic analyzer.
    pub fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.sparks.command(args);
        command.env("SPARKS_BUCKET", BUCKET).env("SPARKS_FACES_ANALYZER", "synthetic");
        command.envs(self.settings.iter().cloned());
        command
    }

    /// Processes all messages and returns the worker's log.
    pub fn drain(&self) -> String {
        let output = self.command(["run", "--drain", "--listen", "127.0.0.1:0"]).output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{log}");
        log
    }

    /// Starts a worker with these environment variables.
    pub fn worker(&self, settings: &[(&str, &str)]) -> Worker {
        self.worker_by(settings, |command| command)
    }

    /// Starts a worker with these environment variables and a changed command.
    pub fn worker_by(&self, settings: &[(&str, &str)], change: impl FnOnce(Command) -> Command) -> Worker {
        let log = self.sparks.path(&format!("worker-{}.log", fastrand::u64(..)));
        let mut command = self.command(["run", "--listen", "127.0.0.1:0"]);
        command.envs(settings.iter().copied());
        let mut command = change(command);
        command.stderr(fs::File::create(&log).unwrap()).stdout(Stdio::null());
        let mut worker = Worker { process: command.spawn().unwrap(), log };
        eventually("the worker starts", || {
            let exit = worker.process.try_wait().unwrap();
            assert_eq!(exit, None, "the worker ended: {}", worker.log());
            worker.address().is_some()
        });
        worker
    }

    /// Starts a worker whose data folder is a file system of this size. Other processes reach it under [`Worker::disk`].
    pub fn worker_on_a_disk(&self, megabytes: u32) -> Worker {
        let log = self.sparks.path("worker.log");
        let original = self.command(["run", "--listen", "127.0.0.1:0"]);
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c"]);
        command.arg(format!("mount -t tmpfs -o size={megabytes}m tmpfs \"$0\" && exec \"$@\""));
        command.arg(self.sparks.data()).arg(original.get_program()).args(original.get_args());
        for (name, value) in original.get_envs() {
            value.map(|value| command.env(name, value));
        }
        command.stderr(fs::File::create(&log).unwrap()).stdout(Stdio::null());
        let worker = Worker { process: command.spawn().unwrap(), log };
        eventually("the worker starts (it needs the permission to mount a tmpfs)", || worker.address().is_some());
        worker
    }

    /// Returns the n-th photo of the album.
    pub fn photo(&self, n: usize) -> Vec<u8> {
        fs::read(&self.album[n]).unwrap()
    }

    /// Returns the image ID of the n-th photo.
    pub fn image(n: usize) -> String {
        format!("00000000-0000-4000-8000-{n:012}")
    }

    /// Stores an object.
    pub fn put(&self, key: &str, bytes: &[u8]) {
        let path = self.object(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Returns the path of an object.
    pub fn object(&self, key: &str) -> PathBuf {
        self.sparks.data().join("objects").join(key)
    }

    /// Replaces a whole row, as the platform does.
    pub fn put_item(&self, pk: &str, sk: &str, item: &Value) {
        let upsert = "INSERT INTO items (PK, SK, item) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET item = excluded.item";
        self.sparks.database().execute(upsert, params![pk, sk, item.to_string()]).unwrap();
    }

    /// Creates the IMAGE row of a photo.
    pub fn put_image(&self, image: &str) {
        let row = json!({
            "entityType": "IMAGE", "assetType": "IMAGE", "imageId": image, "uploadedBy": ADA,
            "uploaded_datetime": "2025-08-01T09:24:28.957Z", "lastModified": "2025-08-01T09:24:28.957Z",
            "s3Key": format!("originals/{image}.jpg"), "tags": ["beach"], "description": "by hand",
        });
        self.put_item(image, &format!("UPLOADED_BY#{ADA}"), &row);
    }

    /// Creates the LIMIT row of a user.
    pub fn put_limit(&self, email: &str, limit: u32) {
        self.put_item(&format!("LIMIT#{email}"), email, &json!({ "entityType": "DEFAULT_LIMIT", "limit": limit }));
    }

    /// Stores the n-th photo and creates its row. Returns its image ID.
    pub fn upload(&self, n: usize) -> String {
        let image = Self::image(n);
        self.put(&format!("originals/{image}.jpg"), &self.photo(n));
        self.put_image(&image);
        image
    }

    /// Sends these messages.
    pub fn send(&self, messages: &[String]) {
        let file = self.sparks.path("messages");
        fs::write(&file, messages.join("\n")).unwrap();
        let output = self.command(["send", "--lines", file.to_str().unwrap()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Sends the content of a file as a message.
    pub fn send_file(&self, file: &Path) {
        let output = self.command(["send", file.to_str().unwrap()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns one row, as `sparks items` prints it.
    pub fn item(&self, pk: &str, sk: &str) -> Option<Value> {
        let select = "SELECT json_set(item, '$.PK', PK, '$.SK', SK) FROM items WHERE PK = ? AND SK = ?";
        let item = self.sparks.database().query_row(select, [pk, sk], |row| row.get::<_, String>(0)).optional();
        item.unwrap().map(|item| serde_json::from_str(&item).unwrap())
    }

    /// Returns the IMAGE row of a photo.
    pub fn image_row(&self, image: &str) -> Option<Value> {
        self.item(image, &format!("UPLOADED_BY#{ADA}"))
    }

    /// Returns the persons in the IMAGE row of a photo.
    pub fn persons_in(&self, image: &str) -> Vec<String> {
        let row = self.image_row(image).expect("IMAGE row exists");
        serde_json::from_value(row["persons"].clone()).expect("a list of persons")
    }

    /// Returns all dead letters.
    pub fn dead_letters(&self) -> Vec<Value> {
        let output = self.command(["dlq", "export"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the number of messages that are neither acknowledged nor dead letters.
    pub fn unsettled(&self) -> u64 {
        self.sparks.count("messages")
    }
}

/// Returns the message that S3 sends for an upload.
pub fn created(image: &str) -> String {
    s3("ObjectCreated:Put", &format!("originals/{image}.jpg"), "0066CF2A8B5D1E3F70")
}

/// Returns the message that S3 sends for this object and sequencer.
pub fn s3(event: &str, key: &str, sequencer: &str) -> String {
    let object = json!({ "key": key, "size": 1, "eTag": "b21b84d653bb07b05b1e6b33684dc11b", "sequencer": sequencer });
    let s3 = json!({ "bucket": { "name": BUCKET }, "object": object });
    json!({ "Records": [{ "eventName": event, "s3": s3 }] }).to_string()
}

/// Returns the message with which a user deletes a photo.
pub fn delete(image: &str) -> String {
    json!({ "action": "delete", "imageId": image, "uploadedBy": ADA }).to_string()
}

/// Waits at most 60 s until the condition holds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    within(Duration::from_secs(60), what, &mut condition);
}

/// Waits until the condition holds and panics after this time.
pub fn within(timeout: Duration, what: &str, condition: &mut dyn FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < timeout, "timeout after {timeout:?}: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// A running worker. It is killed when it is dropped.
pub struct Worker {
    pub process: Child,
    log: PathBuf,
}

impl Worker {
    /// Returns what the worker has logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the path of the data folder of a worker that [`Platform::worker_on_a_disk`] started.
    pub fn disk(&self, platform: &Platform) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.process.id()));
        root.join(platform.sparks.data().strip_prefix("/").unwrap())
    }

    /// Returns the address of the health endpoints once the worker has started.
    pub fn address(&self) -> Option<String> {
        let log = self.log();
        let line: Value = serde_json::from_str(log.lines().find(|line| line.contains("\"worker started\""))?).ok()?;
        line["health"].as_str().map(str::to_owned)
    }

    /// Sends an HTTP request and returns status and body.
    pub fn get(&self, path: &str) -> (u16, String) {
        let address = self.address().expect("worker has started");
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Returns the value of a metric.
    pub fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.get("/metrics");
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until the worker has ended and returns its exit code.
    pub fn wait_for_exit(&mut self, timeout: Duration) -> Option<i32> {
        within(timeout, "the worker ends", &mut || self.process.try_wait().unwrap().is_some());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
