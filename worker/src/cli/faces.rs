//! What can be typed about engines, and the faces that try them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub struct FacesArgs {
    #[command(subcommand)]
    pub action: FacesAction,
}

#[derive(Debug, Args)]
pub struct RekognitionServerArgs {
    /// Where to listen; port 0 is any that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8085")]
    pub listen: String,
    /// Where collections are kept; without it they are gone at the end
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Who looks for faces [default: local]
    #[arg(long, value_enum)]
    pub faces: Option<Engine>,
    /// Answer only requests that are signed with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of this server
    #[arg(long)]
    pub signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// The engine inside the binary
    Local,
    /// Markers of `sparks synth`
    Synthetic,
}

impl Engine {
    /// As the settings call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Synthetic => "synthetic",
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum FacesAction {
    /// Measure how well persons are told apart, on a folder with a folder of photos for each person
    #[command(after_help = "\
Examples:
  sparks faces eval ~/labelled
  sparks faces eval ~/labelled --json | jq .precision
  SPARKS_FACES_MODELS=dlib sparks faces eval ~/labelled

Nothing is written. The person of a photo is the face that is largest and nearest to the middle; all faces go through the
same rules as in `sparks ingest`, in several shuffled orders, and the mean is printed.")]
    Eval(EvalArgs),
    /// Draw boxes, landmarks, scores and names on a photo
    #[command(after_help = "\
Examples:
  sparks faces show tests/photos/obama-1.jpg -o seen.png
  sparks faces show party.jpg -o seen.png --data ~/sparks-data      (with the names of whoever is known there)")]
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The photo
    pub photo: PathBuf,
    /// The PNG file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct EvalArgs {
    /// The folder
    pub dir: PathBuf,
    /// In how many orders the photos are met
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub orders: u64,
}

#[derive(Debug, Args)]
pub struct SynthArgs {
    /// The folder to write to; made if it is not there
    pub dir: PathBuf,
    /// How many photos
    #[arg(long, value_name = "N")]
    pub photos: usize,
    /// How many different faces
    #[arg(long, value_name = "K")]
    pub identities: usize,
    /// At most so many faces in a photo
    #[arg(long, value_name = "F", default_value_t = 3)]
    pub faces_per_photo: usize,
    /// The same seed gives the same album
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// How much a face differs from photo to photo; from about 1 on a person is not known again at once
    #[arg(long, value_name = "X", default_value_t = sparks_faces::DEFAULT_NOISE)]
    pub noise: f32,
}
