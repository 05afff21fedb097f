//! A pool of decoder processes: as many as photos are decoded concurrently, and none while there is nothing to do.

use std::{
    io,
    process::Child,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use sparks_config::Settings;

use super::decoder_process::{DecoderProcess, spawn};

/// An idle process is ended after this time, because it may hold the memory of a large photo.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval of the check for idle processes.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Idle decoder processes, and the thread that starts more.
pub struct DecoderPool {
    settings: Settings,
    idle: Arc<Mutex<Vec<IdleProcess>>>,
    spawner: Mutex<Option<Sender<SpawnRequest>>>,
}

struct IdleProcess {
    process: DecoderProcess,
    since: Instant,
}

/// The channel on which a spawned process is returned.
type SpawnRequest = Sender<io::Result<Child>>;

impl DecoderPool {
    /// Creates an empty pool. Processes are started on demand.
    pub fn new(settings: Settings) -> Self {
        Self { settings, idle: Arc::default(), spawner: Mutex::default() }
    }

    /// Returns the most recently used idle process, or a fresh one.
    pub fn take(&self) -> Result<DecoderProcess, String> {
        loop {
            let idle = lock(&self.idle).pop();
            let Some(IdleProcess { mut process, .. }) = idle else { return self.start() };
            // An idle process may have been killed.
            if process.is_running() {
                return Ok(process);
            }
        }
    }

    /// Starts a fresh process.
    pub fn start(&self) -> Result<DecoderProcess, String> {
        let process = self.spawn().map_err(|error| error.to_string())?;
        DecoderProcess::initialize(process, &self.settings)
    }

    fn spawn(&self) -> io::Result<Child> {
        let (sender, receiver) = mpsc::channel();
        let spawner = match &mut *lock(&self.spawner) {
            Some(spawner) => spawner.clone(),
            none => none.insert(start_spawner(Arc::clone(&self.idle))?).clone(),
        };
        spawner.send(sender).map_err(io::Error::other)?;
        receiver.recv().map_err(io::Error::other)?
    }

    /// Returns an idle process to the pool.
    pub fn put_back(&self, process: DecoderProcess) {
        lock(&self.idle).push(IdleProcess { process, since: Instant::now() });
    }
}

/// Waits for the end of all processes, so that their CPU time and memory count as the worker's.
impl Drop for DecoderPool {
    fn drop(&mut self) {
        lock(&self.idle).clear();
    }
}

/// Starts the thread that spawns processes and ends those that have been idle for long. It lives as long as the pool,
/// because the system ends a process with the thread that spawned it (`PR_SET_PDEATHSIG`).
fn start_spawner(idle: Arc<Mutex<Vec<IdleProcess>>>) -> io::Result<Sender<SpawnRequest>> {
    let (sender, requests) = mpsc::channel::<SpawnRequest>();
    let run = move || {
        loop {
            match requests.recv_timeout(IDLE_CHECK_INTERVAL) {
                Ok(request) => drop(request.send(spawn())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let expired: Vec<_> = lock(&idle).extract_if(.., |idle| idle.since.elapsed() > IDLE_TIMEOUT).collect();
            drop(expired); // outside the lock: it waits for their exit
        }
    };
    thread::Builder::new().name("decoder-spawner".into()).spawn(run)?;
    Ok(sender)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
