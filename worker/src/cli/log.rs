//! Arguments of the commands that read the event log and what is published from it.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "\
Prints one line per event, or one JSON object per line with --json.

Examples:
  sparks events
  sparks events --after 1000 --json | jq .event_type")]
pub struct EventsArgs {
    /// Print only events after this sequence number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub after: u64,
}

#[derive(Debug, Args)]
pub struct LogArgs {
    #[command(subcommand)]
    pub action: LogAction,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub enum LogAction {
    /// Show the reader level and the workers, or raise the level
    ///
    /// Events and stored forms of a new release are written only once the level of the log allows them, so that workers of
    /// the earlier release can read everything during a rolling upgrade. Raise the level after the last worker was
    /// upgraded. It cannot be lowered: workers of earlier releases stop when they meet the raise.
    #[command(after_help = "\
A data folder raises its own level when it has to.

The exit code is 1, and nothing is changed, if a worker that was seen recently is too old.

Examples:
  sparks log level --config aws.toml       the level, and which workers are too old for the next
  sparks log level 2 --config aws.toml     raise the level, once all workers are upgraded
  sparks log level --json | jq '.workers[] | select(.too_old)'")]
    Level(LevelArgs),
}

#[derive(Debug, Clone, Copy, Args)]
pub struct LevelArgs {
    /// Level to raise the log to
    pub level: Option<u32>,
    /// Raise the level although workers are too old: they cannot process messages any more
    #[arg(long, requires = "level")]
    pub force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
For each face: the nearest known persons with their similarity, the threshold, the decision, and
the merges since. For a photo without tags: why it has none.

Examples:
  sparks explain 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq
  sparks explain 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq person1 --json")]
pub struct ExplainArgs {
    /// Image ID of the photo
    pub image: String,
    /// Explain only the faces of this person
    pub person: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Works with a data folder. In the cloud, subscribe to the SNS topics instead.

Examples:
  sparks tail                              the last ten notifications
  sparks tail -f --type PersonAllocated    new persons, as they are published
  sparks tail -n 0 -f --json | jq .message")]
pub struct TailArgs {
    /// Number of past notifications to print
    #[arg(short = 'n', value_name = "N", default_value_t = 10)]
    pub number: usize,
    /// Print new notifications until interrupted
    #[arg(short, long)]
    pub follow: bool,
    /// Print only notifications of this type; may be given several times
    #[arg(long = "type", value_name = "T")]
    pub types: Vec<String>,
}
