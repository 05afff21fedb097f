//! A pool of threads for CPU-bound work.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use tokio::sync::oneshot;

/// A fixed number of threads for CPU-bound tasks, which would block the asynchronous runtime. A panic fails only its task.
///
/// The threads are the pool's own: allocators cache freed memory per thread, so heavy work spread over the many threads of the
/// runtime's blocking pool would retain one photo's worth of memory on each.
#[derive(Debug, Clone)]
pub struct CpuPool(Option<mpsc::Sender<Task>>);

type Task = Box<dyn FnOnce() + Send>;

/// A panic of a task: a bug that its input triggered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TaskPanicked(String);

impl TaskPanicked {
    /// Runs the task on this thread and catches its panic.
    pub fn catch<T>(task: impl FnOnce() -> T) -> Result<T, Self> {
        catch_unwind(AssertUnwindSafe(task)).map_err(|panic| Self(panic_message(panic)))
    }
}

impl CpuPool {
    /// Starts a pool with this number of threads, at least one.
    pub fn new(threads: usize) -> Self {
        let (sender, tasks) = mpsc::channel::<Task>();
        let tasks = Arc::new(Mutex::new(tasks));
        for _ in 0..threads.max(1) {
            let tasks = Arc::clone(&tasks);
            thread::spawn(move || {
                let next = || tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(task) = next() {
                    task();
                }
            });
        }
        Self(Some(sender))
    }

    /// Creates a pool that runs each task at once on the thread of its caller, so that a simulation with one thread is repeatable.
    pub fn inline() -> Self {
        Self(None)
    }

    /// Runs the task on the next free thread and returns its result.
    pub async fn run<T: Send + 'static>(&self, task: impl FnOnce() -> T + Send + 'static) -> Result<T, TaskPanicked> {
        let Some(pool) = &self.0 else { return TaskPanicked::catch(task) };
        let (sender, result) = oneshot::channel();
        let task = move || {
            // Skips a task whose caller was dropped while it waited.
            if !sender.is_closed() {
                drop(sender.send(TaskPanicked::catch(task)));
            }
        };
        let stopped = || TaskPanicked("the CPU pool has stopped".into());
        pool.send(Box::new(task)).map_err(|_| stopped())?;
        result.await.map_err(|_| stopped())?
    }
}

fn panic_message(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic without a message".into())
}
