//! `sparks rebuild` and `sparks verify`

use std::process::ExitCode;

use serde_json::{Value, json};
use sparks_engine::Drift;

use crate::{
    backend::Backend,
    cli::{Global, VerifyArgs},
    output::{Output, progress},
    wiring,
};

/// Makes everything that is ours anew from the log, and proves it.
pub async fn rebuild(global: &Global, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let before = backend.store.fingerprint().await?;
    let drift = compare(&settings, &backend, true).await?;
    let after = backend.store.fingerprint().await?;
    if output.is_json() {
        output.json(&json!({
            "events": drift.events,
            "changed": drift.total,
            "photos_gone": drift.gone,
            "names_adopted": drift.renamed.len(),
            "before": { "sha256": before.sha256, "rows": before.rows },
            "after": { "sha256": after.sha256, "rows": after.rows },
        }))?;
    } else {
        output.line(format!("{} events read, {} differences mended", drift.events, drift.total))?;
        aside(&drift, true, output)?;
        output.line(format!("before {} ({} rows)", before.sha256, before.rows))?;
        output.line(format!("after  {} ({} rows)", after.sha256, after.rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says where the table is not what the log says.
pub async fn verify(global: &Global, args: VerifyArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let drift = compare(&settings, &backend, args.repair).await?;
    let clean = drift.total == 0;
    if output.is_json() {
        output.json(&json!({
            "clean": clean,
            "repaired": args.repair && !clean,
            "events": drift.events,
            "differences": drift.total,
            "drift": drift.differences.iter().map(|d| Value::String(d.to_string())).collect::<Vec<_>>(),
            "photos_gone": drift.gone,
            "names_of_others": drift.renamed.len(),
        }))?;
    } else {
        for difference in &drift.differences {
            output.line(difference)?;
        }
        let more = drift.total - drift.differences.len() as u64;
        if more > 0 {
            output.line(format!("... and {more} more"))?;
        }
        aside(&drift, args.repair, output)?;
        let events = drift.events;
        output.line(match (clean, args.repair) {
            (true, _) => format!("the table is what the log says ({events} events)"),
            (false, true) => format!("{} differences, now mended ({events} events)", drift.total),
            (false, false) => format!("{} differences ({events} events); --repair mends them", drift.total),
        })?;
    }
    Ok(if clean || args.repair { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn compare(settings: &sparks_config::Settings, backend: &Backend, write: bool) -> anyhow::Result<Drift> {
    let events = backend.store.heads().await?.events();
    let bar = progress(events, if write { "rebuilding" } else { "comparing" });
    let drift = wiring::rebuilder(settings, backend).run(write, |read| bar.set_position(read)).await?;
    bar.finish_and_clear();
    Ok(drift)
}

/// What is no drift, but worth knowing.
fn aside(drift: &Drift, adopted: bool, output: &mut Output) -> anyhow::Result<()> {
    if drift.gone > 0 {
        output.line(format!("{} photos have no IMAGE row any more: left alone", drift.gone))?;
    }
    for (person, name) in &drift.renamed {
        let what = if adopted { "adopted into the log" } else { "not in the log yet" };
        output.line(format!("{person} was named {name:?} by somebody else: {what}"))?;
    }
    Ok(())
}
