//! `sparks backfill`

use std::{process::ExitCode, sync::Arc};

use serde_json::json;
use sparks_engine::Backfill;

use crate::{
    cli::{BackfillArgs, Global},
    output::{Output, progress_bar},
    wiring,
};

/// Sends messages for originals that the event log does not contain.
pub async fn run(global: &Global, args: BackfillArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let backfill = Backfill {
        objects: Arc::clone(&backend.objects),
        store: Arc::clone(&backend.store),
        queue: Arc::clone(&backend.queue),
        bucket: settings.bucket.clone(),
    };
    let since = args.since.map(|since| since.resolve(wiring::clock().now()));
    let bar = progress_bar(0, "originals");
    let report = backfill.run(since, args.dry_run, |originals| bar.set_position(originals)).await?;
    bar.finish_and_clear();
    if output.is_json() {
        output.json(&json!({
            "originals": report.originals,
            "known": report.known,
            "sent": report.sent,
            "strange": report.foreign,
            "dry_run": args.dry_run,
        }))?;
    } else {
        let sent = if args.dry_run { "messages to send" } else { "messages sent" };
        output.columns([
            vec!["originals".into(), report.originals.to_string()],
            vec!["already processed".into(), report.known.to_string()],
            vec![sent.into(), report.sent.to_string()],
            vec!["ignored".into(), describe_ignored(report.foreign)],
        ])?;
    }
    Ok(ExitCode::SUCCESS)
}

fn describe_ignored(objects: u64) -> String {
    match objects {
        0 => "0".into(),
        objects => format!("{objects} (objects under originals/ whose name is not an image ID)"),
    }
}
