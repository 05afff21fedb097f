//! `sparks dlq replay` and `sparks dlq drop`

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::Context;
use indicatif::ProgressBar;
use serde_json::json;
use sparks_domain::Timestamp;
use sparks_engine::{DeadLetter, DeadLetters, MessageId, QueueError};
use tokio::time::Interval;

use super::filter::{Filter, Letters};
use crate::{
    backend::Backend,
    cli::{FilterArgs, WhichArgs},
    output::{Output, brief, progress},
    rate::Rate,
    wiring::WrongUse,
};

/// What is done to letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Their messages are sent again, so quickly.
    Replay(Option<Rate>),
    /// They go for good.
    Drop,
}

/// Someone who acts on letters one by one.
struct Actor<'a> {
    letters: &'a dyn DeadLetters,
    act: Act,
    dry_run: bool,
    ticks: Option<Interval>,
    bar: ProgressBar,
    done: u64,
    unknown: Vec<String>,
}

/// Acts on the letters that are meant: each by itself, so that whatever interrupts this leaves the rest as it was.
pub async fn run(
    backend: &Backend,
    act: Act,
    which: WhichArgs,
    filter: impl Fn(FilterArgs) -> Filter,
    now: Timestamp,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    let WhichArgs { ids, filter: args, all, dry_run } = which;
    let filtered = args.reason.is_some() || args.image.is_some() || args.since.is_some();
    if ids.is_empty() && !filtered && !all {
        let verb = act.verb();
        let which = format!("which letters? {verb} takes IDs, or --reason, --image and --since, or --all");
        return Err(WrongUse(which).into());
    }
    let length = if ids.is_empty() { backend.queue.depth().await?.dead } else { ids.len() as u64 };
    let bar = progress(length, "letters");
    let ticks = act.rate().map(Rate::ticks);
    let mut actor = Actor { letters: backend.letters.as_ref(), act, dry_run, ticks, bar, done: 0, unknown: Vec::new() };
    let acted = match ids.is_empty() {
        // What dies again meanwhile is not taken twice.
        true => actor.matching(&filter(args).until(now), output).await,
        false => actor.named(ids, output).await,
    };
    actor.bar.finish_and_clear();
    acted.with_context(|| format!("{} were {} before", actor.done, act.done()))?;
    actor.report(output)
}

impl Act {
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

impl Actor<'_> {
    async fn matching(&mut self, filter: &Filter, output: &mut Output) -> anyhow::Result<()> {
        let mut letters = Letters::new(self.letters, filter);
        while let Some(page) = letters.page().await? {
            let others = page.looked_at - page.letters.len() as u64;
            self.bar.inc(others);
            for letter in page.letters {
                self.one(&letter.id, Some(&letter), output).await?;
            }
        }
        Ok(())
    }

    async fn named(&mut self, ids: Vec<String>, output: &mut Output) -> anyhow::Result<()> {
        let mut seen = BTreeSet::new();
        for id in ids.into_iter().filter(|id| seen.insert(id.clone())) {
            let name = MessageId(id.clone());
            let letter = if self.dry_run { self.letters.letter(&name).await? } else { None };
            if (self.dry_run && letter.is_none()) || !self.one(&name, letter.as_ref(), output).await? {
                self.unknown.push(id);
            }
        }
        Ok(())
    }

    /// Acts on one letter. Says whether it was there.
    async fn one(&mut self, id: &MessageId, letter: Option<&DeadLetter>, output: &mut Output) -> anyhow::Result<bool> {
        let there = if self.dry_run {
            if let Some(DeadLetter { id, cause, reason, .. }) = letter.filter(|_| !output.is_json()) {
                output.line(format!("{}  {:<12}  {}", id.0, brief(cause, 16), brief(reason, 100)))?;
            }
            true
        } else {
            self.act(id).await?
        };
        self.done += u64::from(there);
        self.bar.inc(1);
        Ok(there)
    }

    async fn act(&mut self, id: &MessageId) -> Result<bool, QueueError> {
        if let Some(ticks) = &mut self.ticks {
            ticks.tick().await;
        }
        match self.act {
            Act::Replay(_) => Ok(self.letters.replay(id).await?.is_some()),
            Act::Drop => self.letters.discard(id).await,
        }
    }

    fn report(self, output: &mut Output) -> anyhow::Result<ExitCode> {
        for id in &self.unknown {
            eprintln!("error: there is no dead letter {}", brief(id, 100));
        }
        let (done, letters) = (self.act.done(), if self.done == 1 { "letter" } else { "letters" });
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
