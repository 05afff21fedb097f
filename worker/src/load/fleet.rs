//! Workers of our own: processes of this very binary, gone when we are.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader},
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, ChildStderr, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::time::sleep;

use super::{
    scrape::{self, Counts},
    usage::Usage,
};

/// How workers are started.
pub struct Orders {
    /// How many.
    pub workers: usize,
    /// Their data folder, where they have one.
    pub data: Option<PathBuf>,
    /// Their settings, beside the environment, which is ours.
    pub config: Option<PathBuf>,
    /// The setting of what reads markers, as a variable.
    pub faces: &'static str,
    /// Photos that each works on at once, if not as the settings say.
    pub jobs: Option<u16>,
}

/// Workers that run. Whoever is left is killed when this is dropped.
#[derive(Default)]
pub struct Fleet {
    workers: Vec<Worker>,
}

struct Worker {
    process: Child,
    number: usize,
    words: Arc<Mutex<Words>>,
    counts: Counts,
    usage: Usage,
    ended: Option<String>,
}

/// What a worker says of itself.
#[derive(Default)]
struct Words {
    address: Option<SocketAddr>,
    last: VecDeque<String>,
}

/// To open everything and load a gallery.
const START: Duration = Duration::from_secs(120);
/// Beyond the worker's own grace.
const STOP: Duration = Duration::from_secs(60);
/// Lines that are kept of what a worker says.
const LINES: usize = 5;

impl Fleet {
    /// Starts them all and waits until they are ready. To be called on the main thread: they end with the thread that
    /// started them.
    pub async fn start(orders: &Orders) -> anyhow::Result<Self> {
        let mut fleet = Self::default();
        for number in 1..=orders.workers {
            fleet.workers.push(Worker::start(orders, number)?);
        }
        for worker in &mut fleet.workers {
            worker.ready().await?;
        }
        Ok(fleet)
    }

    /// Asks everybody what they have taken and counted by now.
    pub async fn look(&mut self) {
        let pids: Vec<u32> = self.workers.iter().map(|worker| worker.process.id()).collect();
        let usage = Usage::of(&pids);
        for (worker, usage) in self.workers.iter_mut().zip(usage) {
            worker.look(usage).await;
        }
    }

    /// What each has taken, as of the last look.
    pub fn usage(&self) -> Vec<Usage> {
        self.workers.iter().map(|worker| worker.usage).collect()
    }

    /// What all have counted, as of the last look.
    pub fn counts(&self) -> Counts {
        self.workers.iter().fold(Counts::default(), |sum, worker| sum.plus(&worker.counts))
    }

    /// Workers that ended by themselves, and what they said.
    pub fn deaths(&self) -> Vec<String> {
        self.workers.iter().filter_map(|worker| worker.ended.clone()).collect()
    }

    /// Whether nobody is left to work.
    pub fn is_dead(&self) -> bool {
        !self.workers.is_empty() && self.workers.iter().all(|worker| worker.ended.is_some())
    }

    /// Lets everybody finish what they have in hand.
    pub async fn stop(&mut self) {
        let alive = |worker: &&mut Worker| worker.ended.is_none();
        for worker in self.workers.iter_mut().filter(alive) {
            let _ = kill_process(Pid::from_child(&worker.process), Signal::TERM);
        }
        let patience = Instant::now();
        while self.workers.iter_mut().any(|worker| matches!(worker.process.try_wait(), Ok(None))) {
            if patience.elapsed() > STOP {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        self.workers.clear();
    }
}

impl Worker {
    fn start(orders: &Orders, number: usize) -> anyhow::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["run", "--listen", "127.0.0.1:0", "--end-with-parent"]);
        command.env(orders.faces, "synthetic");
        command.args(orders.data.iter().flat_map(|data| ["--data".into(), data.clone()]));
        command.args(orders.config.iter().flat_map(|config| ["--config".into(), config.clone()]));
        command.args(orders.jobs.iter().flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]));
        // Files of others in the inbox are none of this test's business.
        command.env("SPARKS_RUN_INBOX", "false");
        command.env("SPARKS_LOG", "warn,sparks::commands::run=info").env("SPARKS_LOG_FORMAT", "json");
        // Whoever interrupts us does not interrupt them: we say when they stop.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().context("cannot start a worker")?;
        let words = Arc::new(Mutex::new(Words::default()));
        if let Some(said) = process.stderr.take() {
            let words = Arc::clone(&words);
            std::thread::spawn(move || listen(said, &words));
        }
        Ok(Self { process, number, words, counts: Counts::default(), usage: Usage::default(), ended: None })
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            if let Ok(Some(_)) = self.process.try_wait() {
                // What it said last may still be on its way.
                sleep(Duration::from_millis(200)).await;
                bail!("worker {} did not start: {}", self.number, self.last_words());
            }
            if let Some(address) = self.address()
                && scrape::get(address, "/readyz").await.is_some()
            {
                return Ok(());
            }
            if started.elapsed() > START {
                bail!("worker {} is not ready after {} s: {}", self.number, START.as_secs(), self.last_words());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn look(&mut self, usage: Usage) {
        if self.ended.is_some() {
            return;
        }
        if let Ok(Some(status)) = self.process.try_wait() {
            self.ended = Some(format!("worker {} ended ({status}): {}", self.number, self.last_words()));
            return;
        }
        // Who decoded and has ended had its memory all the same.
        self.usage = Usage { peak: usage.peak.max(self.usage.peak), ..usage };
        if let Some(address) = self.address()
            && let Some(text) = scrape::get(address, "/metrics").await
        {
            self.counts = Counts::read(&text);
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).address
    }

    fn last_words(&self) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = words.last.iter().map(String::as_str).collect();
        if last.is_empty() { "it said nothing".into() } else { last.join("; ") }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads what a worker says to its end: a pipe that nobody reads would hold it up.
fn listen(said: ChildStderr, words: &Mutex<Words>) {
    for line in BufReader::new(said).lines().map_while(Result::ok) {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        let fields: Option<Value> = serde_json::from_str(&line).ok();
        let text = |name: &str| fields.as_ref().and_then(|fields| fields.get(name)?.as_str());
        if let Some(address) = text("health").and_then(|address| address.parse().ok()) {
            words.address = Some(address);
        }
        if text("level") == Some("info") {
            continue;
        }
        if words.last.len() == LINES {
            words.last.pop_front();
        }
        words.last.push_back(line);
    }
}
