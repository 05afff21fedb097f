//! The command line: global options and the list of commands; the arguments of each command are in `cli/`.

mod dead_letters;
mod face_analyzer;
mod log;
mod operations;
mod persons;
mod photos;
mod query;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use dead_letters::*;
pub use face_analyzer::AnalyzerArg;
pub use log::*;
pub use operations::*;
pub use persons::*;
pub use photos::*;
pub use query::*;

#[cfg(feature = "tools")]
use crate::tools::ToolCommand;

/// Process photos: make WebP variants, recognise the persons in them, and tag each photo exactly once
///
/// Photos come from a folder (`sparks ingest`) or from a queue (`sparks run`). Each photo gets a large and a medium WebP
/// variant, its faces are detected and matched with the persons known so far, and an unmatched face becomes a new person.
/// Every decision is appended to an event log. The platform (the application that uploads and shows the photos) reads a
/// table that is computed from that log.
///
/// By default everything is stored in one data folder on this machine. With `backend = "aws"` in the settings the same
/// program uses DynamoDB, S3, SQS and SNS.
#[derive(Debug, Parser)]
#[command(
    name = "sparks",
    version,
    after_help = "\
Settings come from built-in defaults, --config FILE, SPARKS_... variables and flags, in this
order: the last one wins. `sparks config show` prints them.
Exit codes: 0 success, 1 some work failed, 2 wrong usage or wrong settings.

Examples:
  sparks ingest ~/Pictures                 process a folder of photos
  sparks query persons                     list the persons found
  sparks query photos-of person1           list the photos of one person
  sparks explain IMAGE                     explain why a photo has its tags
  sparks run                               process messages from a queue, as a service
  sparks verify                            compare the table with the event log
  sparks doctor                            check whether a worker can run here
  sparks dlq ls --by reason                count the dead letters by cause
  sparks tail -f                           follow the published notifications"
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Global {
    /// Data folder of the embedded backend [default: ./sparks-data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Settings file; config/default.toml documents every key
    #[arg(long, global = true, value_name = "FILE", env = "SPARKS_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long, global = true)]
    pub json: bool,
}

// Not a doc comment, which clap would print as the summary of `sparks`. Only summaries are here: details and examples
// stand on the arguments of each command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Process photo files and folders of photos, recursively
    Ingest(IngestArgs),
    /// Process messages from the queue until stopped, and files from the inbox folder
    Run(RunArgs),
    /// Query the table as the platform's API does: persons, photos and users
    Query(QueryArgs),
    /// Explain why each tag of a photo is there
    Explain(ExplainArgs),
    /// Find, merge and unmerge persons that are the same person
    Persons(PersonsArgs),
    /// Delete photos
    Photo(PhotoArgs),
    /// Send messages to the work queue, unchanged
    Send(SendArgs),
    /// List, replay and drop dead letters: messages that could not be processed
    Dlq(DlqArgs),
    /// Send messages for stored originals that the event log does not contain
    Backfill(BackfillArgs),
    /// Take over the persons and tags that another worker wrote before this one
    Adopt(AdoptArgs),
    /// Decide again who is in every photo, with another face analyzer or another threshold
    Redecide(RedecideArgs),
    /// Print the published notifications
    Tail(TailArgs),
    /// Print the event log
    Events(EventsArgs),
    /// Show or raise the reader level of the event log
    Log(LogArgs),
    /// Print the rows of the table, one JSON object per line
    Items(ItemsArgs),
    /// Compare the table with the event log, and repair it with --repair
    Verify(VerifyArgs),
    /// Rebuild all projections from the event log
    ///
    /// Reads the whole log, computes the rows of the table from it and writes those that differ. Foreign attributes and
    /// rows that the log does not know are left alone. Prints a hash of the table before and after: running it a second
    /// time must not change the hash.
    #[command(after_help = "Example:\n  sparks rebuild --data /var/lib/sparks")]
    Rebuild,
    /// Create missing cloud resources: tables, queues, topics, bucket and event notifications
    Setup(SetupArgs),
    /// Check whether a worker can run here: machine, face models and every service it depends on
    Doctor(DoctorArgs),
    /// Show or check the settings
    Config(ConfigArgs),
    #[cfg(feature = "tools")]
    #[command(flatten)]
    Tool(ToolCommand),
    /// List the face models built into this binary, with licence, origin and hash
    #[command(after_help = "Examples:\n  sparks models\n  sparks models --json | jq .name")]
    Models,
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  sparks completions bash > /etc/bash_completion.d/sparks")]
    Completions {
        /// Shell to print the script for
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether the command runs until it is stopped and logs as a service does.
    pub fn is_service(&self) -> bool {
        match self {
            Self::Run(_) => true,
            #[cfg(feature = "tools")]
            Self::Tool(tool) => tool.is_service(),
            _ => false,
        }
    }
}
