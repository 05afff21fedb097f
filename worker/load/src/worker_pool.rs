//! Worker processes of this binary that end with the load test.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader},
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, ChildStderr, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::time::sleep;

use super::{ProcessUsage, WorkerCounters, worker_metrics};

/// How workers are started. They inherit the environment.
pub struct WorkerOptions {
    /// Number of workers.
    pub workers: usize,
    /// The data folder, if there is one.
    pub data: Option<PathBuf>,
    /// The settings file, if there is one.
    pub config: Option<PathBuf>,
    /// The environment variable that selects the synthetic face analyzer.
    pub analyzer_variable: &'static str,
    /// Concurrent photos per worker, if not as configured.
    pub jobs: Option<u16>,
}

/// Running worker processes. Those still running on drop are killed.
#[derive(Default)]
pub struct WorkerPool {
    workers: Vec<Worker>,
}

struct Worker {
    process: Child,
    number: usize,
    log: Arc<Mutex<WorkerLog>>,
    counters: WorkerCounters,
    usage: ProcessUsage,
    exit: Option<String>,
}

/// What a worker has logged.
#[derive(Default)]
struct WorkerLog {
    /// The address of the health checks.
    address: Option<SocketAddr>,
    /// The last warnings and errors.
    last_lines: VecDeque<String>,
}

/// Time until a worker must be ready; it may have to load a gallery.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Time until a stopped worker is killed; longer than the worker's own grace period.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// Warnings and errors kept per worker.
const LOG_LINES: usize = 5;

impl WorkerPool {
    /// Starts all workers and waits until they are ready. Must be called on the main thread: the workers end with the
    /// thread that started them.
    pub async fn start(options: &WorkerOptions) -> anyhow::Result<Self> {
        let mut pool = Self::default();
        for number in 1..=options.workers {
            pool.workers.push(Worker::start(options, number)?);
        }
        for worker in &mut pool.workers {
            worker.wait_until_ready().await?;
        }
        Ok(pool)
    }

    /// Updates the counters, usage and exit status of all workers.
    pub async fn refresh(&mut self) {
        let pids: Vec<u32> = self.workers.iter().map(|worker| worker.process.id()).collect();
        let usage = ProcessUsage::of(&pids);
        for (worker, usage) in self.workers.iter_mut().zip(usage) {
            worker.refresh(usage).await;
        }
    }

    /// Returns the usage of each worker at the last refresh.
    pub fn usage(&self) -> Vec<ProcessUsage> {
        self.workers.iter().map(|worker| worker.usage).collect()
    }

    /// Returns the sum of all counters at the last refresh.
    pub fn counters(&self) -> WorkerCounters {
        self.workers.iter().fold(WorkerCounters::default(), |sum, worker| sum.plus(&worker.counters))
    }

    /// Returns a description of each worker that exited unexpectedly, with its last log lines.
    pub fn exits(&self) -> Vec<String> {
        self.workers.iter().filter_map(|worker| worker.exit.clone()).collect()
    }

    /// Returns whether there were workers and all have exited.
    pub fn have_all_exited(&self) -> bool {
        !self.workers.is_empty() && self.workers.iter().all(|worker| worker.exit.is_some())
    }

    /// Sends SIGTERM to all workers and waits until they have finished their messages in flight.
    pub async fn stop(&mut self) {
        let is_running = |worker: &&mut Worker| worker.exit.is_none();
        for worker in self.workers.iter_mut().filter(is_running) {
            let _ = kill_process(Pid::from_child(&worker.process), Signal::TERM);
        }
        let stopped = Instant::now();
        while self.workers.iter_mut().any(|worker| matches!(worker.process.try_wait(), Ok(None))) {
            if stopped.elapsed() > STOP_TIMEOUT {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        self.workers.clear();
    }
}

impl Worker {
    fn start(options: &WorkerOptions, number: usize) -> anyhow::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["run", "--listen", "127.0.0.1:0", "--end-with-parent"]);
        // The deprecated name would conflict with the current one.
        command.env_remove("SPARKS_FACES_COMPANION").env(options.analyzer_variable, "synthetic");
        command.args(options.data.iter().flat_map(|data| ["--data".into(), data.clone()]));
        command.args(options.config.iter().flat_map(|config| ["--config".into(), config.clone()]));
        command.args(options.jobs.iter().flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]));
        // Files that others put into the inbox are not part of this test.
        command.env("SPARKS_RUN_INBOX", "false");
        command.env("SPARKS_LOG", "warn,sparks::commands::run=info").env("SPARKS_LOG_FORMAT", "json");
        // A group of their own, so that Ctrl-C reaches only the load test, which then stops them.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().context("failed to start a worker")?;
        let log = Arc::new(Mutex::new(WorkerLog::default()));
        if let Some(stderr) = process.stderr.take() {
            let log = Arc::clone(&log);
            std::thread::spawn(move || read_log(stderr, &log));
        }
        let (counters, usage) = (WorkerCounters::default(), ProcessUsage::default());
        Ok(Self { process, number, log, counters, usage, exit: None })
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            if let Ok(Some(_)) = self.process.try_wait() {
                // The last lines may still be in the pipe.
                sleep(Duration::from_millis(200)).await;
                bail!("worker {} did not start: {}", self.number, self.last_lines());
            }
            if let Some(address) = self.address()
                && worker_metrics::get(address, "/readyz").await.is_some()
            {
                return Ok(());
            }
            if started.elapsed() > START_TIMEOUT {
                let seconds = START_TIMEOUT.as_secs();
                bail!("timeout: worker {} is not ready after {seconds} s: {}", self.number, self.last_lines());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn refresh(&mut self, usage: ProcessUsage) {
        if self.exit.is_some() {
            return;
        }
        if let Ok(Some(status)) = self.process.try_wait() {
            self.exit = Some(format!("worker {} exited ({status}): {}", self.number, self.last_lines()));
            return;
        }
        // The peak includes decoder processes that have ended since.
        self.usage = ProcessUsage { peak: usage.peak.max(self.usage.peak), ..usage };
        if let Some(address) = self.address()
            && let Some(text) = worker_metrics::get(address, "/metrics").await
        {
            self.counters = WorkerCounters::parse(&text);
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        lock(&self.log).address
    }

    fn last_lines(&self) -> String {
        let log = lock(&self.log);
        let lines: Vec<&str> = log.last_lines.iter().map(String::as_str).collect();
        if lines.is_empty() { "it logged nothing".into() } else { lines.join("; ") }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads a worker's log to its end, because a full pipe would block the worker.
fn read_log(stderr: ChildStderr, log: &Mutex<WorkerLog>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let mut log = lock(log);
        let fields: Option<Value> = serde_json::from_str(&line).ok();
        let text = |name: &str| fields.as_ref().and_then(|fields| fields.get(name)?.as_str());
        if let Some(address) = text("health").and_then(|address| address.parse().ok()) {
            log.address = Some(address);
        }
        if text("level") == Some("info") {
            continue;
        }
        if log.last_lines.len() == LOG_LINES {
            log.last_lines.pop_front();
        }
        log.last_lines.push_back(line);
    }
}

fn lock(log: &Mutex<WorkerLog>) -> MutexGuard<'_, WorkerLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
