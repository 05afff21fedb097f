//! The cores: how heavy work runs beside the asynchronous rest.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use tokio::sync::oneshot;

/// A bounded number of cores. Work on them holds up nothing else, and its panic stays its own.
///
/// Each core is a thread of its own: an allocator keeps what a thread has freed for that thread, so that heavy work on any
/// thread of many would leave as many photos' worth of memory behind.
#[derive(Clone)]
pub struct Cpu(mpsc::Sender<Work>);

type Work = Box<dyn FnOnce() + Send>;

/// Work that panicked: a fault of ours that its input set off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Crashed(String);

impl Crashed {
    /// Does the work here, and catches its panic.
    pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Self> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| Self(words(panic)))
    }
}

impl Cpu {
    /// This many cores, at least one.
    pub fn new(cores: usize) -> Self {
        let (sender, waiting) = mpsc::channel::<Work>();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..cores.max(1) {
            let waiting = Arc::clone(&waiting);
            thread::spawn(move || {
                let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(work) = next() {
                    work();
                }
            });
        }
        Self(sender)
    }

    /// Runs the work on one of the cores, when one is free.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Crashed> {
        let (done, result) = oneshot::channel();
        let work = move || {
            // Nobody waits any more for work whose caller is gone.
            if !done.is_closed() {
                drop(done.send(Crashed::catch(work)));
            }
        };
        let stopped = || Crashed("the cores have stopped".into());
        self.0.send(Box::new(work)).map_err(|_| stopped())?;
        result.await.map_err(|_| stopped())?
    }
}

fn words(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic without words".into())
}
