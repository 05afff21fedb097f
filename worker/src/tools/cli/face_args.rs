//! Arguments of `sparks faces` and `sparks rekognition-server`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sparks faces eval ~/labelled               measure accuracy on labelled photos
  sparks faces show party.jpg -o faces.png   draw the detected faces")]
pub struct FacesArgs {
    #[command(subcommand)]
    pub action: FacesAction,
}

#[derive(Debug, Subcommand)]
pub enum FacesAction {
    /// Measure identification accuracy on labelled photos: a folder with one folder of photos per person
    #[command(after_help = "\
Writes nothing. The label of a photo applies to the face that is largest and nearest to the
centre. All faces are identified by the same rules as in `sparks ingest`, in several shuffled
orders, and the mean is printed.

Examples:
  sparks faces eval ~/labelled
  sparks faces eval ~/labelled --json | jq .precision
  SPARKS_FACES_MODELS=dlib sparks faces eval ~/labelled")]
    Eval(EvalArgs),
    /// Draw boxes, landmarks, scores and names on a photo
    #[command(after_help = "\
Examples:
  sparks faces show tests/photos/obama-1.jpg -o seen.png
  sparks faces show party.jpg -o seen.png --data ~/sparks-data      (with the names of the persons in that data folder)")]
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub struct EvalArgs {
    /// The folder with one folder per person
    pub dir: PathBuf,
    /// Number of shuffled orders in which the photos are processed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub orders: u64,
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
pub struct RekognitionServerArgs {
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8085")]
    pub listen: String,
    /// Folder of the collections; without it they are kept in memory and lost on exit
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Face engine [default: local]
    #[arg(long, value_enum)]
    pub faces: Option<Engine>,
    /// Accept only requests signed with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the server's environment
    #[arg(long)]
    pub signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// The face engine inside the binary
    Local,
    /// Reads the markers that `sparks synth` draws
    Synthetic,
}

impl Engine {
    /// Returns the value of the setting `faces.analyzer`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Synthetic => "synthetic",
        }
    }
}
