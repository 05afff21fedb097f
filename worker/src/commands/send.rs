//! `sparks send`

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::json;
use sparks_engine::MessageId;

use crate::{
    cli::{Global, SendArgs},
    output::{Output, progress_bar},
    wiring::{self, UsageError},
};

/// Maximum length of a message; the queues of the cloud accept less.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// A message to send.
struct Message {
    file: String,
    /// Its line in the file, with `--lines`.
    line: Option<usize>,
    body: String,
}

/// Sends the messages to the queue. Sends none of them if one is invalid.
pub async fn run(global: &Global, args: SendArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    if args.files.iter().filter(|file| is_standard_input(file)).count() > 1 {
        return Err(UsageError("standard input (-) can be read only once".into()).into());
    }
    let mut messages = Vec::new();
    for file in &args.files {
        messages.extend(read_messages(file, args.lines)?);
    }
    let queue = wiring::open_or_create(&settings).await?.queue;
    let bar = progress_bar(messages.len() as u64, "messages");
    let (ids, mut sent, mut failure) = (DeduplicationIds::new(), Vec::new(), None);
    for (n, message) in messages.iter().enumerate() {
        match queue.send(&message.body, &ids.id(n)).await {
            Ok(id) => sent.push((id, message)),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    // Printed after all are sent, so that a closed pipe does not keep messages from being sent.
    for (id, message) in sent {
        print(&id, message, output)?;
    }
    failure.map_or(Ok(ExitCode::SUCCESS), |error| Err(error.into()))
}

fn print(MessageId(id): &MessageId, message: &Message, output: &mut Output) -> io::Result<()> {
    match (output.is_json(), message.line) {
        (false, _) => output.line(id),
        (true, None) => output.json(&json!({ "message_id": id, "file": message.file })),
        (true, Some(line)) => output.json(&json!({ "message_id": id, "file": message.file, "line": line })),
    }
}

/// Unique deduplication IDs, so that messages with equal bodies are all delivered.
struct DeduplicationIds(String);

impl DeduplicationIds {
    fn new() -> Self {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self(format!("send/{nanos}-{}", std::process::id()))
    }

    fn id(&self, n: usize) -> String {
        format!("{}/{n}", self.0)
    }
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Reads the messages of a file.
fn read_messages(path: &Path, lines: bool) -> Result<Vec<Message>, UsageError> {
    let file = if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() };
    // One byte more than the maximum shows that a message is too long.
    let limit = if lines { u64::MAX } else { MAX_MESSAGE_BYTES as u64 + 1 };
    let bytes = if is_standard_input(path) {
        read_up_to(io::stdin().lock(), limit)
    } else {
        File::open(path).and_then(|file| read_up_to(file, limit))
    };
    let bytes = bytes.map_err(|error| UsageError(format!("{file}: {error}")))?;
    let invalid = |line: Option<usize>, why: &str| match line {
        Some(line) => UsageError(format!("line {line} of {file} {why}; nothing was sent")),
        None => UsageError(format!("{file} {why}; nothing was sent")),
    };
    if !lines && bytes.len() > MAX_MESSAGE_BYTES {
        return Err(invalid(None, "is longer than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        invalid(None, &format!("is not UTF-8 text from byte {} on", error.utf8_error().valid_up_to()))
    })?;
    if text.trim().is_empty() {
        return Err(invalid(None, "is empty"));
    }
    if !lines {
        return Ok(vec![Message { file, line: None, body: text }]);
    }
    let messages = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let messages = messages.map(|(line, body)| match body.len() > MAX_MESSAGE_BYTES {
        true => Err(invalid(Some(line), "is longer than 1 MiB")),
        false => Ok(Message { file: file.clone(), line: Some(line), body: body.to_owned() }),
    });
    messages.collect()
}

fn read_up_to(source: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
