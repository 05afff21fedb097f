//! The platform around us: it stores originals, makes rows, and sends messages.

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

use rusqlite::params;
use serde_json::{Value, json};

use crate::{sparks::Sparks, truth::truth};

/// The bucket's name in all messages.
pub const BUCKET: &str = "sparks-photos";
/// Who uploads.
pub const ADA: &str = "ada@example.org";

/// A data folder whose table somebody else writes to as well.
pub struct Platform {
    pub sparks: Sparks,
    album: Vec<PathBuf>,
    settings: Vec<(&'static str, String)>,
}

impl Platform {
    /// A platform with these many pictures to upload.
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

    /// The same, with these settings for every command.
    pub fn with(mut self, settings: Vec<(&'static str, String)>) -> Self {
        self.settings = settings;
        self
    }

    /// What `sparks synth` knows of the pictures.
    pub fn truth(&self) -> BTreeMap<String, BTreeSet<u64>> {
        truth(self.album[0].parent().unwrap())
    }

    /// How many pictures there are.
    pub fn pictures(&self) -> usize {
        self.album.len()
    }

    /// `sparks ...` with the platform's bucket.
    pub fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.sparks.command(args);
        command.env("SPARKS_BUCKET", BUCKET).env("SPARKS_FACES_ANALYZER", "synthetic");
        command.envs(self.settings.iter().cloned());
        command
    }

    /// Works off everything there is, and says what the worker logged.
    pub fn drain(&self) -> String {
        let output = self.command(["run", "--drain", "--listen", "127.0.0.1:0"]).output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{log}");
        log
    }

    /// A worker that runs, with these settings.
    pub fn worker(&self, settings: &[(&str, &str)]) -> Worker {
        self.worker_by(settings, |command| command)
    }

    /// A worker that runs, with these settings, started in another way.
    pub fn worker_by(&self, settings: &[(&str, &str)], way: impl FnOnce(Command) -> Command) -> Worker {
        let log = self.sparks.path(&format!("worker-{}.log", fastrand::u64(..)));
        let mut command = self.command(["run", "--listen", "127.0.0.1:0"]);
        command.envs(settings.iter().copied());
        let mut command = way(command);
        command.stderr(fs::File::create(&log).unwrap()).stdout(Stdio::null());
        let mut worker = Worker { process: command.spawn().unwrap(), log };
        eventually("the worker runs", || {
            let ended = worker.process.try_wait().unwrap();
            assert_eq!(ended, None, "the worker does not run: {}", worker.log());
            worker.address().is_some()
        });
        worker
    }

    /// A worker whose data folder is a disk of its own, with this much room. Others see it under [`Worker::disk`].
    pub fn worker_on_a_disk(&self, megabytes: u32) -> Worker {
        let log = self.sparks.path("worker.log");
        let whole = self.command(["run", "--listen", "127.0.0.1:0"]);
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c"]);
        command.arg(format!("mount -t tmpfs -o size={megabytes}m tmpfs \"$0\" && exec \"$@\""));
        command.arg(self.sparks.data()).arg(whole.get_program()).args(whole.get_args());
        for (name, value) in whole.get_envs() {
            value.map(|value| command.env(name, value));
        }
        command.stderr(fs::File::create(&log).unwrap()).stdout(Stdio::null());
        let worker = Worker { process: command.spawn().unwrap(), log };
        eventually("the worker runs (which takes the right to mount a tmpfs)", || worker.address().is_some());
        worker
    }

    /// The n-th picture.
    pub fn picture(&self, n: usize) -> Vec<u8> {
        fs::read(&self.album[n]).unwrap()
    }

    /// An image ID for the n-th picture.
    pub fn image(n: usize) -> String {
        format!("00000000-0000-4000-8000-{n:012}")
    }

    /// Stores an object.
    pub fn put(&self, key: &str, bytes: &[u8]) {
        let path = self.object(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Where an object is.
    pub fn object(&self, key: &str) -> PathBuf {
        self.sparks.data().join("objects").join(key)
    }

    /// Writes a row whole, as the platform does.
    pub fn put_item(&self, pk: &str, sk: &str, item: &Value) {
        let upsert = "INSERT INTO items (PK, SK, item) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET item = excluded.item";
        self.sparks.database().execute(upsert, params![pk, sk, item.to_string()]).unwrap();
    }

    /// Makes the row of a photo.
    pub fn put_image(&self, image: &str) {
        let row = json!({
            "entityType": "IMAGE", "assetType": "IMAGE", "imageId": image, "uploadedBy": ADA,
            "uploaded_datetime": "2025-08-01T09:24:28.957Z", "lastModified": "2025-08-01T09:24:28.957Z",
            "s3Key": format!("originals/{image}.jpg"), "tags": ["beach"], "description": "by hand",
        });
        self.put_item(image, &format!("UPLOADED_BY#{ADA}"), &row);
    }

    /// Makes the row of a user's limit.
    pub fn put_limit(&self, email: &str, limit: u32) {
        self.put_item(&format!("LIMIT#{email}"), email, &json!({ "entityType": "DEFAULT_LIMIT", "limit": limit }));
    }

    /// Stores the n-th picture as a photo with a row.
    pub fn upload(&self, n: usize) -> String {
        let image = Self::image(n);
        self.put(&format!("originals/{image}.jpg"), &self.picture(n));
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

    /// Sends a message as it is.
    pub fn send_file(&self, file: &Path) {
        let output = self.command(["send", file.to_str().unwrap()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// One row.
    pub fn item(&self, pk: &str, sk: &str) -> Option<Value> {
        self.sparks.items().into_iter().find(|item| item["PK"] == pk && item["SK"] == sk)
    }

    /// The row of a photo.
    pub fn image_row(&self, image: &str) -> Option<Value> {
        self.item(image, &format!("UPLOADED_BY#{ADA}"))
    }

    /// The persons in a photo, by its row.
    pub fn persons_in(&self, image: &str) -> Vec<String> {
        let row = self.image_row(image).expect("the photo's row");
        serde_json::from_value(row["persons"].clone()).expect("a list of persons")
    }

    /// All dead letters.
    pub fn letters(&self) -> Vec<Value> {
        let output = self.command(["dlq", "export"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How many messages nobody has settled.
    pub fn unsettled(&self) -> u64 {
        let count = "SELECT count(*) FROM messages";
        self.sparks.database().query_row(count, [], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned()
    }
}

/// The message S3 sends for an upload.
pub fn created(image: &str) -> String {
    s3("ObjectCreated:Put", &format!("originals/{image}.jpg"), "0066CF2A8B5D1E3F70")
}

/// The message S3 sends for this object and sequencer.
pub fn s3(event: &str, key: &str, sequencer: &str) -> String {
    let object = json!({ "key": key, "size": 1, "eTag": "b21b84d653bb07b05b1e6b33684dc11b", "sequencer": sequencer });
    let s3 = json!({ "bucket": { "name": BUCKET }, "object": object });
    json!({ "Records": [{ "eventName": event, "s3": s3 }] }).to_string()
}

/// The message that a user wants a photo gone.
pub fn delete(image: &str) -> String {
    json!({ "action": "delete", "imageId": image, "uploadedBy": ADA }).to_string()
}

/// Waits for something that comes about soon.
pub fn eventually(what: &str, mut come_about: impl FnMut() -> bool) {
    within(Duration::from_secs(60), what, &mut come_about);
}

/// Waits for something that comes about within this time.
pub fn within(longest: Duration, what: &str, come_about: &mut dyn FnMut() -> bool) {
    let started = Instant::now();
    while !come_about() {
        assert!(started.elapsed() < longest, "not within {longest:?}: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// A worker that runs. Killed when dropped.
pub struct Worker {
    pub process: Child,
    log: PathBuf,
}

impl Worker {
    /// What it has logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its data folder, if that is a disk of its own.
    pub fn disk(&self, platform: &Platform) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.process.id()));
        root.join(platform.sparks.data().strip_prefix("/").unwrap())
    }

    /// Where its health is to be asked.
    pub fn address(&self) -> Option<String> {
        let log = self.log();
        let line: Value = serde_json::from_str(log.lines().find(|line| line.contains("\"running\""))?).ok()?;
        line["health"].as_str().map(str::to_owned)
    }

    /// Status and body of an answer over HTTP.
    pub fn get(&self, path: &str) -> (u16, String) {
        let address = self.address().expect("it runs");
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// A number of its metrics.
    pub fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.get("/metrics");
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Sends it a signal by name.
    pub fn signal(&self, name: &str) {
        let killed = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(killed.unwrap().success());
    }

    /// Waits until it has ended; says its exit code.
    pub fn ended(&mut self, longest: Duration) -> Option<i32> {
        within(longest, "the worker ends", &mut || self.process.try_wait().unwrap().is_some());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
