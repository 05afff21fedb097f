//! Decodes photos in child processes with resource limits, so that a file that crashes a decoder, never ends or
//! exhausts memory affects that file only.
//!
//! In the worker, [`IsolatedImageProcessor`] sends files to a `DecoderPool` of `DecoderProcess`es and decides by the
//! `ProcessExit` whether the file or the environment is at fault. In the child process, which is this binary again,
//! [`serve()`] decodes under `ResourceLimits`. Both sides exchange frames (`protocol`) through pipes (`process_pipes`).
//! Deliberately absent: shared memory, which needs unsafe code, and a sandbox that contains a decoder under an
//! attacker's control.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a failed unwrap fails the test"))]

mod decoder_pool;
mod decoder_process;
mod fault_injection;
mod isolated_image_processor;
mod process_exit;
mod process_pipes;
mod protocol;
mod resource_limits;
mod serve;

/// The hidden subcommand that starts a decoder process.
pub const COMMAND: &str = "decoder";

pub use isolated_image_processor::IsolatedImageProcessor;
pub use serve::serve;
