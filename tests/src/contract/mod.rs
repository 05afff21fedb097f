//! Contract suites: the behaviour that every adapter of a port must have.
//!
//! The tests of an adapter call [`store`], [`maintenance`], [`queue`], [`objects`], [`outage`] or [`platform_client`] with a function that
//! creates a fresh adapter, and call [`Report::assert_passed`]. A check returns an error instead of panicking, so that the suites
//! themselves can be tested on adapters with known defects (`tests/suite/ports/contract_detects_*.rs`).

mod maintenance;
mod objects;
mod platform_client;
mod queue;
mod store;

use std::{error::Error, fmt, future::Future, pin::Pin};

use tokio::task::JoinSet;

pub use maintenance::maintenance;
pub use objects::{OutageFixture, objects, outage};
pub use platform_client::{PlatformFixture, platform_client};
pub use queue::{Deduplication, LeaseDuration, QueueCapabilities, QueueFixture, queue};
pub use store::store;

/// The result of a check; the error says which expectation failed.
pub type CheckResult<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

type CheckFuture = Pin<Box<dyn Future<Output = CheckResult> + Send>>;

/// A named check of a port.
struct Check<P> {
    name: &'static str,
    run: fn(P) -> CheckFuture,
}

/// The results of all checks of a suite.
#[derive(Debug, Default)]
pub struct Report {
    results: Vec<(&'static str, Result<(), String>)>,
}

impl Report {
    /// Returns the names of the failed checks, sorted.
    pub fn failures(&self) -> Vec<&'static str> {
        let mut failures: Vec<_> = self.results.iter().filter(|(_, r)| r.is_err()).map(|(name, _)| *name).collect();
        failures.sort_unstable();
        failures
    }

    /// Asserts that every check passed.
    ///
    /// # Panics
    ///
    /// Panics with the results of all checks if one failed.
    pub fn assert_passed(&self) {
        assert!(!self.results.is_empty(), "the suite has no checks");
        assert!(self.failures().is_empty(), "the adapter violates its contract:\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, result) in &self.results {
            match result {
                Ok(()) => writeln!(f, "  passed  {name}")?,
                Err(error) => writeln!(f, "  FAILED  {name}: {error}")?,
            }
        }
        Ok(())
    }
}

/// Runs all checks concurrently, each on an adapter of its own.
async fn run<P, Fut>(checks: Vec<Check<P>>, make: impl Fn() -> Fut) -> Report
where
    P: Send + 'static,
    Fut: Future<Output = P>,
{
    let mut running = JoinSet::new();
    for Check { name, run } in checks {
        let port = make().await;
        running.spawn(async move {
            let checked = tokio::spawn(run(port)).await;
            let checked = checked.unwrap_or_else(|panic| Err(panic.into()));
            (name, checked.map_err(|error| error.to_string()))
        });
    }
    let mut results = running.join_all().await;
    results.sort_unstable();
    Report { results }
}

/// Lists the check functions with these names.
macro_rules! checks {
    ($($module:ident::{$($name:ident),* $(,)?}),* $(,)?) => {
        vec![$($($crate::contract::Check { name: stringify!($name), run: |port| Box::pin($module::$name(port)) }),*),*]
    };
}

/// Returns an error with this message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+).into());
        }
    };
}

/// Returns an error with this message and both values unless they are equal.
macro_rules! ensure_eq {
    ($actual:expr, $expected:expr, $($message:tt)+) => {
        match (&$actual, &$expected) {
            (actual, expected) => if actual != expected {
                return Err(format!("{}: got {actual:?}, expected {expected:?}", format_args!($($message)+)).into());
            }
        }
    };
}

use {checks, ensure, ensure_eq};
