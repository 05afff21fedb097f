//! `sparks adopt`

use std::{process::ExitCode, sync::Arc};

use serde_json::{Value, json};
use sparks_config::Analyzer;
use sparks_engine::{Adopted, Adoption, Cpu, FoundToAdopt, Step};

use crate::{
    cli::{AdoptArgs, Global},
    output::{Output, harmless, progress},
    telemetry::metrics::Metrics,
    wiring::{self, Senses, WrongUse},
};

/// Takes over persons and tags that another worker made.
pub async fn run(global: &Global, args: AdoptArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut settings = wiring::settings(global, &[])?.settings;
    if settings.faces.analyzer == Analyzer::Off {
        let message = "faces.analyzer is \"off\", so nobody could be recognised afterwards: set it to \"local\"";
        return Err(WrongUse(message.into()).into());
    }
    // A collection knows whom it knows: what they look like to us costs no call.
    settings.faces = wiring::without_service(&settings.faces);
    let jobs = wiring::jobs(&settings);
    let (cpu, metrics) = (Cpu::new(jobs), Metrics::new());
    let senses = Senses::of(&settings, &cpu, &metrics).await?;
    let backend = wiring::open(&settings).await?;
    let index = wiring::index(&settings, &backend).await?;
    let pipeline = wiring::pipeline(&settings, &backend, cpu, &senses, Arc::clone(&index), &metrics)?;
    let adoption = Adoption { store: Arc::clone(&backend.store), pipeline: Arc::new(pipeline), index, jobs };
    let found = survey(&adoption).await?;
    let adopted = take_over(&adoption, &found, args.dry_run).await?;
    if output.is_json() {
        output.json(&to_json(&found, &adopted, args.dry_run))?;
    } else {
        tell(&adopted, args.dry_run, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn survey(adoption: &Adoption) -> anyhow::Result<FoundToAdopt> {
    let bar = progress(0, "rows");
    let found = adoption.survey(|rows| bar.set_position(rows)).await;
    bar.finish_and_clear();
    Ok(found?)
}

async fn take_over(adoption: &Adoption, found: &FoundToAdopt, dry_run: bool) -> anyhow::Result<Adopted> {
    let bar = progress(found.persons.len() as u64, "persons");
    let adopted = adoption.run(found, dry_run, |step| match step {
        Step::Persons(persons) => bar.set_position(persons),
        Step::Taggings(taggings) => {
            bar.set_message("tags");
            bar.set_length(found.taggings);
            bar.set_position(taggings);
        }
    });
    let adopted = adopted.await;
    bar.finish_and_clear();
    Ok(adopted?)
}

fn to_json(found: &FoundToAdopt, adopted: &Adopted, dry_run: bool) -> Value {
    let unrecognisable = adopted.unrecognisable.iter().map(|(person, why)| json!({ "person": person, "why": why }));
    let alike = adopted.alike.iter();
    let alike = alike.map(|pair| json!({ "into": pair.into, "from": pair.from, "similarity": pair.similarity }));
    json!({
        "persons": adopted.persons,
        "persons_known": adopted.known,
        "photos": adopted.photos,
        "taggings": adopted.taggings,
        "taggings_in_table": found.taggings,
        "numbers_reserved_up_to": adopted.reserved,
        "pictured": adopted.pictured,
        "unrecognisable": unrecognisable.collect::<Vec<_>>(),
        "alike": alike.collect::<Vec<_>>(),
        "left_alone": adopted.strange.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "dry_run": dry_run,
    })
}

fn tell(adopted: &Adopted, dry_run: bool, output: &mut Output) -> std::io::Result<()> {
    for strange in &adopted.strange {
        output.line(harmless(&strange.to_string()))?;
    }
    for (person, why) in &adopted.unrecognisable {
        let why = harmless(why);
        output.line(format!(
            "{person} will not be recognised, persons/{person}.jpg: {why}; store a better picture there and repeat this, \
             or join them with whom they are taken for: `sparks persons merge {person} OTHER`"
        ))?;
    }
    for pair in &adopted.alike {
        let (into, from) = (pair.into, pair.from);
        output.line(format!(
            "{into} and {from} look alike ({:.4}), so new faces may be nobody's: see `sparks persons suggest`, \
             then `sparks persons merge {into} {from}`",
            pair.similarity
        ))?;
    }
    for person in &adopted.pictured {
        output.line(format!("{person} is recognised by their picture from now on"))?;
    }
    let (did, would) = if dry_run { ("would be adopted", "would be reserved") } else { ("adopted", "reserved") };
    let reserved = adopted.reserved.map_or_else(|| "as the log knows".to_owned(), |up_to| format!("up to {up_to}"));
    output.columns([
        vec![format!("persons {did}"), adopted.persons.to_string()],
        vec!["persons known before".into(), adopted.known.to_string()],
        vec![format!("photos {did}"), adopted.photos.to_string()],
        vec![format!("tags {did}"), adopted.taggings.to_string()],
        vec![format!("numbers {would}"), reserved],
    ])
}
