//! Photos are decoded in processes of their own, so that a file that makes a decoder crash, run for ever or take all memory
//! costs that file alone.
//!
//! [`Isolated`] is the worker's side: it hands files to a `pool` of processes, each a `developer`, and knows whose fault a
//! `death` is. [`serve`] is the other side: this binary again, in its own `confines`. Both talk in frames (`frame`) through
//! pipes (`line`). Deliberately absent: shared memory, which needs unsafe code, and a sandbox against what a decoder that was
//! taken over may do to the machine.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that meets the unexpected may stop"))]

mod confines;
mod death;
mod developer;
mod frame;
mod hurt;
mod isolated;
mod line;
mod pool;
mod serve;

/// What this binary is called with to decode photos for the process that started it.
pub const COMMAND: &str = "darkroom";

pub use isolated::Isolated;
pub use serve::serve;
