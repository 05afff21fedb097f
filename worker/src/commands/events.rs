//! `sparks events`

use std::process::ExitCode;

use serde_json::{Value, json};
use sparks_domain::{DeletionCause, Event, Lane, Position, Recorded, Seq};

use crate::{
    cli::{EventsArgs, Global},
    output::Output,
    wiring,
};

const PAGE: usize = 500;

/// Prints the log: an object a line for scripts, aligned lines for people.
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
            after.pass_event(recorded);
            if output.is_json() { output.json(&whole(recorded))? } else { output.line(brief(recorded))? }
        }
    }
}

fn whole(recorded: &Recorded) -> Value {
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

/// Columns of fixed width: a log may be longer than a table can be laid out.
fn brief(recorded: &Recorded) -> String {
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
        Event::PersonRenamed(e) => format!("{} is now {}", e.person, e.to),
        Event::FacesReviewed(e) => {
            let persons: Vec<String> = e.persons().map(|person| person.to_string()).collect();
            format!("{} also {}", e.image_id, persons.join(" "))
        }
        Event::PersonsMerged(e) => format!("{} is {} ({})", e.from, e.into, recorded.id),
        Event::MergeUndone(e) => format!("{} is not {} ({})", e.from, e.into, e.merge),
        Event::PhotoDeleted(e) => match e.cause {
            DeletionCause::Asked => format!("{} as its owner wished", e.image_id),
            DeletionCause::OriginalRemoved => format!("{} after its original", e.image_id),
        },
        Event::ProfileProcessed(e) => {
            format!("{} is {}", e.email, e.person().map_or_else(|| "nobody known".into(), |person| person.to_string()))
        }
        Event::PersonsForgotten(e) => e.persons.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        Event::PersonReinstated(e) => format!("{} by {}", e.person, e.face),
        Event::PersonPictured(e) => format!("{} by {}", e.person, e.face),
        Event::NumbersReserved(e) => format!("up to {}", e.up_to),
        Event::PersonAdopted(e) => match e.likeness.lack() {
            Some(lack) => format!("{} whom nobody recognises: {lack}", e.person),
            None => e.person.to_string(),
        },
        Event::PhotoAdopted(e) => {
            let persons: Vec<String> = e.persons().iter().map(ToString::to_string).collect();
            format!("{} {}", e.image_id, persons.join(" "))
        }
    };
    format!("{:>9}  {}  {:<16}  {about}", recorded.seq.0, recorded.when, recorded.event.event_type())
}
