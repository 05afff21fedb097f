//! Accuracy of face identification, measured on labelled photos.
//!
//! [`VerificationMetrics`] measures 1:1 verification: how well similarity alone separates pairs of one person from
//! pairs of two. [`Trial`] runs photos one at a time through the rules that identify and consolidate, in memory, and
//! [`ClusteringScore`] compares the resulting persons with the labels.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a failed unwrap fails the test"))]

mod report;
mod score;
mod trial;
mod verification;

pub use report::EvaluationReport;
pub use score::{ClusteringCounts, ClusteringScore};
pub use trial::{EvaluatedPhoto, Trial, run_trials};
pub use verification::VerificationMetrics;
