//! Arguments of `sparks dlq`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};

use crate::{rate::Rate, since::Since};

#[derive(Debug, Args)]
#[command(after_help = "\
A message becomes a dead letter when it is invalid, when it has failed queue.max_attempts times,
when workers have crashed queue.max_crashes times while they processed it, or when it has waited
longer than queue.prerequisite_timeout_seconds. Fix the cause, then replay the message.

Examples:
  sparks dlq ls --by reason                count the dead letters by cause
  sparks dlq show 000000000042             show one dead letter
  sparks dlq replay --reason no-image-row  send messages again
  sparks dlq drop 000000000042             delete a dead letter")]
pub struct DlqArgs {
    #[command(subcommand)]
    pub action: DlqAction,
}

#[derive(Debug, Subcommand)]
pub enum DlqAction {
    /// List dead letters, or count them by cause
    #[command(after_help = "\
Examples:
  sparks dlq ls
  sparks dlq ls --by reason
  sparks dlq ls --reason no-image-row --since 2h
  sparks dlq ls --image 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq --json")]
    Ls(LsArgs),
    /// Show one dead letter with its message
    #[command(after_help = "Example:\n  sparks dlq show 000000000042")]
    Show {
        /// ID of the dead letter
        id: String,
    },
    /// Send messages to the work queue again and delete their dead letters
    #[command(after_help = "\
A message is sent before its dead letter is deleted, so an interrupted call loses nothing; run it
again. A message that fails again becomes a new dead letter, which this call does not replay.

Examples:
  sparks dlq replay 000000000042
  sparks dlq replay --reason no-image-row --since 1d --dry-run
  sparks dlq replay --all --rate 10/s")]
    Replay(ReplayArgs),
    /// Delete dead letters permanently, with their messages
    #[command(after_help = "\
Use `sparks dlq export` first to keep a copy.

Examples:
  sparks dlq drop 000000000042
  sparks dlq drop --reason malformed --dry-run
  sparks dlq drop --all")]
    Drop(DropArgs),
    /// Write dead letters as JSON, one per line
    #[command(after_help = "\
Examples:
  sparks dlq export -o letters.jsonl
  sparks dlq export --reason malformed | jq .reason")]
    Export(ExportArgs),
}

#[derive(Debug, Default, Args)]
pub struct FilterArgs {
    /// Only dead letters with this cause, as `sparks dlq ls` prints it, or with this text in the reason
    #[arg(long, value_name = "R", value_parser = NonEmptyStringValueParser::new())]
    pub reason: Option<String>,
    /// Only dead letters about this photo
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub image: Option<String>,
    /// Only dead letters since this time, date, or age (90s, 15m, 2h, 7d)
    #[arg(long, value_name = "T")]
    pub since: Option<Since>,
}

#[derive(Debug, Args)]
pub struct LsArgs {
    /// Print counts instead of a list
    #[arg(long, value_enum, conflicts_with = "limit")]
    pub by: Option<GroupBy>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Maximum number of dead letters to list [default: 100; with --json all]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GroupBy {
    /// One row per cause
    Reason,
}

// Not a doc comment, which clap would print as the summary. Selecting all dead letters needs `--all`, so that it never
// happens by mistake.
#[derive(Debug, Args)]
pub struct SelectionArgs {
    /// IDs of dead letters
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["reason", "image", "since"])]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Select all dead letters
    #[arg(long, conflicts_with_all = ["ids", "reason", "image", "since"])]
    pub all: bool,
    /// Print what would be done and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Maximum number of messages per second, or per minute with /min
    #[arg(long, value_name = "N/s")]
    pub rate: Option<Rate>,
}

#[derive(Debug, Args)]
pub struct DropArgs {
    #[command(flatten)]
    pub selection: SelectionArgs,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub filter: FilterArgs,
    /// File to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
