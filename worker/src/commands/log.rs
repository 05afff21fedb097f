//! `sparks log`

use std::process::ExitCode;

use serde_json::json;
use sparks_domain::{Level, Timestamp};
use sparks_engine::{Clock, LogStatus, WorkerAnnouncement, raise_level};

use crate::{
    backend::Backend,
    cli::{Global, LevelArgs, LogAction, LogArgs},
    output::{Output, one_line},
    wiring::{self, ACTOR, UsageError},
};

/// Shows or raises the reader level of the event log.
pub async fn run(global: &Global, args: LogArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let LogAction::Level(LevelArgs { level, force }) = args.action;
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let clock = wiring::clock();
    let status = LogStatus::read(backend.store.as_ref(), backend.workers.as_ref(), clock.now()).await?;
    match level.map(Level) {
        None => show(&status, &backend, clock.now(), output),
        Some(level) => raise(&backend, &status, level, force, clock.as_ref(), output).await,
    }
}

async fn raise(
    backend: &Backend,
    status: &LogStatus,
    level: Level,
    force: bool,
    clock: &dyn Clock,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    if level > Level::MAX {
        let message = format!("level {level} is not known: this version of sparks reads up to level {}", Level::MAX);
        return Err(UsageError(message).into());
    }
    if level < status.level {
        let message = format!("the log has level {}: a level cannot be lowered to {level}", status.level);
        return Err(UsageError(message).into());
    }
    let old = status.too_old_for(level);
    if level > status.level && !force && !old.is_empty() {
        let names: Vec<String> = old.iter().map(|worker| describe(worker)).collect();
        anyhow::bail!(
            "failed to raise the level: too old for level {level}: {}. Upgrade or stop these workers, or use --force: they could \
             not read the log any more",
            names.join(", ")
        );
    }
    let raised = level > status.level && raise_level(backend.store.as_ref(), level, ACTOR, clock).await?;
    if output.is_json() {
        output.json(&json!({ "level": level, "raised": raised }))?;
    } else if raised {
        output.line(format!("raised the level of the log from {} to {level}", status.level))?;
    } else {
        output.line(format!("the log has level {level} already"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(status: &LogStatus, backend: &Backend, now: Timestamp, output: &mut Output) -> anyhow::Result<ExitCode> {
    let next = Level(status.level.0 + 1).min(Level::MAX);
    let is_too_old = |worker: &WorkerAnnouncement| worker.level < next;
    if output.is_json() {
        let worker = |worker: &WorkerAnnouncement| {
            json!({
                "id": worker.id,
                "host": worker.host,
                "version": worker.version,
                "level": worker.level,
                "seen": worker.seen,
                "too_old": is_too_old(worker),
            })
        };
        let workers: Vec<_> = status.workers.iter().map(worker).collect();
        output.json(&json!({ "level": status.level, "reads": Level::MAX, "workers": workers }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output.line(format!(
        "the log has level {}; this version of sparks reads and writes levels {} to {}",
        status.level,
        Level::FIRST,
        Level::MAX
    ))?;
    if status.workers.is_empty() {
        output.line("no worker was seen recently")?;
    } else {
        let rows = status.workers.iter().map(|worker| {
            let age = (now.as_millis() - worker.seen.as_millis()).max(0) / 1000;
            let note = if is_too_old(worker) { format!("too old for level {next}") } else { String::new() };
            let (host, version) = (one_line(&worker.host, 60), one_line(&worker.version, 20));
            vec![host, version, worker.level.to_string(), format!("{age} s ago"), note]
        });
        output.table(&["worker", "version", "level", "seen", ""], rows)?;
    }
    if !backend.workers.knows_all_releases() {
        output.line(
            "Workers of releases before 0.2.0 are recognised by events of the last hour only: make sure that none is left.",
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(worker: &WorkerAnnouncement) -> String {
    format!("{} ({})", one_line(&worker.host, 60), one_line(&worker.version, 20))
}
