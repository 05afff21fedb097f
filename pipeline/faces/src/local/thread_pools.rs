//! Single-threaded pools, one for each photo in work.

use std::sync::{Arc, Mutex, PoisonError};

use rten::{RunOptions, ThreadPool};

/// Idle pools of one thread. By default the runtime would spread each photo over all cores; one photo per core has a higher
/// throughput.
#[derive(Default)]
pub struct ThreadPools {
    idle: Mutex<Vec<Arc<ThreadPool>>>,
}

impl ThreadPools {
    /// Returns a pool for exclusive use until it is dropped: an idle one, or else a new one.
    pub fn acquire(&self) -> PooledThread<'_> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        PooledThread { pool: idle.unwrap_or_else(|| Arc::new(ThreadPool::with_num_threads(1))), pools: self }
    }
}

/// A thread that runs the models for one photo, returned to the idle ones on drop.
pub struct PooledThread<'a> {
    pool: Arc<ThreadPool>,
    pools: &'a ThreadPools,
}

impl PooledThread<'_> {
    /// Returns the options that restrict the runtime to this thread.
    pub fn options(&self) -> RunOptions {
        RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)))
    }
}

impl Drop for PooledThread<'_> {
    fn drop(&mut self) {
        self.pools.idle.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&self.pool));
    }
}
