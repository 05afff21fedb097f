//! The embedded backend: one SQLite file for table, event log, signatures and queue, and a folder for objects
//!
//! Several processes may share one data folder. Every write is a `BEGIN IMMEDIATE` transaction, so that a writer waits at the
//! start instead of failing with a conflict later.

mod data_folder;
mod database;
mod dead_letter_retention;
mod doctor;
pub mod durable_files;
mod event_log;
mod face_rows;
mod file_objects;
mod file_publisher;
mod folder_level;
mod folder_platform_client;
mod folder_workers;
mod item_rows;
mod maintenance;
mod process_registry;
mod sqlite_queue;
mod sqlite_store;
mod upload_submitter;

pub use data_folder::{Embedded, FolderConfig, OpenError};
pub use doctor::Doctor;
pub use file_objects::FileObjects;
pub use file_publisher::{FilePublisher, PublishedRetention};
pub use folder_platform_client::FolderPlatformClient;
pub use folder_workers::FolderWorkers;
pub use sqlite_queue::{QueueConfig, SqliteQueue};
pub use sqlite_store::SqliteStore;
pub use upload_submitter::{Submission, UploadSubmitter};
