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
    atomic_file::AtomicFile,
    filter::{LetterFilter, LetterPages},
    show::to_json,
};
use crate::output::Output;

/// Writes dead letters as JSON, one per line.
pub async fn run(
    queue: &dyn DeadLetters,
    filter: &LetterFilter,
    path: Option<PathBuf>,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    let mut letters = LetterPages::new(queue, filter);
    match path {
        None => {
            while let Some(page) = letters.next_page().await? {
                page.letters.iter().try_for_each(|letter| output.json(&to_json(letter)))?;
            }
        }
        Some(path) => {
            let exported = to_file(&path, letters).await?;
            let file = path.display();
            match output.is_json() {
                true => output.json(&json!({ "exported": exported, "file": file.to_string() }))?,
                false => output.line(format!("{exported} dead letters exported to {file}"))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn to_file(path: &Path, mut letters: LetterPages<'_>) -> anyhow::Result<u64> {
    let context = || format!("failed to write {}", path.display());
    let mut file = AtomicFile::create(path).with_context(context)?;
    let mut exported = 0;
    while let Some(page) = letters.next_page().await? {
        let mut write = |letter| -> io::Result<()> {
            serde_json::to_writer(&mut file, &to_json(letter))?;
            file.write_all(b"\n")
        };
        page.letters.iter().try_for_each(&mut write).with_context(context)?;
        exported += page.letters.len() as u64;
    }
    file.finish().with_context(context)?;
    Ok(exported)
}
