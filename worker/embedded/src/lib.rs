//! The backend that needs nothing: one SQLite file for table, log, signatures and queue, and a folder for objects.
//!
//! Several processes may share one data folder. Every write is a `BEGIN IMMEDIATE` transaction, so that writers queue up
//! instead of failing half-way.

mod backend;
mod database;
mod doctor;
mod faces;
mod files;
mod intake;
mod log;
mod maintenance;
mod owner;
mod platform;
mod publisher;
mod queue;
mod rows;
mod store;

pub use backend::{Embedded, OpenError};
pub use doctor::Doctor;
pub use files::FileObjects;
pub use intake::{Intake, Submission};
pub use platform::FolderPlatform;
pub use publisher::FilePublisher;
pub use queue::{Patience, SqliteQueue};
pub use store::SqliteStore;
