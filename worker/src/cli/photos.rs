//! Arguments of the commands that process or delete photos.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::AnalyzerArg;

#[derive(Debug, Args)]
#[command(after_help = "\
A file that was processed before is a duplicate and costs almost nothing. Files that cannot be
accepted are listed with the reason and leave the exit code at 0. Failed work makes it 1; run the
same command again to retry.

Examples:
  sparks ingest tests/photos
  sparks ingest a.jpg b.png --uploader ann@example.com
  sparks ingest ~/Pictures --jobs 4 --json | jq .rejected")]
pub struct IngestArgs {
    /// Photos, or folders of photos
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Face analyzer to use [default: local]
    #[arg(long, value_enum)]
    pub faces: Option<AnalyzerArg>,
    /// E-mail address of the user who uploads the photos [default: me@localhost]
    #[arg(long, value_name = "EMAIL")]
    pub uploader: Option<String>,
    /// Number of photos processed at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
SIGTERM or SIGINT stops the worker: it receives no more messages, finishes the photos in flight
within run.grace_seconds and returns the other messages to the queue. A second signal stops it at
once, with exit code 128 plus the number of the signal.
Files copied into the folder `inbox` of the data folder are processed once they are complete, then
moved to inbox/done or inbox/rejected.
Logs go to standard error, as JSON unless that is a terminal (SPARKS_LOG, SPARKS_LOG_FORMAT).
Health checks and metrics: GET /healthz, /readyz and /metrics on run.listen.

Examples:
  sparks run --data /var/lib/sparks
  sparks run --config sparks.toml --listen 127.0.0.1:9464
  sparks run --drain                       stop when the queue is empty
  cp *.jpg sparks-data/inbox/              process files from the inbox folder")]
pub struct RunArgs {
    /// Face analyzer to use [default: local]
    #[arg(long, value_enum)]
    pub faces: Option<AnalyzerArg>,
    /// Number of photos processed at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Address of the health checks and metrics [default: 127.0.0.1:9464]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Stop when the queue is empty; the inbox is not watched
    #[arg(long)]
    pub drain: bool,
    /// Stop when the parent process ends
    #[arg(long, hide = true)]
    pub end_with_parent: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Messages are checked by the worker that receives them, not here; only a message that is empty, not
UTF-8 or longer than 1 MiB is refused, and then none is sent. Prints the ID of each message.

Examples:
  sparks send message.json
  sparks send --lines messages.jsonl
  echo '{\"bucketName\":\"local\",\"objectKey\":\"originals/2Ab4dEbnXzvkyZF4Bvn3sYdWCkq.jpg\"}' |
    sparks send -")]
pub struct SendArgs {
    /// Files with one message each; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Send every line that is not empty as a message of its own
    #[arg(long)]
    pub lines: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sparks photo delete 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq")]
pub struct PhotoArgs {
    #[command(subcommand)]
    pub action: PhotoAction,
}

#[derive(Debug, Subcommand)]
pub enum PhotoAction {
    /// Delete photos permanently: rows, tags, stored files and face signatures
    #[command(after_help = "\
The owner of a deleted photo may upload one more. Persons who are in no other photo are forgotten;
where a person's portrait was cropped from a deleted photo, a crop from another photo replaces it.
Deleting a photo again changes nothing.

Examples:
  sparks photo delete 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq
  sparks photo delete 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq --json | jq .persons_forgotten")]
    Delete {
        /// Image IDs of the photos
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}
