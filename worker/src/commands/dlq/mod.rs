//! `sparks dlq`

mod act;
mod aside;
mod export;
mod filter;
mod list;
mod show;

use std::process::ExitCode;

use self::{act::Act, filter::Filter};
use crate::{
    cli::{DlqAction, DlqArgs, Global},
    output::Output,
    wiring,
};

/// Letters read at once.
const PAGE: usize = 1000;

/// Looks after the messages that could not be worked off.
pub async fn run(global: &Global, args: DlqArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let queue = wiring::open(&settings)?.queue;
    let now = wiring::clock().now();
    let filter = |args| Filter::new(args, &settings.bucket, now);
    match args.action {
        DlqAction::Ls(args) => {
            let filter = filter(args.filter);
            match args.by {
                Some(by) => list::count(queue.as_ref(), &filter, by, output).await,
                None => list::list(queue.as_ref(), &filter, args.limit, output).await,
            }
        }
        DlqAction::Show { id } => show::run(queue.as_ref(), id, output).await,
        DlqAction::Replay(args) => act::run(&queue, Act::Replay(args.rate), args.which, filter, now, output).await,
        DlqAction::Drop(args) => act::run(&queue, Act::Drop, args.which, filter, now, output).await,
        DlqAction::Export(args) => export::run(queue.as_ref(), &filter(args.filter), args.output, output).await,
    }
}
