//! `sparks adopt`

use std::{process::ExitCode, sync::Arc};

use serde_json::{Value, json};
use sparks_config::Analyzer;
use sparks_engine::{Adoption, AdoptionProgress, AdoptionReport, AdoptionSurvey, CpuPool};

use crate::{
    cli::{AdoptArgs, Global},
    output::{Output, progress_bar, sanitize},
    telemetry::metrics::Metrics,
    wiring::{self, FaceBackends, UsageError},
};

/// Adopts the persons and tags that another worker wrote.
pub async fn run(global: &Global, args: AdoptArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut settings = wiring::settings(global, &[])?.settings;
    if settings.faces.analyzer == Analyzer::Off {
        let message = "faces.analyzer is \"off\", so adopted persons could not be recognised: set it to \"local\"";
        return Err(UsageError(message.into()).into());
    }
    // A collection keeps its enrolled faces; local embeddings of the portraits cost no service call.
    settings.faces = wiring::local_analyzer_only(&settings.faces);
    let jobs = wiring::jobs(&settings);
    let (cpu, metrics) = (CpuPool::new(jobs), Metrics::new());
    let face_backends = FaceBackends::from_settings(&settings, &cpu, &metrics).await?;
    let backend = wiring::open(&settings).await?;
    let index = wiring::gallery_index(&settings, &backend).await?;
    let face_backends = face_backends.for_enrolled_persons(&mut settings, &index, &cpu, &metrics).await?;
    let pipeline = wiring::pipeline(&settings, &backend, cpu, &face_backends, Arc::clone(&index), &metrics)?;
    let adoption = Adoption { store: Arc::clone(&backend.store), pipeline: Arc::new(pipeline), index, jobs };
    let survey = survey(&adoption).await?;
    let report = adopt(&adoption, &survey, args.dry_run).await?;
    if output.is_json() {
        output.json(&to_json(&survey, &report, args.dry_run))?;
    } else {
        print(&report, args.dry_run, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn survey(adoption: &Adoption) -> anyhow::Result<AdoptionSurvey> {
    let bar = progress_bar(0, "rows");
    let survey = adoption.survey(|rows| bar.set_position(rows)).await;
    bar.finish_and_clear();
    Ok(survey?)
}

async fn adopt(adoption: &Adoption, survey: &AdoptionSurvey, dry_run: bool) -> anyhow::Result<AdoptionReport> {
    let bar = progress_bar(survey.persons.len() as u64, "persons");
    let report = adoption.run(survey, dry_run, |step| match step {
        AdoptionProgress::Persons(persons) => bar.set_position(persons),
        AdoptionProgress::Taggings(taggings) => {
            bar.set_message("tags");
            bar.set_length(survey.taggings);
            bar.set_position(taggings);
        }
    });
    let report = report.await;
    bar.finish_and_clear();
    Ok(report?)
}

fn to_json(survey: &AdoptionSurvey, report: &AdoptionReport, dry_run: bool) -> Value {
    let unrecognisable = report.unrecognisable.iter().map(|(person, why)| json!({ "person": person, "why": why }));
    let alike = report.duplicates.iter();
    let alike = alike.map(|pair| json!({ "into": pair.into, "from": pair.from, "similarity": pair.similarity }));
    json!({
        "persons": report.persons,
        "persons_known": report.known,
        "photos": report.photos,
        "taggings": report.taggings,
        "taggings_in_table": survey.taggings,
        "numbers_reserved_up_to": report.reserved,
        "pictured": report.newly_enrolled,
        "unrecognisable": unrecognisable.collect::<Vec<_>>(),
        "alike": alike.collect::<Vec<_>>(),
        "left_alone": report.issues.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "dry_run": dry_run,
    })
}

fn print(report: &AdoptionReport, dry_run: bool, output: &mut Output) -> std::io::Result<()> {
    for issue in &report.issues {
        output.line(sanitize(&issue.to_string()))?;
    }
    for (person, why) in &report.unrecognisable {
        let why = sanitize(why);
        output.line(format!(
            "{person} cannot be recognised: persons/{person}.jpg: {why}; store a better portrait there and run this again, \
             or let workers create a new person and merge the two with `sparks persons merge {person} OTHER`"
        ))?;
    }
    for pair in &report.duplicates {
        let (into, from) = (pair.into, pair.from);
        output.line(format!(
            "{into} and {from} look alike (similarity {:.4}), so new faces may stay unidentified: see `sparks persons \
             suggest`, then `sparks persons merge {into} {from}`",
            pair.similarity
        ))?;
    }
    for person in &report.newly_enrolled {
        output.line(format!("{person} is now recognised by the portrait"))?;
    }
    let (did, would) = if dry_run { ("would be adopted", "would be reserved") } else { ("adopted", "reserved") };
    let reserved = report.reserved.map_or_else(|| "none beyond the log".to_owned(), |up_to| format!("up to {up_to}"));
    output.columns([
        vec![format!("persons {did}"), report.persons.to_string()],
        vec!["persons adopted before".into(), report.known.to_string()],
        vec![format!("photos {did}"), report.photos.to_string()],
        vec![format!("tags {did}"), report.taggings.to_string()],
        vec![format!("numbers {would}"), reserved],
    ])
}
