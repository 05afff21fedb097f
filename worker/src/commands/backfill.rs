//! `sparks backfill`

use std::{process::ExitCode, sync::Arc};

use serde_json::json;
use sparks_engine::Backfill;

use crate::{
    cli::{BackfillArgs, Global},
    output::{Output, progress},
    wiring,
};

/// Sends messages for originals that the log does not know.
pub async fn run(global: &Global, args: BackfillArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let backfill = Backfill {
        objects: Arc::clone(&backend.objects),
        store: Arc::clone(&backend.store),
        queue: Arc::clone(&backend.queue),
        bucket: settings.bucket.clone(),
    };
    let since = args.since.map(|since| since.seen_from(wiring::clock().now()));
    let bar = progress(0, "originals");
    let found = backfill.run(since, args.dry_run, |originals| bar.set_position(originals)).await?;
    bar.finish_and_clear();
    if output.is_json() {
        output.json(&json!({
            "originals": found.originals,
            "known": found.known,
            "sent": found.sent,
            "strange": found.strange,
            "dry_run": args.dry_run,
        }))?;
    } else {
        let sent = if args.dry_run { "would be sent" } else { "sent" };
        output.columns([
            vec!["originals".into(), found.originals.to_string()],
            vec!["known".into(), found.known.to_string()],
            vec![sent.into(), found.sent.to_string()],
            vec!["strange".into(), strange(found.strange)],
        ])?;
    }
    Ok(ExitCode::SUCCESS)
}

fn strange(strange: u64) -> String {
    match strange {
        0 => "0".into(),
        strange => format!("{strange} (objects under originals/ that are not called like one)"),
    }
}
