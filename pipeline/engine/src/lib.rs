//! The ports, the stages of a photo and the use cases.
//!
//! Deliberately absent: any technology. What talks to a disk or a network lives behind a port, in an adapter.

mod cpu;
mod gallery_index;
mod message;
mod pipeline;
mod ports;
mod query_model;
mod rebuild;
mod register;
mod shown;
mod stages;
mod turn;

pub use cpu::{Cpu, Crashed};
pub use gallery_index::{GalleryIndex, Known};
pub use message::{Malformed, PhotoRef, upload_event};
pub use pipeline::{Pipeline, Ports, Rules};
pub use ports::*;
pub use query_model::{BadToken, Paging, QueryModel};
pub use rebuild::{Drift, Rebuilder};
pub use register::{Followed, Merged, Register, RegisterError, Rules as RegisterRules};
pub use stages::{Committed, Failure, Outcome, settlement};
pub use turn::{Ticket, Turnstile};
