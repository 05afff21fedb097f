//! `sparks tail`

mod file_tail;

use std::{io, process::ExitCode, time::Duration};

use serde_json::Value;

use self::file_tail::FileTail;
use crate::{
    cli::{Global, TailArgs},
    output::{Output, one_line},
    wiring,
};

/// Pause between two looks for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A published notification: its line in the file, and the parsed line.
struct Notification {
    line: String,
    content: Value,
}

/// Prints the last notifications and, with --follow, new ones.
pub async fn run(global: &Global, args: TailArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let instead = "in the cloud, subscribe to the SNS topics aws.events_topic and aws.thumbnails_topic";
    let publisher = &backend.require_folder("`sparks tail`", instead)?.publisher;
    let mut file = FileTail::new(publisher.path(), publisher.previous_path());
    for notification in file.last(args.number, |line| parse(line, &args.types))? {
        notification.print(output)?;
    }
    output.flush()?;
    if args.follow {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            followed = follow(&mut file, &args.types, output) => followed?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints new notifications until the output is closed.
async fn follow(file: &mut FileTail, types: &[String], output: &mut Output) -> io::Result<()> {
    loop {
        let Some(new) = file.next()? else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        for notification in new.iter().filter_map(|line| parse(line, types)) {
            notification.print(output)?;
        }
        output.flush()?;
        tokio::task::yield_now().await; // lets an interrupt through while there is much to print
    }
}

/// Parses a line into a notification of one of these types; no types mean all. Ignores an incomplete line, which a full
/// disk leaves behind.
fn parse(line: &str, types: &[String]) -> Option<Notification> {
    let content: Value = serde_json::from_str(line).ok()?;
    let event_type = content["eventType"].as_str()?;
    let wanted = types.is_empty() || types.iter().any(|one| one == event_type);
    wanted.then(|| Notification { line: line.to_owned(), content })
}

impl Notification {
    fn print(&self, output: &mut Output) -> io::Result<()> {
        if output.is_json() {
            return output.line(&self.line);
        }
        let text = |value: &Value| one_line(value.as_str().unwrap_or_default(), 80);
        let message = &self.content["message"];
        let time = if message["occurredAt"].is_string() { &message["occurredAt"] } else { &message["timestamp"] };
        let (event_type, id) = (text(&self.content["eventType"]), text(&self.content["id"]));
        output.line(format!("{:<24}  {event_type:<20}  {:<40}  {id}", text(time), self.subject()))
    }

    /// Returns the person, photo or user that it is about.
    fn subject(&self) -> String {
        let (message, data) = (&self.content["message"], &self.content["message"]["data"]);
        let named = |name: &str| data[name].as_str();
        let subject = match (named("personId"), named("from").zip(named("into")), named("email")) {
            (Some(person), ..) => Some(format!("{person} in {}", self.content["group"].as_str().unwrap_or_default())),
            (_, Some((from, into)), _) => Some(format!("{from}, {into}")),
            (.., Some(email)) => Some(email.to_owned()),
            _ => named("image_id").or_else(|| named("person")).map(str::to_owned),
        };
        let persons = data["persons"].as_array().map(|persons| persons.iter().filter_map(Value::as_str));
        let persons = persons.map(|persons| persons.collect::<Vec<_>>().join(" "));
        let variants = message["fileNameWithoutExt"].as_str().map(str::to_owned);
        let group = || self.content["group"].as_str().unwrap_or_default().to_owned();
        one_line(&subject.or(persons).or(variants).unwrap_or_else(group), 80)
    }
}
