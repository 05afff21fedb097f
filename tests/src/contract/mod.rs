//! What every adapter must do, whatever it is made of. An adapter's tests call [`store`], [`maintenance`], [`queue`],
//! [`objects`] or [`platform`] with a way to make a fresh one, and assert that the report has no failures. Checks say what is wrong and never panic, so that
//! the suites can be tried on adapters that are broken on purpose.

mod maintenance;
mod objects;
mod platform;
mod queue;
mod store;

use std::{error::Error, fmt, future::Future, pin::Pin};

use tokio::task::JoinSet;

pub use maintenance::maintenance;
pub use objects::{OutageRig, objects, outage};
pub use platform::{PlatformRig, platform};
pub use queue::{Abilities, Leases, QueueRig, Repeats, queue};
pub use store::store;

/// What a check says: nothing, or what is wrong.
pub type Checked<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

type Running = Pin<Box<dyn Future<Output = Checked> + Send>>;

/// A promise of a port, by name.
struct Check<P> {
    name: &'static str,
    run: fn(P) -> Running,
}

/// What became of each check of a suite.
#[derive(Debug, Default)]
pub struct Report {
    results: Vec<(&'static str, Result<(), String>)>,
}

impl Report {
    /// The checks that failed, by name.
    pub fn failures(&self) -> Vec<&'static str> {
        let mut failures: Vec<_> = self.results.iter().filter(|(_, r)| r.is_err()).map(|(name, _)| *name).collect();
        failures.sort_unstable();
        failures
    }

    /// Fails unless every check passed.
    ///
    /// # Panics
    ///
    /// With what is wrong.
    pub fn assert_passed(&self) {
        assert!(!self.results.is_empty(), "the suite has no checks");
        assert!(self.failures().is_empty(), "the contract is broken:\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, result) in &self.results {
            match result {
                Ok(()) => writeln!(f, "  kept    {name}")?,
                Err(wrong) => writeln!(f, "  broken  {name}: {wrong}")?,
            }
        }
        Ok(())
    }
}

/// Runs all checks at once, each on a port of its own.
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
            let checked = checked.unwrap_or_else(|panicked| Err(panicked.into()));
            (name, checked.map_err(|wrong| wrong.to_string()))
        });
    }
    let mut results = running.join_all().await;
    results.sort_unstable();
    Report { results }
}

/// The checks with these names.
macro_rules! checks {
    ($($module:ident::{$($name:ident),* $(,)?}),* $(,)?) => {
        vec![$($($crate::contract::Check { name: stringify!($name), run: |port| Box::pin($module::$name(port)) }),*),*]
    };
}

/// Says what is wrong, unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($wrong:tt)+) => {
        if !$holds {
            return Err(format!($($wrong)+).into());
        }
    };
}

/// Says what is wrong, unless both are equal.
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($wrong:tt)+) => {
        match (&$left, &$right) {
            (left, right) => if left != right {
                return Err(format!("{}: {left:?} instead of {right:?}", format_args!($($wrong)+)).into());
            }
        }
    };
}

use {checks, ensure, ensure_eq};
