//! What can be typed to test under load.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::{rate::Rate, share::Share, span::Span};

#[derive(Debug, Args)]
pub struct LoadArgs {
    /// How many photos
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub photos: u32,
    /// How many different faces
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub identities: u32,
    /// At most so many faces in a photo
    #[arg(long, value_name = "F", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=48))]
    pub faces_per_photo: u8,
    /// So many messages a second, or a minute with /min [default: as quickly as possible]
    #[arg(long, value_name = "R/s")]
    pub rate: Option<Rate>,
    /// So many of the photos are told of twice, half of them after a second upload of the same file
    #[arg(long, value_name = "P%", default_value_t = Share::default())]
    pub duplicates: Share,
    /// So many of the files are damaged: truncated, without a header, empty, or a text
    #[arg(long, value_name = "P%", default_value_t = Share::default())]
    pub corrupt: Share,
    /// Messages come in another order than the uploads, and one in ten before its IMAGE row
    #[arg(long)]
    pub shuffle: bool,
    /// How many workers to start; with 0 those are tested that run elsewhere, and their CPU and memory are not seen
    #[arg(long, value_name = "W", default_value_t = 2, value_parser = clap::value_parser!(u16).range(0..=256))]
    pub workers: u16,
    /// Photos that each worker works on at once [default: as the settings say, one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// The same seed gives the same photos in the same order
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Who tells the queue of an upload [default: the bucket, where it is set up to]
    #[arg(long, value_enum)]
    pub through: Option<Through>,
    /// Also write the report as a page
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Give up when nothing has happened for so long
    #[arg(long, value_name = "T", default_value = "30m")]
    pub timeout: Span,
    /// Keep the data folder that was made for the test
    #[arg(long, conflicts_with = "data")]
    pub keep: bool,
    /// Also where there are persons already: synthetic ones will stay among them
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Through {
    /// This command sends the messages, as S3 writes them
    Queue,
    /// The bucket, because files are stored in it
    Bucket,
}
