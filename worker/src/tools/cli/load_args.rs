//! Arguments of `sparks load`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{human_duration::HumanDuration, percentage::Percentage};
use crate::rate::Rate;

#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Number of photos
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub photos: u32,
    /// Number of distinct identities
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub identities: u32,
    /// Maximum number of faces in a photo
    #[arg(long, value_name = "F", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=48))]
    pub faces_per_photo: u8,
    /// Messages per second, or per minute with /min [default: as fast as possible]
    #[arg(long, value_name = "R/s")]
    pub rate: Option<Rate>,
    /// Percentage of the photos that get a second message, half of them after a second upload of the same file
    #[arg(long, value_name = "P%", default_value_t = Percentage::default())]
    pub duplicates: Percentage,
    /// Percentage of the files that are damaged: truncated, without a header, empty, or plain text
    #[arg(long, value_name = "P%", default_value_t = Percentage::default())]
    pub corrupt: Percentage,
    /// Send messages in another order than the uploads, and one in ten before its IMAGE row
    #[arg(long)]
    pub shuffle: bool,
    /// Number of workers to start; with 0, workers that run elsewhere are tested, and their CPU and memory are not
    /// measured
    #[arg(long, value_name = "W", default_value_t = 2, value_parser = clap::value_parser!(u16).range(0..=256))]
    pub workers: u16,
    /// Concurrent photos per worker [default: as configured, one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Random seed; the same seed gives the same photos in the same order
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Origin of the upload notifications [default: the bucket, if it is configured to notify the queue]
    #[arg(long, value_enum)]
    pub through: Option<NotificationRoute>,
    /// Also write the report as an HTML page
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Stop after this long without progress
    #[arg(long, value_name = "T", default_value = "30m")]
    pub timeout: HumanDuration,
    /// Keep the temporary data folder
    #[arg(long, conflicts_with = "data")]
    pub keep: bool,
    /// Run even if the backend has persons; the synthetic persons remain among them
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NotificationRoute {
    /// This command sends messages in the format of S3 to the queue
    Queue,
    /// The bucket notifies the queue of each upload
    Bucket,
}
