//! What happened in a run, line by line.

use std::{
    fmt::Display,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The lines of a story; clones share them. A story that is not told costs nothing.
#[derive(Clone)]
pub(crate) struct Story {
    lines: Option<Arc<Mutex<Vec<String>>>>,
    started: Instant,
}

impl Story {
    pub fn new(is_told: bool) -> Self {
        Self { lines: is_told.then(Arc::default), started: Instant::now() }
    }

    /// Adds a line with the time.
    pub fn tell<T: Display>(&self, line: impl FnOnce() -> T) {
        if let Some(lines) = &self.lines {
            let text = format!("{:>9.3} s  {}", self.elapsed().as_secs_f64(), line());
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }

    /// Adds a line with the time, if there is one.
    pub fn tell_some(&self, line: impl FnOnce() -> Option<String>) {
        if self.is_told()
            && let Some(line) = line()
        {
            self.tell(|| line);
        }
    }

    /// Returns whether the story is told.
    pub fn is_told(&self) -> bool {
        self.lines.is_some()
    }

    /// Returns the time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns all lines.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.lines.as_ref().map(|lines| lines.lock().unwrap_or_else(PoisonError::into_inner).clone());
        lines.unwrap_or_default()
    }
}
