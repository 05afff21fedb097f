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
    let backend = wiring::open(&settings).await?;
    let letters = backend.letters.as_ref();
    let now = wiring::clock().now();
    let filter = |args| Filter::new(args, &settings.bucket, now);
    // Whatever is done, and to however many, the letters are read once.
    letters.hold().await?;
    let done = match args.action {
        DlqAction::Ls(args) => {
            let filter = filter(args.filter);
            match args.by {
                Some(by) => list::count(letters, &filter, by, output).await,
                None => list::list(letters, &filter, args.limit, output).await,
            }
        }
        DlqAction::Show { id } => show::run(letters, id, output).await,
        DlqAction::Replay(args) => act::run(&backend, Act::Replay(args.rate), args.which, filter, now, output).await,
        DlqAction::Drop(args) => act::run(&backend, Act::Drop, args.which, filter, now, output).await,
        DlqAction::Export(args) => export::run(letters, &filter(args.filter), args.output, output).await,
    };
    let given_back = letters.give_back().await;
    let code = done?;
    given_back?;
    Ok(code)
}
