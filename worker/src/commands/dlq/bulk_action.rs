//! `sparks dlq replay` and `sparks dlq drop`

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::Context;
use indicatif::ProgressBar;
use serde_json::json;
use sparks_domain::Timestamp;
use sparks_engine::{DeadLetter, DeadLetters, MessageId, QueueError};
use tokio::time::Interval;

use super::filter::{LetterFilter, LetterPages};
use crate::{
    backend::Backend,
    cli::{FilterArgs, SelectionArgs},
    output::{Output, one_line, progress_bar},
    rate::Rate,
    wiring::UsageError,
};

/// An action on several dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkAction {
    /// Send the messages to the work queue again, at this rate.
    Replay(Option<Rate>),
    /// Delete the dead letters.
    Drop,
}

/// The progress of an action over the selected letters.
struct BulkRun<'a> {
    letters: &'a dyn DeadLetters,
    action: BulkAction,
    dry_run: bool,
    interval: Option<Interval>,
    bar: ProgressBar,
    done: u64,
    unknown: Vec<String>,
}

/// Applies the action to each selected letter by itself, so that an interruption leaves the other letters unchanged.
pub async fn run(
    backend: &Backend,
    action: BulkAction,
    selection: SelectionArgs,
    filter: impl Fn(FilterArgs) -> LetterFilter,
    now: Timestamp,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    let SelectionArgs { ids, filter: args, all, dry_run } = selection;
    let has_filter = args.reason.is_some() || args.image.is_some() || args.since.is_some();
    if ids.is_empty() && !has_filter && !all {
        let verb = action.verb();
        let message = format!("no dead letters selected: {verb} needs IDs, or --reason, --image or --since, or --all");
        return Err(UsageError(message).into());
    }
    let length = if ids.is_empty() { backend.queue.depth().await?.dead } else { ids.len() as u64 };
    let bar = progress_bar(length, "dead letters");
    let interval = action.rate().map(Rate::interval);
    let mut run = BulkRun {
        letters: backend.dead_letters.as_ref(),
        action,
        dry_run,
        interval,
        bar,
        done: 0,
        unknown: Vec::new(),
    };
    let result = match ids.is_empty() {
        // A replayed message that fails again becomes a new letter, which must not be replayed in this run.
        true => run.run_on_matching(&filter(args).until(now), output).await,
        false => run.run_on_ids(ids, output).await,
    };
    run.bar.finish_and_clear();
    result.with_context(|| format!("failed after {} dead letters were {}", run.done, action.done()))?;
    run.print_summary(output)
}

impl BulkAction {
    fn verb(self) -> &'static str {
        if self == Self::Drop { "drop" } else { "replay" }
    }

    fn done(self) -> &'static str {
        if self == Self::Drop { "dropped" } else { "replayed" }
    }

    fn rate(self) -> Option<Rate> {
        if let Self::Replay(rate) = self { rate } else { None }
    }
}

impl BulkRun<'_> {
    async fn run_on_matching(&mut self, filter: &LetterFilter, output: &mut Output) -> anyhow::Result<()> {
        let mut letters = LetterPages::new(self.letters, filter);
        while let Some(page) = letters.next_page().await? {
            let others = page.examined - page.letters.len() as u64;
            self.bar.inc(others);
            for letter in page.letters {
                self.run_on_letter(&letter.id, Some(&letter), output).await?;
            }
        }
        Ok(())
    }

    async fn run_on_ids(&mut self, ids: Vec<String>, output: &mut Output) -> anyhow::Result<()> {
        let mut seen = BTreeSet::new();
        for id in ids.into_iter().filter(|id| seen.insert(id.clone())) {
            let name = MessageId(id.clone());
            let letter = if self.dry_run { self.letters.letter(&name).await? } else { None };
            if (self.dry_run && letter.is_none()) || !self.run_on_letter(&name, letter.as_ref(), output).await? {
                self.unknown.push(id);
            }
        }
        Ok(())
    }

    /// Applies the action to one letter. Returns whether the letter exists.
    async fn run_on_letter(
        &mut self,
        id: &MessageId,
        letter: Option<&DeadLetter>,
        output: &mut Output,
    ) -> anyhow::Result<bool> {
        let exists = if self.dry_run {
            if let Some(DeadLetter { id, cause, reason, .. }) = letter.filter(|_| !output.is_json()) {
                output.line(format!("{}  {:<12}  {}", id.0, one_line(cause, 16), one_line(reason, 100)))?;
            }
            true
        } else {
            self.apply(id).await?
        };
        self.done += u64::from(exists);
        self.bar.inc(1);
        Ok(exists)
    }

    async fn apply(&mut self, id: &MessageId) -> Result<bool, QueueError> {
        if let Some(interval) = &mut self.interval {
            interval.tick().await;
        }
        match self.action {
            BulkAction::Replay(_) => Ok(self.letters.replay(id).await?.is_some()),
            BulkAction::Drop => self.letters.discard(id).await,
        }
    }

    fn print_summary(self, output: &mut Output) -> anyhow::Result<ExitCode> {
        for id in &self.unknown {
            eprintln!("error: dead letter {} does not exist: see `sparks dlq ls`", one_line(id, 100));
        }
        let (done, letters) = (self.action.done(), if self.done == 1 { "dead letter" } else { "dead letters" });
        if output.is_json() {
            output.json(&json!({ done: self.done, "unknown": self.unknown, "dry_run": self.dry_run }))?;
        } else if self.dry_run {
            output.line(format!("{} {letters} would be {done}", self.done))?;
        } else {
            output.line(format!("{} {letters} {done}", self.done))?;
        }
        Ok(if self.unknown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
