//! Arguments of the commands about persons: merges, adoption, deciding again.

use clap::{Args, Subcommand};

use super::AnalyzerArg;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sparks persons suggest                   list persons that may be the same
  sparks persons merge person3 person7     merge them; the lower number stays
  sparks persons merges                    list all merges with their event IDs
  sparks persons unmerge 6f0c...           undo a merge exactly")]
pub struct PersonsArgs {
    #[command(subcommand)]
    pub action: PersonsAction,
}

#[derive(Debug, Subcommand)]
pub enum PersonsAction {
    /// List persons that may be the same person, the most likely first
    Suggest,
    /// Merge two persons; the lower number stays
    #[command(after_help = "Example:\n  sparks persons merge person3 person7")]
    Merge {
        /// Person ID: person1, person2, ...
        a: String,
        /// Person ID of the other person
        b: String,
        /// Merge them even if both are in one photo
        #[arg(long)]
        force: bool,
    },
    /// Undo a merge: every photo gets the tags it would have without the merge
    #[command(after_help = "Example:\n  sparks persons unmerge 6f0c...    (see `sparks persons merges`)")]
    Unmerge {
        /// Event ID of the merge
        event: String,
    },
    /// List all merges, also those that were undone
    Merges,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every person keeps their number and name and is from then on recognised by the portrait
persons/{personId}.jpg. Every tag stays as it is and is recorded in the event log, so that
`sparks verify`, `rebuild`, `explain` and deletions cover it. Numbers already in use are never
assigned again. Foreign attributes are left alone.
Safe to interrupt, to repeat, and to run beside workers. Run it before `sparks run`: a worker that
meets a person who is not adopted yet creates a new one.

Examples:
  sparks adopt --config aws.toml --dry-run  show what would be adopted, and who cannot be recognised
  sparks adopt --config aws.toml            adopt
  sparks adopt --json | jq .unrecognisable")]
pub struct AdoptArgs {
    /// Read everything and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Photos are analysed again in the order of their first decision, starting from an empty gallery of
known faces. Persons keep their names: a face that matches no person, or several, stays with the
person it had at the same place in the same photo (reported as `kept` where the person was known
but not matched). Merges stay.

Without --apply nothing is written, and no face is enrolled at a service.
With --apply every photo that changes, or whose faces have no signature of the chosen analyzer,
gets a new event. Safe to interrupt, to repeat, and to run beside workers. Persons who are in no
photo any more are forgotten, unless they were given a name. Persons that seem to be the same are
listed; they are merged only if faces.consolidation is \"join\". Running workers drop replaced faces
when they restart. Profile pictures are not changed.

Examples:
  sparks redecide --faces local            show what the local models would decide instead
  sparks redecide --threshold 0.9 --all    show what a stricter threshold would change
  sparks redecide --faces local --json | jq '.differences[] | select(.what == \"other\")'
  sparks redecide --faces local --apply    write it; then run workers with the same settings")]
pub struct RedecideArgs {
    /// Face analyzer to use [default: from the settings]
    #[arg(long, value_enum)]
    pub faces: Option<AnalyzerArg>,
    /// Similarity from which two faces match; 0 is the default of the model [default: from the settings]
    #[arg(long, value_name = "T")]
    pub threshold: Option<f64>,
    /// Only print what would change; this is the default
    #[arg(long, conflicts_with = "apply")]
    pub dry_run: bool,
    /// Write the new decisions
    #[arg(long)]
    pub apply: bool,
    /// Accept the cost of the service calls that --apply makes
    #[arg(long)]
    pub yes: bool,
    /// List every difference and every person
    #[arg(long)]
    pub all: bool,
    /// Number of photos analysed at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}
