//! The `sparks` command.

mod backend;
mod cli;
mod commands;
mod consumer;
mod cost;
mod darkroom;
mod draw;
mod evaluate;
mod inbox;
mod ingest;
mod load;
mod output;
mod rate;
mod run;
mod share;
mod since;
mod span;
mod telemetry;
mod upload;
mod wiring;

use std::{io, process::ExitCode};

use clap::Parser;

use cli::{Cli, Command};
use output::Output;
use telemetry::logs;
use wiring::WrongUse;

fn main() -> ExitCode {
    // Whoever decodes photos needs neither threads nor logs, and nobody is to type this.
    if std::env::args_os().nth(1).is_some_and(|command| command == darkroom::COMMAND) {
        return darkroom::serve().map_or_else(|error| complain(&error.into()), |()| ExitCode::SUCCESS);
    }
    let cli = Cli::parse();
    let runs = matches!(cli.command, Command::Run(_) | Command::RekognitionServer(_));
    logs::start(if runs { logs::Style::Worker } else { logs::Style::Command });
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&anyhow::Error::new(error).context("cannot start")),
    };
    let mut output = Output::new(cli.global.json);
    let done = runtime.block_on(run(cli, &mut output));
    match done.and_then(|code| output.flush().map(|()| code).map_err(Into::into)) {
        Ok(code) => code,
        // Whoever reads us has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

async fn run(cli: Cli, output: &mut Output) -> anyhow::Result<ExitCode> {
    let global = &cli.global;
    match cli.command {
        Command::Ingest(args) => commands::ingest::run(global, args, output).await,
        Command::Run(args) => commands::run::run(global, args).await,
        Command::Load(args) => commands::load::run(global, args, output).await,
        Command::Send(args) => commands::send::run(global, args, output).await,
        Command::Dlq(args) => commands::dlq::run(global, args, output).await,
        Command::Backfill(args) => commands::backfill::run(global, args, output).await,
        Command::Cost => commands::cost::run(global, output).await,
        Command::Redecide(args) => commands::redecide::run(global, args, output).await,
        Command::Adopt(args) => commands::adopt::run(global, args, output).await,
        Command::Tail(args) => commands::tail::run(global, args, output).await,
        Command::Photo(args) => commands::photo::run(global, args, output).await,
        Command::Query(args) => commands::query::run(global, args, output).await,
        Command::Items(args) => commands::items::run(global, args, output).await,
        Command::Events(args) => commands::events::run(global, args, output).await,
        Command::Setup(args) => commands::setup::run(global, args, output).await,
        Command::Doctor(args) => commands::doctor::run(global, args, output).await,
        Command::Rebuild => commands::rebuild::rebuild(global, output).await,
        Command::Verify(args) => commands::rebuild::verify(global, args, output).await,
        Command::Config(args) => commands::config::run(global, args, output),
        Command::Explain(args) => commands::explain::run(global, args, output).await,
        Command::Persons(args) => commands::persons::run(global, args, output).await,
        Command::Models => commands::models::run(output),
        Command::Faces(args) => commands::faces::run(global, args, output).await,
        Command::RekognitionServer(args) => commands::rekognition_server::run(global, args, output).await,
        Command::Synth(args) => commands::synth::run(args, output),
        Command::Completions { shell } => commands::completions::run(shell, output),
    }
}

/// Exit code 2 says that the call or a setting is wrong; 1 that the work failed.
fn complain(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    let wrong_use =
        error.downcast_ref::<WrongUse>().is_some() || error.downcast_ref::<sparks_config::ConfigError>().is_some();
    ExitCode::from(if wrong_use { 2 } else { 1 })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
