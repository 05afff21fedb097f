//! Arguments of the commands that set up, check and repair an installation.

use clap::{Args, Subcommand};

use crate::since::Since;

#[derive(Debug, Args)]
#[command(after_help = "\
Existing resources stay as they are, so it is safe to repeat. A data folder needs no setup.

Examples:
  sparks setup --config aws.toml --dry-run
  sparks setup --config aws.toml")]
pub struct SetupArgs {
    /// Only print what is missing; exit code 1 if anything is
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Changes nothing and receives no message. Each line is ok, warn or fail, with the remedy after ->.
The exit code is 1 if a worker could not run.

Examples:
  sparks doctor --config aws.toml          resources, notifications, permissions
  sparks doctor --data /var/lib/sparks     a data folder
  sparks doctor --offline                  only this binary on this machine
  sparks doctor --json | jq 'select(.state != \"ok\")'")]
pub struct DoctorArgs {
    /// Check only whether this binary works on this machine: no service, no data folder
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sparks config show                          print every setting and where its value comes from
  sparks config check --config sparks.toml    check a settings file")]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub action: ConfigAction,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigAction {
    /// Print every setting with its value and origin
    Show,
    /// Check the settings; exit code 2 and the reason if one is wrong
    Check,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the differences and exits with code 1 if there are any. With --repair they are corrected
and the exit code is 0.

With --objects the variants of all photos are compared, too: two requests to the bucket a photo,
at most 1000 a second. With --repair those that differ are rendered again from the original.

Examples:
  sparks verify
  sparks verify --repair
  sparks verify --objects --repair")]
pub struct VerifyArgs {
    /// Correct the rows that differ from the event log
    #[arg(long)]
    pub repair: bool,
    /// Also compare the variants in the bucket with the event log
    #[arg(long)]
    pub objects: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Use it after notifications were lost between the bucket and the queue. Safe to interrupt and to
repeat: a message that is still in the queue is not sent twice.

Examples:
  sparks backfill --dry-run                count the originals without an event
  sparks backfill --since 2d               send messages for those of the last two days")]
pub struct BackfillArgs {
    /// Only originals stored since this time, date, or age (90s, 15m, 2h, 7d)
    #[arg(long, value_name = "T")]
    pub since: Option<Since>,
    /// Count the originals and send nothing
    #[arg(long)]
    pub dry_run: bool,
}
