//! The `sparks` command.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "doc comments of the command line are help texts, with [default: ...]"
)]

mod backend;
mod cli;
mod commands;
mod decoder;
mod inbox;
mod ingest;
mod output;
mod rate;
mod run;
mod since;
mod telemetry;
#[cfg(feature = "tools")]
mod tools;
mod upload;
mod wiring;

use std::{io, process::ExitCode};

use clap::Parser;

use cli::{Cli, Command};
use output::Output;
use telemetry::logs;
use wiring::UsageError;

fn main() -> ExitCode {
    // A decoder process, started by the worker itself: it needs neither a runtime nor logs.
    if std::env::args_os().nth(1).is_some_and(|command| command == decoder::COMMAND) {
        return decoder::serve().map_or_else(|error| report_error(&error.into()), |()| ExitCode::SUCCESS);
    }
    let cli = Cli::parse();
    logs::start(if cli.command.is_service() { logs::LogProfile::Worker } else { logs::LogProfile::Command });
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report_error(&anyhow::Error::new(error).context("failed to start the async runtime")),
    };
    let mut output = Output::new(cli.global.json);
    let result = runtime.block_on(run(cli, &mut output));
    match result.and_then(|code| output.flush().map(|()| code).map_err(Into::into)) {
        Ok(code) => code,
        // The reader, such as `head`, has closed the pipe.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => report_error(&error),
    }
}

async fn run(cli: Cli, output: &mut Output) -> anyhow::Result<ExitCode> {
    let global = &cli.global;
    match cli.command {
        Command::Ingest(args) => commands::ingest::run(global, args, output).await,
        Command::Run(args) => commands::run::run(global, args).await,
        Command::Send(args) => commands::send::run(global, args, output).await,
        Command::Dlq(args) => commands::dlq::run(global, args, output).await,
        Command::Backfill(args) => commands::backfill::run(global, args, output).await,
        Command::Redecide(args) => commands::redecide::run(global, args, output).await,
        Command::Adopt(args) => commands::adopt::run(global, args, output).await,
        Command::Tail(args) => commands::tail::run(global, args, output).await,
        Command::Photo(args) => commands::photo::run(global, args, output).await,
        Command::Query(args) => commands::query::run(global, args, output).await,
        Command::Items(args) => commands::items::run(global, args, output).await,
        Command::Log(args) => commands::log::run(global, args, output).await,
        Command::Events(args) => commands::events::run(global, args, output).await,
        Command::Setup(args) => commands::setup::run(global, args, output).await,
        Command::Doctor(args) => commands::doctor::run(global, args, output).await,
        Command::Rebuild => commands::rebuild::rebuild(global, output).await,
        Command::Verify(args) => commands::rebuild::verify(global, args, output).await,
        Command::Config(args) => commands::config::run(global, args, output),
        Command::Explain(args) => commands::explain::run(global, args, output).await,
        Command::Persons(args) => commands::persons::run(global, args, output).await,
        Command::Models => commands::models::run(output),
        #[cfg(feature = "tools")]
        Command::Tool(tool) => tools::run(global, tool, output).await,
        Command::Completions { shell } => commands::completions::run(shell, output),
    }
}

/// Prints the error. Returns exit code 2 for wrong usage or settings, and 1 for failed work.
fn report_error(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    let is_usage_error =
        error.downcast_ref::<UsageError>().is_some() || error.downcast_ref::<sparks_config::ConfigError>().is_some();
    ExitCode::from(if is_usage_error { 2 } else { 1 })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
