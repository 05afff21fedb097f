//! `sparks completions`

use std::process::ExitCode;

use clap::CommandFactory;

use crate::{cli::Cli, output::Output};

/// Prints the completion script of a shell.
pub fn run(shell: clap_complete::Shell, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sparks", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
