//! `sparks events`

use std::process::ExitCode;

use serde_json::{Value, json};
use sparks_domain::{DeletionCause, Event, Lane, Position, RecordedEvent, Seq};

use crate::{
    cli::{EventsArgs, Global},
    output::Output,
    wiring,
};

const PAGE: usize = 500;

/// Prints the event log: one JSON object per line for scripts, aligned lines for people.
pub async fn run(global: &Global, args: EventsArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let store = wiring::open(&settings).await?.store;
    let mut after = Position::at(Lane::IDENTITY, Seq(args.after));
    loop {
        let events = store.read_log(&after, PAGE).await?;
        if events.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        for recorded in &events {
            after.advance_past(recorded);
            if output.is_json() { output.json(&to_json(recorded))? } else { output.line(describe(recorded))? }
        }
    }
}

fn to_json(recorded: &RecordedEvent) -> Value {
    let data: Value = serde_json::from_str(&recorded.event.to_data()).unwrap_or_default();
    json!({
        "seq": recorded.seq,
        "event_id": recorded.id,
        "actor": recorded.actor,
        "when_occurred": recorded.when,
        "event_type": recorded.event.event_type(),
        "event_data": data,
    })
}

/// Describes an event in one line. Columns have a fixed width, because a log may be too long to lay out as a table.
fn describe(recorded: &RecordedEvent) -> String {
    let about = match &recorded.event {
        Event::PhotoProcessed(e) => {
            let persons: Vec<String> = e.persons().iter().map(ToString::to_string).collect();
            format!("{} {} faces {}", e.image_id, e.faces.len(), persons.join(" "))
        }
        Event::PhotoRejected(e) => format!("{} {}", e.image_id, e.reason.message),
        Event::PersonsAllocated(e) => {
            let persons: Vec<String> = e.persons.iter().map(|a| a.person.to_string()).collect();
            format!("{} in {}", persons.join(" "), e.image_id)
        }
        Event::PersonRenamed(e) => format!("{} renamed to {}", e.person, e.to),
        Event::FacesReviewed(e) => {
            let persons: Vec<String> = e.persons().map(|person| person.to_string()).collect();
            format!("{} matched {}", e.image_id, persons.join(" "))
        }
        Event::PersonsMerged(e) => format!("{} into {} ({})", e.from, e.into, recorded.id),
        Event::MergeUndone(e) => format!("{} from {} ({})", e.from, e.into, e.merge),
        Event::PhotoDeleted(e) => match e.cause {
            DeletionCause::Requested => format!("{} on request", e.image_id),
            DeletionCause::OriginalRemoved => format!("{} because its original was removed", e.image_id),
        },
        Event::ProfileProcessed(e) => {
            format!("{} is {}", e.email, e.person().map_or_else(|| "unidentified".into(), |person| person.to_string()))
        }
        Event::PersonsForgotten(e) => e.persons.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        Event::PersonReinstated(e) => format!("{} by {}", e.person, e.face),
        Event::PersonPictured(e) => format!("{} by {}", e.person, e.face),
        Event::LevelRaised(e) => format!("reader level {}", e.level),
        Event::NumbersReserved(e) => format!("up to {}", e.up_to),
        Event::PersonAdopted(e) => match e.likeness.problem() {
            Some(lack) => format!("{} without a usable portrait: {lack}", e.person),
            None => e.person.to_string(),
        },
        Event::PhotoAdopted(e) => {
            let persons: Vec<String> = e.persons().iter().map(ToString::to_string).collect();
            format!("{} {}", e.image_id, persons.join(" "))
        }
    };
    format!("{:>9}  {}  {:<16}  {about}", recorded.seq.0, recorded.when, recorded.event.event_type())
}
