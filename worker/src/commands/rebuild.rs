//! `sparks rebuild` and `sparks verify`

use std::{process::ExitCode, sync::Arc};

use serde_json::{Value, json};
use sparks_config::Settings;
use sparks_engine::{Drift, VariantDrift, VariantVerification};

use crate::{
    backend::Backend,
    cli::{Global, VerifyArgs},
    output::{Output, progress_bar},
    wiring,
};

/// Rebuilds all projections from the event log. Prints the hash of the table before and after.
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
            "photos_gone": drift.deleted_photos,
            "names_adopted": drift.renamed.len(),
            "before": { "sha256": before.sha256, "rows": before.rows },
            "after": { "sha256": after.sha256, "rows": after.rows },
        }))?;
    } else {
        output.line(format!("{} events read, {} differences repaired", drift.events, drift.total))?;
        print_notes(&drift, true, output)?;
        output.line(format!("before {} ({} rows)", before.sha256, before.rows))?;
        output.line(format!("after  {} ({} rows)", after.sha256, after.rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares the table with the event log and prints the differences.
pub async fn verify(global: &Global, args: VerifyArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let drift = compare(&settings, &backend, args.repair).await?;
    let variants = match args.objects {
        true => Some(compare_variants(&settings, &backend, args.repair).await?),
        false => None,
    };
    let is_restored = variants.as_ref().is_none_or(|variants| variants.total == variants.restored);
    let clean = drift.total == 0 && variants.as_ref().is_none_or(|variants| variants.total == 0);
    if output.is_json() {
        let mut report = json!({
            "clean": clean,
            "repaired": args.repair && !clean && is_restored,
            "events": drift.events,
            "differences": drift.total,
            "drift": drift.differences.iter().map(|d| Value::String(d.to_string())).collect::<Vec<_>>(),
            "photos_gone": drift.deleted_photos,
            "names_of_others": drift.renamed.len(),
        });
        if let Some(variants) = variants {
            report["objects"] = json!({
                "photos": variants.photos,
                "differences": variants.total,
                "repaired": variants.restored,
                "drift": variants.differences,
            });
        }
        output.json(&report)?;
    } else {
        for difference in &drift.differences {
            output.line(difference)?;
        }
        let more = drift.total - drift.differences.len() as u64;
        if more > 0 {
            output.line(format!("... and {more} more"))?;
        }
        print_notes(&drift, args.repair, output)?;
        let events = drift.events;
        output.line(match (drift.total, args.repair) {
            (0, _) => format!("the table matches the event log ({events} events)"),
            (differences, true) => format!("{differences} differences repaired ({events} events)"),
            (differences, false) => format!("{differences} differences ({events} events); repair them with --repair"),
        })?;
        if let Some(variants) = variants {
            print_variants(&variants, args.repair, output)?;
        }
    }
    Ok(if clean || args.repair && is_restored { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares the variants of all photos with the event log, and with `write` renders those that differ again.
async fn compare_variants(settings: &Settings, backend: &Backend, write: bool) -> anyhow::Result<VariantDrift> {
    let verification =
        VariantVerification { store: Arc::clone(&backend.store), variants: wiring::variant_store(settings, backend) };
    let bar = progress_bar(backend.store.heads().await?.events(), "comparing objects");
    let drift = verification.run(write, |read| bar.set_position(read)).await?;
    bar.finish_and_clear();
    Ok(drift)
}

fn print_variants(variants: &VariantDrift, is_repair: bool, output: &mut Output) -> anyhow::Result<()> {
    let VariantDrift { photos, total, differences, restored } = variants;
    for difference in differences {
        output.line(difference)?;
    }
    output.line(match (total, is_repair) {
        (0, _) => format!("the variants match the event log ({photos} photos)"),
        (_, true) => format!("variants of {restored} photos rendered again, of {total} that differ ({photos} photos)"),
        (_, false) => format!("variants of {total} photos differ ({photos} photos); repair them with --repair"),
    })?;
    Ok(())
}

async fn compare(settings: &Settings, backend: &Backend, write: bool) -> anyhow::Result<Drift> {
    let events = backend.store.heads().await?.events();
    let bar = progress_bar(events, if write { "rebuilding" } else { "comparing" });
    let drift = wiring::rebuilder(settings, backend).run(write, |read| bar.set_position(read)).await?;
    bar.finish_and_clear();
    Ok(drift)
}

/// Prints observations that are not drift.
fn print_notes(drift: &Drift, adopted: bool, output: &mut Output) -> anyhow::Result<()> {
    if drift.deleted_photos > 0 {
        output.line(format!(
            "{} photos have no IMAGE row: not restored, because the platform deleted them",
            drift.deleted_photos
        ))?;
    }
    for (person, name) in &drift.renamed {
        let what = if adopted { "added to the event log" } else { "not in the event log yet" };
        output.line(format!("{person} was renamed to {name:?} by another program: {what}"))?;
    }
    Ok(())
}
