//! `sparks dlq ls`

use std::{cmp::Reverse, collections::BTreeMap, process::ExitCode};

use serde_json::{Value, json};
use sparks_domain::Timestamp;
use sparks_engine::{DeadLetter, DeadLetters};

use super::filter::{LetterFilter, LetterPages};
use crate::{
    cli::GroupBy,
    output::{Output, one_line},
};

/// Maximum number of rows without --limit.
const ROWS: usize = 100;
/// Width of all columns but the reason.
const OTHER_COLUMNS: usize = 95;
const MIN_REASON_WIDTH: usize = 40;
const MAX_REASON_WIDTH: usize = 100;

/// Prints the dead letters, oldest message first.
pub async fn print_list(
    queue: &dyn DeadLetters,
    filter: &LetterFilter,
    limit: Option<usize>,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    let limit = limit.unwrap_or(if output.is_json() { usize::MAX } else { ROWS });
    let width = output.width().map_or(MAX_REASON_WIDTH, |width| width.saturating_sub(OTHER_COLUMNS));
    let (mut rows, mut found) = (Vec::new(), 0);
    let mut letters = LetterPages::new(queue, filter);
    while let Some(page) = letters.next_page().await? {
        for letter in &page.letters {
            found += 1;
            match found > limit {
                true => {}
                false if output.is_json() => output.json(&summary(letter, filter))?,
                false => rows.push(row(letter, filter, width.max(MIN_REASON_WIDTH))),
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
        output.line(format!("... and {} more: use --limit, or --by reason", found - shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(letter: &DeadLetter, filter: &LetterFilter, width: usize) -> Vec<String> {
    let images = filter.images(letter);
    let image = match images.as_slice() {
        [] => String::new(),
        [image] => image.to_string(),
        [first, more @ ..] => format!("{first} +{}", more.len()),
    };
    vec![
        letter.id.0.clone(),
        one_line(&letter.cause, width),
        letter.died.to_string(),
        letter.receives.to_string(),
        image,
        one_line(&letter.reason, width),
    ]
}

fn summary(letter: &DeadLetter, filter: &LetterFilter) -> Value {
    json!({
        "id": letter.id.0,
        "cause": letter.cause,
        "died": letter.died,
        "receives": letter.receives,
        "reason": letter.reason,
        "images": filter.images(letter),
    })
}

/// The dead letters of one cause.
struct CauseCount {
    letters: u64,
    oldest: Timestamp,
    newest: Timestamp,
}

/// Prints the number of dead letters per cause, largest first.
pub async fn print_counts(
    queue: &dyn DeadLetters,
    filter: &LetterFilter,
    by: GroupBy,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    let GroupBy::Reason = by;
    let mut counts: BTreeMap<String, CauseCount> = BTreeMap::new();
    let mut letters = LetterPages::new(queue, filter);
    while let Some(page) = letters.next_page().await? {
        for DeadLetter { cause, died, .. } in page.letters {
            let count = counts.entry(cause).or_insert(CauseCount { letters: 0, oldest: died, newest: died });
            count.letters += 1;
            count.oldest = count.oldest.min(died);
            count.newest = count.newest.max(died);
        }
    }
    let mut counts: Vec<(String, CauseCount)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(count.letters));
    if output.is_json() {
        for (cause, CauseCount { letters, oldest, newest }) in counts {
            output.json(&json!({ "cause": cause, "letters": letters, "oldest": oldest, "newest": newest }))?;
        }
    } else if counts.is_empty() {
        output.line("no dead letters")?;
    } else {
        let rows = counts.into_iter().map(|(cause, CauseCount { letters, oldest, newest })| {
            vec![one_line(&cause, MAX_REASON_WIDTH), letters.to_string(), oldest.to_string(), newest.to_string()]
        });
        output.table(&["cause", "letters", "oldest", "newest"], rows)?;
    }
    Ok(ExitCode::SUCCESS)
}
