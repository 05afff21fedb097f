//! `sparks dlq export`

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use serde_json::json;
use sparks_engine::DeadLetters;

use super::{
    aside::Aside,
    filter::{Filter, Letters},
    show::whole,
};
use crate::output::Output;

/// Writes letters as JSON, one a line.
pub async fn run(
    queue: &dyn DeadLetters,
    filter: &Filter,
    path: Option<PathBuf>,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    let mut letters = Letters::new(queue, filter);
    match path {
        None => {
            while let Some(page) = letters.page().await? {
                page.letters.iter().try_for_each(|letter| output.json(&whole(letter)))?;
            }
        }
        Some(path) => {
            let exported = to_file(&path, letters).await?;
            let file = path.display();
            match output.is_json() {
                true => output.json(&json!({ "exported": exported, "file": file.to_string() }))?,
                false => output.line(format!("{exported} letters are in {file}"))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn to_file(path: &Path, mut letters: Letters<'_>) -> anyhow::Result<u64> {
    let context = || path.display().to_string();
    let mut file = Aside::of(path).with_context(context)?;
    let mut exported = 0;
    while let Some(page) = letters.page().await? {
        let mut write = |letter| -> io::Result<()> {
            serde_json::to_writer(&mut file, &whole(letter))?;
            file.write_all(b"\n")
        };
        page.letters.iter().try_for_each(&mut write).with_context(context)?;
        exported += page.letters.len() as u64;
    }
    file.finish().with_context(context)?;
    Ok(exported)
}
