//! A cloud on this machine: an emulator of its own for whoever starts one, gone with whoever started it.

use std::{
    fs::File,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde_json::json;
use sparks_aws::{Access, Connection, DynamoStore, Estate, Queues, Setup, Tables};

use crate::venv::interpreter;

/// The emulator, and the version that the tests were written against.
const PACKAGE: &str = "ministack==1.5.33";

/// Ends with the pipe to whoever started it, however that ends.
const PROGRAM: &str = "
import os, runpy, sys, threading
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
sys.argv = ['ministack']
runpy.run_module('ministack', run_name='__main__')
";

/// A running emulator. Stops when it is dropped.
pub struct Emulator {
    process: Child,
    port: u16,
    made: AtomicU64,
}

impl Emulator {
    /// Installs the emulator where that has not been done, and starts it on a free port.
    ///
    /// # Panics
    ///
    /// Where it cannot be installed or does not start: nothing is ever skipped.
    pub async fn start() -> Self {
        tokio::task::spawn_blocking(Self::start_now).await.expect("the emulator")
    }

    fn start_now() -> Self {
        let python = interpreter("emulator", PACKAGE);
        // Somebody else may take the port between our look and the emulator's.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
            let log = std::env::temp_dir().join(format!("sparks-emulator-{port}.log"));
            let process = Command::new(&python)
                .args(["-c", PROGRAM])
                .env("BIND_HOST", "127.0.0.1")
                .env("GATEWAY_PORT", port.to_string())
                .env("LOG_LEVEL", "ERROR")
                .env("SERVICES", "s3,sqs,sns,dynamodb,ssm,events,sts,iam")
                .stdin(Stdio::piped())
                .stdout(File::create(&log).expect("a file for what the emulator says"))
                .stderr(Stdio::null())
                .spawn()
                .expect("the emulator starts");
            let mut emulator = Self { process, port, made: AtomicU64::new(0) };
            if emulator.answers() {
                let _ = std::fs::remove_file(log);
                return emulator;
            }
        }
        panic!("the emulator does not answer")
    }

    fn answers(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(60) {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return false;
            }
            if health(self.port).is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What a program that uses it needs in its environment.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        environment()
    }

    /// A way to it.
    pub async fn connect(&self) -> Connection {
        connect(&self.endpoint()).await
    }

    /// A name that nothing else here has.
    pub fn fresh(&self, what: &str) -> String {
        format!("{what}-{}", self.made.fetch_add(1, Ordering::Relaxed))
    }

    /// A store of its own.
    ///
    /// # Panics
    ///
    /// Where it cannot be made.
    pub async fn store(&self) -> DynamoStore {
        self.store_through(&self.connect().await).await
    }

    /// A store of its own, reached by this way.
    ///
    /// # Panics
    ///
    /// Where it cannot be made.
    pub async fn store_through(&self, connection: &Connection) -> DynamoStore {
        let tables = self.tables().await;
        DynamoStore::open(connection, tables, 8).await.expect("the store opens")
    }

    /// Tables of their own.
    ///
    /// # Panics
    ///
    /// Where they cannot be made.
    pub async fn tables(&self) -> Tables {
        let [platform, log, faces] = ["platform", "log", "faces"].map(|name| self.fresh(name));
        let tables = Tables { platform, log, faces };
        let mut setup = Setup::new(&self.connect().await, false);
        setup.tables(&tables).await.expect("the tables");
        tables
    }
}

impl Emulator {
    /// A bucket of its own.
    ///
    /// # Panics
    ///
    /// Where it cannot be made.
    pub async fn bucket(&self) -> String {
        let name = self.fresh("bucket");
        Setup::new(&self.connect().await, false).bucket(&name).await.expect("a bucket");
        name
    }

    /// Standard queues of their own. What is received so often and never settled is a dead letter.
    pub async fn queues(&self, max_deaths: u32) -> Queues {
        self.queues_called([self.fresh("work"), self.fresh("dead")], None, max_deaths).await
    }

    /// FIFO queues of their own, with a standard one beside them.
    pub async fn fifo_queues(&self, max_deaths: u32) -> Queues {
        let names = ["work", "dead"].map(|name| format!("{}.fifo", self.fresh(name)));
        self.queues_called(names, Some(self.fresh("waiting")), max_deaths).await
    }

    async fn queues_called(&self, [work, dead]: [String; 2], waiting: Option<String>, max_deaths: u32) -> Queues {
        let tables = Tables { platform: String::new(), log: String::new(), faces: String::new() };
        let (prefixes, notices) = (Vec::new(), Vec::new());
        let estate = Estate {
            tables,
            bucket: String::new(),
            prefixes,
            work,
            waiting,
            dead,
            uploads: None,
            notices,
            visibility: 60,
            max_deaths,
        };
        let connection = self.connect().await;
        Setup::new(&connection, false).queues(&estate).await.expect("the queues");
        let url = async |name: &str| sparks_aws::SqsQueue::url(&connection, name).await.expect("a queue");
        let waiting = match &estate.waiting {
            Some(waiting) => Some(url(waiting).await),
            None => None,
        };
        Queues { work: url(&estate.work).await, waiting, dead: url(&estate.dead).await }
    }

    /// A topic, and queues of which one hears it.
    ///
    /// # Panics
    ///
    /// Where they cannot be made.
    pub async fn topic_heard_by_queue(&self, fifo: bool) -> (Queues, String) {
        let connection = self.connect().await;
        let (queues, kind) = if fifo { (self.fifo_queues(25).await, ".fifo") } else { (self.queues(25).await, "") };
        let topic = connection.sns().create_topic().name(format!("{}{kind}", self.fresh("topic")));
        let topic = if fifo { topic.attributes("FifoTopic", "true") } else { topic };
        let topic = topic.send().await.expect("a topic").topic_arn.expect("its name");
        let name = queues.work.rsplit('/').next().unwrap_or_default();
        let queue = format!("arn:aws:sqs:eu-central-1:000000000000:{name}");
        let subscribe = connection.sns().subscribe().topic_arn(&topic).protocol("sqs").endpoint(queue);
        subscribe.attributes("RawMessageDelivery", "true").send().await.expect("a subscription");
        (queues, topic)
    }

    /// Puts a secret there, over what there was.
    ///
    /// # Panics
    ///
    /// Where it cannot be put there.
    pub fn put_parameter(&self, name: &str, value: &str) {
        let body = json!({ "Name": name, "Value": value, "Type": "SecureString", "Overwrite": true }).to_string();
        // It says the region; nobody checks the rest.
        let who =
            "AWS4-HMAC-SHA256 Credential=test/20260101/eu-central-1/ssm/aws4_request, SignedHeaders=host, Signature=0";
        let head = format!(
            "X-Amz-Target: AmazonSSM.PutParameter\r\nAuthorization: {who}\r\nContent-Length: {}\r\n",
            body.len()
        );
        let answer =
            ask(self.port, &format!("POST / HTTP/1.1\r\nHost: localhost\r\n{head}Connection: close\r\n\r\n{body}"));
        assert!(answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200")), "a parameter");
    }
}

/// What a program that uses an emulator needs in its environment.
pub fn environment() -> [(&'static str, String); 4] {
    [
        ("AWS_ACCESS_KEY_ID", "test".into()),
        ("AWS_SECRET_ACCESS_KEY", "test".into()),
        ("AWS_REGION", "eu-central-1".into()),
        ("AWS_EC2_METADATA_DISABLED", "true".into()),
    ]
}

/// A way to an emulator, or to what stands before it.
pub async fn connect(endpoint: &str) -> Connection {
    let access = Access {
        region: Some("eu-central-1".into()),
        endpoint: Some(endpoint.to_owned()),
        keys: Some(("test".into(), "test".into())),
        ..Access::default()
    };
    Connection::open(&access).await
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The answer to whether it is well.
fn health(port: u16) -> Option<String> {
    ask(port, "GET /_ministack/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

/// How the answer begins.
fn ask(port: u16, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer[..read]).into_owned())
}
