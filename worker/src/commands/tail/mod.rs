//! `sparks tail`

mod lines;

use std::{io, process::ExitCode, time::Duration};

use serde_json::Value;

use self::lines::Lines;
use crate::{
    cli::{Global, TailArgs},
    output::{Output, brief},
    wiring,
};

/// How long to wait for more.
const PAUSE: Duration = Duration::from_millis(200);

/// A line of the file, and what it says.
struct Notice {
    line: String,
    says: Value,
}

/// Prints what others are told: the last notices and, if asked for, those to come.
pub async fn run(global: &Global, args: TailArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let instead = "in the cloud, subscribe to the topics of aws.events_topic and aws.thumbnails_topic";
    let mut lines = Lines::of(backend.folder("`sparks tail`", instead)?.publisher.path());
    for notice in lines.last(args.number, |line| read(line, &args.types))? {
        notice.print(output)?;
    }
    output.flush()?;
    if args.follow {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            followed = follow(&mut lines, &args.types, output) => followed?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints notices as they come, until nobody reads them.
async fn follow(lines: &mut Lines, types: &[String], output: &mut Output) -> io::Result<()> {
    loop {
        let Some(new) = lines.next()? else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        for notice in new.iter().filter_map(|line| read(line, types)) {
            notice.print(output)?;
        }
        output.flush()?;
        tokio::task::yield_now().await; // an interrupt is heard however much there is to print
    }
}

/// The notice, if it is one of these types, or there are none to choose from. Half a line that a full disk left behind says
/// nothing.
fn read(line: &str, types: &[String]) -> Option<Notice> {
    let says: Value = serde_json::from_str(line).ok()?;
    let event_type = says["eventType"].as_str()?;
    let wanted = types.is_empty() || types.iter().any(|one| one == event_type);
    wanted.then(|| Notice { line: line.to_owned(), says })
}

impl Notice {
    fn print(&self, output: &mut Output) -> io::Result<()> {
        if output.is_json() {
            return output.line(&self.line);
        }
        let text = |value: &Value| brief(value.as_str().unwrap_or_default(), 80);
        let message = &self.says["message"];
        let time = if message["occurredAt"].is_string() { &message["occurredAt"] } else { &message["timestamp"] };
        let (event_type, id) = (text(&self.says["eventType"]), text(&self.says["id"]));
        output.line(format!("{:<24}  {event_type:<20}  {:<40}  {id}", text(time), self.subject()))
    }

    /// Whom or what it is about.
    fn subject(&self) -> String {
        let (message, data) = (&self.says["message"], &self.says["message"]["data"]);
        let named = |name: &str| data[name].as_str();
        let subject = match (named("personId"), named("from").zip(named("into")), named("email")) {
            (Some(person), ..) => Some(format!("{person} in {}", self.says["group"].as_str().unwrap_or_default())),
            (_, Some((from, into)), _) => Some(format!("{from}, {into}")),
            (.., Some(email)) => Some(email.to_owned()),
            _ => named("image_id").or_else(|| named("person")).map(str::to_owned),
        };
        let persons = data["persons"].as_array().map(|persons| persons.iter().filter_map(Value::as_str));
        let persons = persons.map(|persons| persons.collect::<Vec<_>>().join(" "));
        let pictures = message["fileNameWithoutExt"].as_str().map(str::to_owned);
        let group = || self.says["group"].as_str().unwrap_or_default().to_owned();
        brief(&subject.or(persons).or(pictures).unwrap_or_else(group), 80)
    }
}
