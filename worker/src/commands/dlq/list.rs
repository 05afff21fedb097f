//! `sparks dlq ls`

use std::{cmp::Reverse, collections::BTreeMap, process::ExitCode};

use serde_json::{Value, json};
use sparks_domain::Timestamp;
use sparks_engine::{DeadLetter, DeadLetters};

use super::filter::{Filter, Letters};
use crate::{
    cli::By,
    output::{Output, brief},
};

/// Rows of a table that a person may want to read.
const ROWS: usize = 100;
/// What all columns but the reason take.
const BESIDE_THE_REASON: usize = 95;
const SHORTEST_REASON: usize = 40;
const LONGEST_REASON: usize = 100;

/// Prints the letters, those sent first first.
pub async fn list(
    queue: &dyn DeadLetters,
    filter: &Filter,
    limit: Option<usize>,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    let limit = limit.unwrap_or(if output.is_json() { usize::MAX } else { ROWS });
    let room = output.width().map_or(LONGEST_REASON, |width| width.saturating_sub(BESIDE_THE_REASON));
    let (mut rows, mut found) = (Vec::new(), 0);
    let mut letters = Letters::new(queue, filter);
    while let Some(page) = letters.page().await? {
        for letter in &page.letters {
            found += 1;
            match found > limit {
                true => {}
                false if output.is_json() => output.json(&summary(letter, filter))?,
                false => rows.push(row(letter, filter, room.max(SHORTEST_REASON))),
            }
        }
        if output.is_json() && found >= limit {
            break;
        }
    }
    if output.is_json() {
        return Ok(ExitCode::SUCCESS);
    }
    if found == 0 {
        output.line("no dead letters")?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = rows.len();
    if shown > 0 {
        output.table(&["id", "cause", "died", "receives", "image", "reason"], rows)?;
    }
    if found > shown {
        output.line(format!("... and {} more: see --limit, or --by reason", found - shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(letter: &DeadLetter, filter: &Filter, room: usize) -> Vec<String> {
    let images = filter.images(letter);
    let image = match images.as_slice() {
        [] => String::new(),
        [image] => image.to_string(),
        [first, more @ ..] => format!("{first} +{}", more.len()),
    };
    vec![
        letter.id.0.clone(),
        brief(&letter.cause, room),
        letter.died.to_string(),
        letter.receives.to_string(),
        image,
        brief(&letter.reason, room),
    ]
}

fn summary(letter: &DeadLetter, filter: &Filter) -> Value {
    json!({
        "id": letter.id.0,
        "cause": letter.cause,
        "died": letter.died,
        "receives": letter.receives,
        "reason": letter.reason,
        "images": filter.images(letter),
    })
}

/// Letters of one cause.
struct Heap {
    letters: u64,
    oldest: Timestamp,
    newest: Timestamp,
}

/// Counts the letters, the most first.
pub async fn count(queue: &dyn DeadLetters, filter: &Filter, by: By, output: &mut Output) -> anyhow::Result<ExitCode> {
    let By::Reason = by;
    let mut heaps: BTreeMap<String, Heap> = BTreeMap::new();
    let mut letters = Letters::new(queue, filter);
    while let Some(page) = letters.page().await? {
        for DeadLetter { cause, died, .. } in page.letters {
            let heap = heaps.entry(cause).or_insert(Heap { letters: 0, oldest: died, newest: died });
            heap.letters += 1;
            heap.oldest = heap.oldest.min(died);
            heap.newest = heap.newest.max(died);
        }
    }
    let mut heaps: Vec<(String, Heap)> = heaps.into_iter().collect();
    heaps.sort_by_key(|(_, heap)| Reverse(heap.letters));
    if output.is_json() {
        for (cause, Heap { letters, oldest, newest }) in heaps {
            output.json(&json!({ "cause": cause, "letters": letters, "oldest": oldest, "newest": newest }))?;
        }
    } else if heaps.is_empty() {
        output.line("no dead letters")?;
    } else {
        let rows = heaps.into_iter().map(|(cause, Heap { letters, oldest, newest })| {
            vec![brief(&cause, LONGEST_REASON), letters.to_string(), oldest.to_string(), newest.to_string()]
        });
        output.table(&["cause", "letters", "oldest", "newest"], rows)?;
    }
    Ok(ExitCode::SUCCESS)
}
