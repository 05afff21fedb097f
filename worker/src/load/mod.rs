//! A load test that checks itself: photos whose truth is known, workers that take them, and a look at what came of it.
//!
//! [`Plan`] says what the platform does and [`Truth`] what must come of it; [`Sender`] does it while a [`Fleet`] works and a
//! [`Watch`] looks on. Afterwards [`Evidence`] is gathered, [`Outcome`] judges it, and a [`Report`] tells.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that meets the unexpected may stop"))]

mod census;
mod charts;
mod damage;
mod easel;
mod evidence;
mod figures;
mod fleet;
mod outcome;
mod page;
mod plan;
mod plot;
mod report;
mod scrape;
mod scratch;
mod sender;
mod ticks;
mod truth;
mod usage;
mod watch;

pub use census::Census;
pub use damage::Damage;
pub use easel::Easel;
pub use evidence::{Evidence, Shown};
pub use figures::Figures;
pub use fleet::{Fleet, Orders};
pub use outcome::{Check, Outcome};
pub use plan::{Plan, Step, Wish};
pub use report::{Report, machine};
pub use scratch::Scratch;
pub use sender::{Ledger, Sender, Teller};
pub use truth::{Fate, Made, Truth};
pub use watch::{Ended, Logged, Sample, Watch};
