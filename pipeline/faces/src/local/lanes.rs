//! One thread for each photo that is looked at.

use std::sync::{Arc, Mutex, PoisonError};

use rten::{RunOptions, ThreadPool};

/// Threads that wait for the next photo. Left to itself the runtime would spread each photo over all cores; a photo a core
/// gets more photos done.
#[derive(Default)]
pub struct Lanes {
    free: Mutex<Vec<Arc<ThreadPool>>>,
}

impl Lanes {
    /// A thread of one's own until the lane is dropped: one that is free, or else a new one.
    pub fn enter(&self) -> Lane<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Lane { pool: free.unwrap_or_else(|| Arc::new(ThreadPool::with_num_threads(1))), lanes: self }
    }
}

/// A thread that runs the models for one photo.
pub struct Lane<'a> {
    pool: Arc<ThreadPool>,
    lanes: &'a Lanes,
}

impl Lane<'_> {
    /// What makes the runtime use this thread alone.
    pub fn options(&self) -> RunOptions {
        RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)))
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        self.lanes.free.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&self.pool));
    }
}
