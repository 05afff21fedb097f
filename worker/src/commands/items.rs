//! `sparks items`

use std::process::ExitCode;

use sparks_engine::{Filter, Query};

use crate::{
    cli::{Global, ItemsArgs},
    output::Output,
    wiring,
};

const PAGE: usize = 1000;

/// Prints the table, one row per line.
pub async fn run(global: &Global, args: ItemsArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let store = wiring::open(&settings).await?.store;
    let mut after = None;
    loop {
        let items = match &args.pk {
            None => store.scan(after.as_ref(), PAGE).await?,
            Some(pk) => {
                let filter = Filter::Partition { pk: pk.clone(), sk_prefix: String::new() };
                store.query(&Query { filter, after, limit: PAGE, backwards: false }).await?.items
            }
        };
        let Some(last) = items.last() else { return Ok(ExitCode::SUCCESS) };
        after = Some(last.key.clone());
        for item in items {
            output.json(&item.into_json())?;
        }
    }
}
