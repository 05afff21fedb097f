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
    output::{Output, progress},
    wiring::{self, WrongUse},
};

/// Longer messages are nobody's: queues of the cloud take a quarter of this.
const MOST_BYTES: usize = 1 << 20;

/// A message as it is to be sent.
struct Message {
    file: String,
    /// Where it stands in the file, if each line is a message.
    line: Option<usize>,
    body: String,
}

/// Puts messages on the queue: all of them, or none where one cannot be sent.
pub async fn run(global: &Global, args: SendArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    if args.files.iter().filter(|file| is_standard_input(file)).count() > 1 {
        return Err(WrongUse("standard input (-) can be read only once".into()).into());
    }
    let mut messages = Vec::new();
    for file in &args.files {
        messages.extend(read(file, args.lines)?);
    }
    let queue = wiring::open_or_create(&settings).await?.queue;
    let bar = progress(messages.len() as u64, "messages");
    let (names, mut sent, mut failure) = (Names::new(), Vec::new(), None);
    for (n, message) in messages.iter().enumerate() {
        match queue.send(&message.body, &names.name(n)).await {
            Ok(id) => sent.push((id, message)),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    // Printed when all is sent: a reader that has seen enough keeps no message back.
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

/// Names that no other message has, so that equal messages are all delivered.
struct Names(String);

impl Names {
    fn new() -> Self {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self(format!("send/{nanos}-{}", std::process::id()))
    }

    fn name(&self, n: usize) -> String {
        format!("{}/{n}", self.0)
    }
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// The messages in a file.
fn read(path: &Path, lines: bool) -> Result<Vec<Message>, WrongUse> {
    let file = if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() };
    // Of a message that is too long no more is read than shows it.
    let most = if lines { u64::MAX } else { MOST_BYTES as u64 + 1 };
    let bytes = if is_standard_input(path) {
        contents(io::stdin().lock(), most)
    } else {
        File::open(path).and_then(|file| contents(file, most))
    };
    let bytes = bytes.map_err(|error| WrongUse(format!("{file}: {error}")))?;
    let refused = |line: Option<usize>, why: &str| match line {
        Some(line) => WrongUse(format!("line {line} of {file} {why}; nothing was sent")),
        None => WrongUse(format!("{file} {why}; nothing was sent")),
    };
    if !lines && bytes.len() > MOST_BYTES {
        return Err(refused(None, "is longer than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        refused(None, &format!("is not UTF-8 text from byte {} on", error.utf8_error().valid_up_to()))
    })?;
    if text.trim().is_empty() {
        return Err(refused(None, "is empty"));
    }
    if !lines {
        return Ok(vec![Message { file, line: None, body: text }]);
    }
    let messages = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let messages = messages.map(|(line, body)| match body.len() > MOST_BYTES {
        true => Err(refused(Some(line), "is longer than 1 MiB")),
        false => Ok(Message { file: file.clone(), line: Some(line), body: body.to_owned() }),
    });
    messages.collect()
}

fn contents(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
