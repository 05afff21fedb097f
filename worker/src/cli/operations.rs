//! What can be typed to look after a worker.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};

use super::Faces;
use crate::{rate::Rate, since::Since};

#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Only say what is missing; exit code 1 if anything is
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Ask no service, and look at no data folder: only whether this binary works on this machine
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
pub struct SendArgs {
    /// Files with a message each; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Every line that is not empty is a message of its own
    #[arg(long)]
    pub lines: bool,
}

#[derive(Debug, Args)]
pub struct DlqArgs {
    #[command(subcommand)]
    pub action: DlqAction,
}

#[derive(Debug, Subcommand)]
pub enum DlqAction {
    /// List dead letters, or count them
    #[command(after_help = "\
Examples:
  sparks dlq ls
  sparks dlq ls --by reason
  sparks dlq ls --reason no-image-row --since 2h
  sparks dlq ls --image 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq --json")]
    Ls(LsArgs),
    /// Show all there is to know of one letter
    Show {
        /// The letter's ID
        id: String,
    },
    /// Send messages again; the letters go
    #[command(after_help = "\
Examples:
  sparks dlq replay 000000000042
  sparks dlq replay --reason no-image-row --since 1d --dry-run
  sparks dlq replay --all --rate 10/s

A message is sent before its letter goes: interrupted and repeated, this loses nothing.
What dies again meanwhile is a new letter, which waits for the next call.")]
    Replay(ReplayArgs),
    /// Remove letters for good
    #[command(after_help = "\
Examples:
  sparks dlq drop 000000000042
  sparks dlq drop --reason malformed --dry-run
  sparks dlq drop --all

`sparks dlq export` keeps a copy.")]
    Drop(DropArgs),
    /// Write letters as JSON, one a line
    #[command(after_help = "\
Examples:
  sparks dlq export -o letters.jsonl
  sparks dlq export --reason malformed | jq .reason")]
    Export(ExportArgs),
}

#[derive(Debug, Default, Args)]
pub struct FilterArgs {
    /// Only those with this cause, as `sparks dlq ls` shows it, or with this text in their reason
    #[arg(long, value_name = "R", value_parser = NonEmptyStringValueParser::new())]
    pub reason: Option<String>,
    /// Only those about this photo
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub image: Option<String>,
    /// Only those that died since then: a time, a date, or an age (90s, 15m, 2h, 7d)
    #[arg(long, value_name = "T")]
    pub since: Option<Since>,
}

#[derive(Debug, Args)]
pub struct LsArgs {
    /// Count them
    #[arg(long, value_enum, conflicts_with = "limit")]
    pub by: Option<By>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// How many at most [default: 100, and all with --json]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// What kind of reason they died of
    Reason,
}

/// Letters that something is done to: never all of them by mistake.
#[derive(Debug, Args)]
pub struct WhichArgs {
    /// These letters
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["reason", "image", "since"])]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// All letters
    #[arg(long, conflicts_with_all = ["ids", "reason", "image", "since"])]
    pub all: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub which: WhichArgs,
    /// So many a second, or a minute with /min
    #[arg(long, value_name = "N/s")]
    pub rate: Option<Rate>,
}

#[derive(Debug, Args)]
pub struct DropArgs {
    #[command(flatten)]
    pub which: WhichArgs,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub filter: FilterArgs,
    /// The file to write, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TailArgs {
    /// How many of the last notices
    #[arg(short = 'n', value_name = "N", default_value_t = 10)]
    pub number: usize,
    /// Go on with those to come, until interrupted
    #[arg(short, long)]
    pub follow: bool,
    /// Only notices of this type; may be given several times
    #[arg(long = "type", value_name = "T")]
    pub types: Vec<String>,
}

#[derive(Debug, Args)]
pub struct BackfillArgs {
    /// Only originals stored since then: a time, a date, or an age (90s, 15m, 2h, 7d)
    #[arg(long, value_name = "T")]
    pub since: Option<Since>,
    /// Count, and send nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// Look at everything, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct PhotoArgs {
    #[command(subcommand)]
    pub action: PhotoAction,
}

#[derive(Debug, Subcommand)]
pub enum PhotoAction {
    /// Delete photos for good: rows, tags, objects and signatures; their owners may upload as many more
    #[command(after_help = "\
Examples:
  sparks photo delete 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq
  sparks photo delete 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq --json | jq .persons_forgotten

Whoever is in no other photo is forgotten; whoever was shown by a face of the photo is shown by
another. Deleting once more is harmless.")]
    Delete {
        /// Image IDs
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub struct RedecideArgs {
    /// Who looks for faces [default: as the settings say]
    #[arg(long, value_enum)]
    pub faces: Option<Faces>,
    /// Similarity from which two faces are one person; 0 is the model's own [default: as the settings say]
    #[arg(long, value_name = "T")]
    pub threshold: Option<f64>,
    /// Only say what would change; this is the default
    #[arg(long, conflicts_with = "apply")]
    pub dry_run: bool,
    /// Make it so
    #[arg(long)]
    pub apply: bool,
    /// Pay for the calls of a service that --apply makes
    #[arg(long)]
    pub yes: bool,
    /// List every difference, and every person
    #[arg(long)]
    pub all: bool,
    /// Photos looked at at once [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}
