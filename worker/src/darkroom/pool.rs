//! The processes that decode photos: as many as photos are decoded at once, and none while nothing is to do.

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

use super::developer::{Developer, spawn};

/// A process without work is ended after this long: it may hold on to the memory of a large photo.
const REST: Duration = Duration::from_secs(30);

/// How often somebody looks for such processes.
const ROUND: Duration = Duration::from_secs(10);

/// Processes without work, and whoever starts more.
pub struct Pool {
    settings: Settings,
    idle: Arc<Mutex<Vec<Resting>>>,
    keeper: Mutex<Option<Sender<Wanted>>>,
}

struct Resting {
    developer: Developer,
    since: Instant,
}

/// Where a process that is wanted is to be handed to.
type Wanted = Sender<io::Result<Child>>;

impl Pool {
    /// Processes with these settings. None is started before it is wanted.
    pub fn new(settings: Settings) -> Self {
        Self { settings, idle: Arc::default(), keeper: Mutex::default() }
    }

    /// One that is there, the last used first, or a fresh one.
    pub fn take(&self) -> Result<Developer, String> {
        loop {
            let rested = lock(&self.idle).pop();
            let Some(Resting { mut developer, .. }) = rested else { return self.fresh() };
            // Somebody may have ended it while it rested.
            if developer.is_alive() {
                return Ok(developer);
            }
        }
    }

    /// One that has seen no photo yet.
    pub fn fresh(&self) -> Result<Developer, String> {
        let process = self.spawn().map_err(|error| error.to_string())?;
        Developer::greet(process, &self.settings)
    }

    fn spawn(&self) -> io::Result<Child> {
        let (deliver, delivery) = mpsc::channel();
        let keeper = match &mut *lock(&self.keeper) {
            Some(keeper) => keeper.clone(),
            none => none.insert(keep(Arc::clone(&self.idle))?).clone(),
        };
        keeper.send(deliver).map_err(io::Error::other)?;
        delivery.recv().map_err(io::Error::other)?
    }

    /// It has nothing to do any more.
    pub fn give_back(&self, developer: Developer) {
        lock(&self.idle).push(Resting { developer, since: Instant::now() });
    }
}

/// Whoever waits for the worker learns what its processes took, so they are waited for, not left to the system.
impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.idle).clear();
    }
}

/// Starts processes on one thread that lives as long as the pool, because the system ends them with the thread that started
/// them; and ends those that have rested for long.
fn keep(idle: Arc<Mutex<Vec<Resting>>>) -> io::Result<Sender<Wanted>> {
    let (sender, wanted) = mpsc::channel::<Wanted>();
    let rounds = move || {
        loop {
            match wanted.recv_timeout(ROUND) {
                Ok(deliver) => drop(deliver.send(spawn())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let rested: Vec<_> = lock(&idle).extract_if(.., |resting| resting.since.elapsed() > REST).collect();
            drop(rested); // not under the lock: it waits for their end
        }
    };
    thread::Builder::new().name("darkroom".into()).spawn(rounds)?;
    Ok(sender)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
