//! `sparks persons`

use std::{process::ExitCode, str::FromStr, sync::Arc};

use serde_json::{Value, json};
use sparks_domain::{Event, Evidence, Grounds, InvalidId, Join, Recorded, Seq};
use sparks_engine::{FaceIndex, Followed, GalleryIndex, Register, RegisterError};

use crate::{
    backend::Backend,
    cli::{Global, PersonsAction, PersonsArgs},
    output::{Output, progress},
    wiring::{self, WrongUse},
};

/// Says who is who, on the operator's word.
pub async fn run(global: &Global, args: PersonsArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let index = wiring::index(&settings, &backend).await?;
    let register = wiring::register(&settings, &backend, Arc::clone(&index))?;
    let done = match &args.action {
        PersonsAction::Suggest => suggest(&register, output).await,
        PersonsAction::Merge { a, b, force } => {
            let merged = register.join(parse(a)?, parse(b)?, *force).await;
            let followed = follow(&register).await?; // also what an interrupted call left undone
            let merged = merged.map_err(wrong_use)?;
            let said =
                json!({ "event": merged.event, "into": merged.into, "from": merged.from, "photos": followed.photos });
            let words = format!(
                "{} is {} now, photos that followed: {}; take it back with `sparks persons unmerge {}`",
                merged.from, merged.into, followed.photos, merged.event
            );
            say(output, &said, &words)
        }
        PersonsAction::Unmerge { event } => {
            let person = register.undo(parse(event)?).await.map_err(wrong_use)?;
            let followed = follow(&register).await?;
            let said = json!({ "person": person, "photos": followed.photos });
            say(output, &said, &format!("{person} is a person of their own again"))
        }
        PersonsAction::Merges => list(&backend, &index, output).await,
    };
    done.map(|()| ExitCode::SUCCESS)
}

async fn suggest(register: &Register, output: &mut Output) -> anyhow::Result<()> {
    let found = register.consider(None).await?;
    let joins = found.joins.iter().map(|join| ("strong", join));
    let suggestions = found.suggestions.iter().map(|join| ("weaker", join));
    let all: Vec<(&str, &Join)> = joins.chain(suggestions).collect();
    if output.is_json() {
        for (strength, join) in all {
            output.json(
                &json!({ "into": join.into, "from": join.from, "evidence": strength, "grounds": join.evidence }),
            )?;
        }
        return Ok(());
    }
    if all.is_empty() {
        return Ok(output.line("nobody seems to be somebody else")?);
    }
    let header = ["persons", "", "evidence", "similarity", "deviations", "ahead of the next", "to join them"];
    let rows = all.iter().map(|(strength, Join { into, from, evidence })| {
        vec![
            into.to_string(),
            from.to_string(),
            (*strength).into(),
            format!("{:.3}", evidence.similarity),
            format!("{:.1}", evidence.distinction),
            format!("{:.1}", evidence.lead),
            format!("sparks persons merge {into} {from}"),
        ]
    });
    Ok(output.table(&header, rows.collect::<Vec<_>>())?)
}

/// All merges there ever were.
async fn list(backend: &Backend, index: &GalleryIndex, output: &mut Output) -> anyhow::Result<()> {
    let merges = index.merges();
    let mut rows = Vec::new();
    for Recorded { id, when, event, .. } in backend.store.identity(Seq(0)).await?.events {
        let Event::PersonsMerged(merge) = event else { continue };
        let holds = merges.get(id).is_some();
        if output.is_json() {
            let grounds = serde_json::to_value(&merge.grounds)?;
            output.json(&json!({
                "event": id, "when": when, "into": merge.into, "from": merge.from, "holds": holds, "grounds": grounds,
            }))?;
        } else {
            let state = if holds { "holds" } else { "taken back" };
            let persons = format!("{} is {}", merge.from, merge.into);
            rows.push(vec![id.to_string(), when.to_string(), persons, state.into(), words(&merge.grounds)]);
        }
    }
    if output.is_json() { Ok(()) } else { Ok(output.table(&["event", "when", "who", "", "why"], rows)?) }
}

/// Why two persons are one.
pub fn words(grounds: &Grounds) -> String {
    match grounds {
        Grounds::Told => "somebody said so".into(),
        Grounds::Alike(Evidence { similarity, distinction, pairs, .. }) => {
            format!("{pairs} pairs of faces are {similarity:.3} alike, {distinction:.1} deviations above the usual")
        }
    }
}

async fn follow(register: &Register) -> Result<Followed, RegisterError> {
    let bar = progress(0, "photos");
    let followed = register.follow(|photos| bar.set_position(photos as u64)).await;
    bar.finish_and_clear();
    followed
}

fn say(output: &mut Output, json: &Value, words: &str) -> anyhow::Result<()> {
    let said = if output.is_json() { output.json(json) } else { output.line(words) };
    Ok(said?)
}

fn parse<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, WrongUse> {
    text.parse().map_err(|error: InvalidId| WrongUse(error.to_string()))
}

/// What is asked for cannot be meant; everything else is a failure.
fn wrong_use(error: RegisterError) -> anyhow::Error {
    match error {
        RegisterError::Unknown(_)
        | RegisterError::Already(..)
        | RegisterError::SeenTogether(..)
        | RegisterError::NotAMerge(_) => WrongUse(error.to_string()).into(),
        failure => failure.into(),
    }
}
