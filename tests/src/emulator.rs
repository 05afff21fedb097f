//! A local AWS emulator (MiniStack). Each test process starts its own, which ends with the process.

use std::{
    fs::File,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde_json::json;
use sparks_aws::{AwsConfig, CloudResources, Connection, DynamoStore, QueueUrls, Setup, Tables};

use crate::{dynamodb_limits, proxy::Proxy, venv::interpreter};

/// The Python package of the emulator and the version that the tests were written against.
const PACKAGE: &str = "ministack==1.5.33";

/// Runs the emulator until stdin closes, so that it ends with its parent process even after SIGKILL.
const PROGRAM: &str = "
import os, runpy, sys, threading
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
sys.argv = ['ministack']
runpy.run_module('ministack', run_name='__main__')
";

/// A running emulator behind a proxy that enforces limits of DynamoDB. It stops when it is dropped.
pub struct Emulator {
    process: Process,
    limits: Proxy,
    created: AtomicU64,
}

/// The process of an emulator.
struct Process {
    child: Child,
    port: u16,
}

impl Emulator {
    /// Installs the emulator if needed and starts it on a free port.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be installed or does not start; tests are never skipped silently.
    pub async fn start() -> Self {
        let process = tokio::task::spawn_blocking(Process::start).await.expect("start task completes");
        let limits = Proxy::start(&format!("http://127.0.0.1:{}", process.port)).await;
        limits.intercept(dynamodb_limits::refusal);
        Self { process, limits, created: AtomicU64::new(0) }
    }

    /// Returns the endpoint URL.
    pub fn endpoint(&self) -> String {
        self.limits.endpoint()
    }

    /// Returns the environment variables for a program that uses the emulator.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        environment()
    }

    /// Opens a connection to the emulator.
    pub async fn connect(&self) -> Connection {
        connect(&self.endpoint()).await
    }

    /// Returns a resource name that is unique in this emulator.
    pub fn fresh(&self, what: &str) -> String {
        format!("{what}-{}", self.created.fetch_add(1, Ordering::Relaxed))
    }

    /// Creates a store with tables of its own.
    ///
    /// # Panics
    ///
    /// Panics if the tables cannot be created.
    pub async fn store(&self) -> DynamoStore {
        self.store_through(&self.connect().await).await
    }

    /// Creates a store with tables of its own that uses this connection.
    ///
    /// # Panics
    ///
    /// Panics if the tables cannot be created.
    pub async fn store_through(&self, connection: &Connection) -> DynamoStore {
        let tables = self.tables().await;
        DynamoStore::open(connection, tables, 8).await.expect("store opens")
    }

    /// Creates new tables.
    ///
    /// # Panics
    ///
    /// Panics if they cannot be created.
    pub async fn tables(&self) -> Tables {
        let [platform, log, faces] = ["platform", "log", "faces"].map(|name| self.fresh(name));
        let tables = Tables { platform, log, faces };
        let mut setup = Setup::new(&self.connect().await, false);
        setup.tables(&tables).await.expect("tables are created");
        tables
    }
}

impl Emulator {
    /// Creates a new bucket.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be created.
    pub async fn bucket(&self) -> String {
        let name = self.fresh("bucket");
        Setup::new(&self.connect().await, false).bucket(&name).await.expect("bucket is created");
        name
    }

    /// Creates standard queues. A message received `max_deaths` times without being settled becomes a dead letter.
    pub async fn queues(&self, max_deaths: u32) -> QueueUrls {
        self.create_queues([self.fresh("work"), self.fresh("dead")], None, max_deaths).await
    }

    /// Creates FIFO queues with a standard queue for delayed copies.
    pub async fn fifo_queues(&self, max_deaths: u32) -> QueueUrls {
        let names = ["work", "dead"].map(|name| format!("{}.fifo", self.fresh(name)));
        self.create_queues(names, Some(self.fresh("waiting")), max_deaths).await
    }

    async fn create_queues(&self, [work, dead]: [String; 2], waiting: Option<String>, max_deaths: u32) -> QueueUrls {
        let tables = Tables { platform: String::new(), log: String::new(), faces: String::new() };
        let (prefixes, notices) = (Vec::new(), Vec::new());
        let resources = CloudResources {
            tables,
            bucket: String::new(),
            prefixes,
            work,
            waiting,
            dead,
            uploads_topic: None,
            notification_topics: notices,
            visibility_timeout_seconds: 60,
            max_crashes: max_deaths,
        };
        let connection = self.connect().await;
        Setup::new(&connection, false).queues(&resources).await.expect("queues are created");
        let url = async |name: &str| sparks_aws::SqsQueue::url(&connection, name).await.expect("queue URL");
        let waiting = match &resources.waiting {
            Some(waiting) => Some(url(waiting).await),
            None => None,
        };
        QueueUrls { work: url(&resources.work).await, waiting, dead: url(&resources.dead).await }
    }

    /// Creates queues and a topic to which the work queue is subscribed.
    ///
    /// # Panics
    ///
    /// Panics if they cannot be created.
    pub async fn topic_with_queue(&self, fifo: bool) -> (QueueUrls, String) {
        let connection = self.connect().await;
        let (queues, kind) = if fifo { (self.fifo_queues(25).await, ".fifo") } else { (self.queues(25).await, "") };
        let topic = connection.sns().create_topic().name(format!("{}{kind}", self.fresh("topic")));
        let topic = if fifo { topic.attributes("FifoTopic", "true") } else { topic };
        let topic = topic.send().await.expect("topic is created").topic_arn.expect("topic ARN");
        let name = queues.work.rsplit('/').next().unwrap_or_default();
        let queue = format!("arn:aws:sqs:eu-central-1:000000000000:{name}");
        let subscribe = connection.sns().subscribe().topic_arn(&topic).protocol("sqs").endpoint(queue);
        subscribe.attributes("RawMessageDelivery", "true").send().await.expect("subscription is created");
        (queues, topic)
    }

    /// Writes an SSM parameter, replacing an existing one.
    ///
    /// # Panics
    ///
    /// Panics if the emulator refuses it.
    pub fn put_parameter(&self, name: &str, value: &str) {
        let body = json!({ "Name": name, "Value": value, "Type": "SecureString", "Overwrite": true }).to_string();
        // The emulator reads the region from the credential scope and does not check the signature.
        let authorization =
            "AWS4-HMAC-SHA256 Credential=test/20260101/eu-central-1/ssm/aws4_request, SignedHeaders=host, Signature=0";
        let head = format!(
            "X-Amz-Target: AmazonSSM.PutParameter\r\nAuthorization: {authorization}\r\nContent-Length: {}\r\n",
            body.len()
        );
        let response = send_request(
            self.process.port,
            &format!("POST / HTTP/1.1\r\nHost: localhost\r\n{head}Connection: close\r\n\r\n{body}"),
        );
        assert!(
            response.is_some_and(|response| response.starts_with("HTTP/1.1 200")),
            "failed to write SSM parameter {name}"
        );
    }
}

/// Returns the environment variables for a program that uses an emulator.
pub fn environment() -> [(&'static str, String); 4] {
    [
        ("AWS_ACCESS_KEY_ID", "test".into()),
        ("AWS_SECRET_ACCESS_KEY", "test".into()),
        ("AWS_REGION", "eu-central-1".into()),
        ("AWS_EC2_METADATA_DISABLED", "true".into()),
    ]
}

/// Opens a connection to an emulator or to a proxy in front of it.
pub async fn connect(endpoint: &str) -> Connection {
    let access = AwsConfig {
        region: Some("eu-central-1".into()),
        endpoint: Some(endpoint.to_owned()),
        keys: Some(("test".into(), "test".into())),
        ..AwsConfig::default()
    };
    Connection::open(&access).await
}

impl Process {
    fn start() -> Self {
        let python = interpreter("emulator", PACKAGE);
        // Another process may take the port before the emulator binds it.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("free port").port();
            let log = std::env::temp_dir().join(format!("sparks-emulator-{port}.log"));
            let child = Command::new(&python)
                .args(["-c", PROGRAM])
                .env("BIND_HOST", "127.0.0.1")
                .env("GATEWAY_PORT", port.to_string())
                .env("LOG_LEVEL", "ERROR")
                .env("SERVICES", "s3,sqs,sns,dynamodb,ssm,events,sts,iam")
                .stdin(Stdio::piped())
                .stdout(File::create(&log).expect("log file of the emulator"))
                .stderr(Stdio::null())
                .spawn()
                .expect("emulator starts");
            let mut process = Self { child, port };
            if process.wait_until_ready() {
                let _ = std::fs::remove_file(log);
                return process;
            }
        }
        panic!("failed to start the emulator: timeout")
    }

    fn wait_until_ready(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(60) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return false;
            }
            if health(self.port).is_some_and(|response| response.starts_with("HTTP/1.1 200")) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the beginning of the health check's response.
fn health(port: u16) -> Option<String> {
    send_request(port, "GET /_ministack/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

/// Sends an HTTP request and returns the beginning of the response.
fn send_request(port: u16, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = [0; 64];
    let read = stream.read(&mut response).ok()?;
    Some(String::from_utf8_lossy(&response[..read]).into_owned())
}
