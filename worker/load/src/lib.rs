//! A load test that checks its own result: synthetic photos with known identities are uploaded, workers process them,
//! and the final state is compared with the ground truth.
//!
//! A [`Plan`] lists the uploads and [`GroundTruth`] the expected result of each. [`Sender`] uploads while a
//! [`WorkerPool`] processes and a [`Monitor`] samples progress. Afterwards [`FinalState`] is collected, [`CheckReport`]
//! compares it with the ground truth, and [`LoadReport`] renders everything.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a failed unwrap fails the test"))]

mod charts;
mod checks;
mod damage;
mod final_state;
mod ground_truth;
mod html;
mod measurements;
mod monitor;
mod person_rows;
mod photo_events;
mod photo_generator;
mod plan;
mod plot;
mod process_usage;
mod report;
mod send_progress;
mod sender;
mod temporary_folder;
mod ticks;
mod worker_metrics;
mod worker_pool;

pub use checks::{Check, CheckReport};
pub use damage::Damage;
pub use final_state::{FinalState, StateSource, StoredPhotoRows};
pub use ground_truth::{ExpectedPhoto, ExpectedResult, GroundTruth};
pub use measurements::Measurements;
pub use monitor::{EndReason, Monitor, MonitorTarget, Sample};
pub use person_rows::PersonRows;
pub use photo_events::PhotoEvents;
pub use photo_generator::PhotoGenerator;
pub use plan::{LoadSpec, Plan, Step};
pub use process_usage::ProcessUsage;
pub use report::{LISTED_FAILURES, LoadReport, ReportEntry, describe_machine};
pub use send_progress::SendProgress;
pub use sender::{NotificationSource, Sender};
pub use temporary_folder::TemporaryFolder;
pub use worker_metrics::WorkerCounters;
pub use worker_pool::{WorkerOptions, WorkerPool};
