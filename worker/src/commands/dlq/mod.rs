//! `sparks dlq`

mod atomic_file;
mod bulk_action;
mod export;
mod filter;
mod list;
mod show;

use std::process::ExitCode;

use self::{bulk_action::BulkAction, filter::LetterFilter};
use crate::{
    cli::{DlqAction, DlqArgs, Global},
    output::Output,
    wiring,
};

/// Dead letters read per request.
const PAGE: usize = 1000;

/// Lists, shows, replays, drops or exports dead letters.
pub async fn run(global: &Global, args: DlqArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let letters = backend.dead_letters.as_ref();
    let now = wiring::clock().now();
    let filter = |args| LetterFilter::new(args, &settings.bucket, now);
    // Every dead letter is received once per command, however many actions follow.
    letters.lease_all().await?;
    let done = match args.action {
        DlqAction::Ls(args) => {
            let filter = filter(args.filter);
            match args.by {
                Some(by) => list::print_counts(letters, &filter, by, output).await,
                None => list::print_list(letters, &filter, args.limit, output).await,
            }
        }
        DlqAction::Show { id } => show::run(letters, id, output).await,
        DlqAction::Replay(args) => {
            bulk_action::run(&backend, BulkAction::Replay(args.rate), args.selection, filter, now, output).await
        }
        DlqAction::Drop(args) => {
            bulk_action::run(&backend, BulkAction::Drop, args.selection, filter, now, output).await
        }
        DlqAction::Export(args) => export::run(letters, &filter(args.filter), args.output, output).await,
    };
    let released = letters.release_all().await;
    let code = done?;
    released?;
    Ok(code)
}
