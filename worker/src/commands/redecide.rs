//! `sparks redecide`

mod json;
mod tell;

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use sparks_config::{Analyzer, Consolidation, Settings};
use sparks_domain::{Item, Key, PersonId};
use sparks_engine::{Cpu, FaceIndex, Redecision, Report, Survey};

use crate::{
    backend::Backend,
    cli::{Faces, Global, RedecideArgs},
    output::{Output, progress},
    telemetry::metrics::Metrics,
    wiring::{self, Senses, WrongUse},
};

/// Rows are read this many at a time.
const PAGE: usize = 256;

/// Decides anew about all photos, or says what that would come to.
pub async fn run(global: &Global, args: RedecideArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = settings(global, &args)?;
    if settings.faces.analyzer == Analyzer::Off {
        let message = "faces.analyzer is \"off\", so nobody would look: say who does with --faces";
        return Err(WrongUse(message.into()).into());
    }
    let jobs = wiring::jobs(&settings);
    let (cpu, metrics) = (Cpu::new(jobs), Metrics::new());
    let senses = Senses::of(&settings, &cpu, &metrics).await?;
    let backend = wiring::open(&settings).await?;
    let index = wiring::index(&settings, &backend).await?;
    let pipeline = wiring::pipeline(&settings, &backend, cpu, &senses, Arc::clone(&index), &metrics)?;
    let redecision = Redecision {
        store: Arc::clone(&backend.store),
        pipeline: Arc::new(pipeline),
        index: Arc::clone(&index),
        scale: sparks_faces::scale,
        service: senses.asked(&settings)?,
        candidates: settings.faces.candidates,
        jobs,
    };
    let survey = survey(&redecision, &backend).await?;
    announce(&survey, &settings, redecision.service.is_some(), &args)?;
    let report = go_through(&redecision, &survey, args.apply).await?;
    if args.apply && settings.faces.consolidation == Consolidation::Join {
        wiring::register(&settings, &backend, Arc::clone(&index))?.tidy(true).await?;
        index.refresh().await?;
    }
    let names = names(&report, &backend).await?;
    let told = Told { report: &report, names, analyzer: settings.faces.analyzer, args: &args };
    if output.is_json() {
        output.json(&told.to_json())?
    } else {
        told.tell(output)?
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be said, and of whom.
struct Told<'a> {
    report: &'a Report,
    /// The names that the table shows.
    names: BTreeMap<PersonId, String>,
    analyzer: Analyzer,
    args: &'a RedecideArgs,
}

/// What the persons of the report are called, by whomever.
async fn names(report: &Report, backend: &Backend) -> anyhow::Result<BTreeMap<PersonId, String>> {
    let persons: Vec<PersonId> = report.persons.keys().chain(&report.left_over).copied().collect();
    let mut names = BTreeMap::new();
    for persons in persons.chunks(PAGE) {
        let keys: Vec<Key> = persons.iter().map(|person| Key::person(*person)).collect();
        let rows = backend.store.batch_get(&keys).await?;
        let named = |row: &Item| Some((row.key.sk.parse().ok()?, row.text("displayName")?.to_owned()));
        names.extend(rows.iter().filter_map(named));
    }
    Ok(names)
}

fn settings(global: &Global, args: &RedecideArgs) -> anyhow::Result<Settings> {
    let set = wiring::settings(global, &[])?.settings.faces;
    let faces = args.faces.map(|faces| ("faces.analyzer", "--faces", Faces::name(faces).into()));
    let jobs = args.jobs.map(|jobs| ("jobs", "--jobs", i64::from(jobs).into()));
    let threshold = args.threshold.map(|threshold| ("faces.threshold", "--threshold", threshold.into()));
    let flags: Vec<_> = [faces, jobs, threshold].into_iter().flatten().collect();
    let mut settings = wiring::settings(global, &flags)?.settings;
    // What is settled for one measure says nothing to another.
    let changes = (set.analyzer == Analyzer::Rekognition) != (settings.faces.analyzer == Analyzer::Rekognition);
    if changes && args.threshold.is_none() {
        settings.faces.threshold = 0.0;
    }
    Ok(settings)
}

async fn survey(redecision: &Redecision, backend: &Backend) -> anyhow::Result<Survey> {
    let bar = progress(backend.store.heads().await?.events(), "events");
    let survey = redecision.survey(|read| bar.set_position(read)).await;
    bar.finish_and_clear();
    Ok(survey?)
}

/// Says how many calls a service will be paid for, before any is made.
fn announce(survey: &Survey, settings: &Settings, asked: bool, args: &RedecideArgs) -> Result<(), WrongUse> {
    let photos = survey.photos.len() as u64;
    let detect = if settings.faces.analyzer == Analyzer::Rekognition { photos } else { 0 };
    let search = if asked { survey.faces } else { 0 };
    let calls = detect + search;
    if calls == 0 {
        return Ok(());
    }
    let usd = calls as f64 * settings.prices.rekognition_call;
    let words = format!(
        "about {calls} calls of Rekognition ({detect} DetectFaces, {search} SearchFacesByImage), {usd:.2} USD by prices.rekognition_call"
    );
    if args.apply && !args.yes {
        return Err(WrongUse(format!("that takes {words}: say --yes to pay for them")));
    }
    eprintln!("{words}");
    Ok(())
}

async fn go_through(redecision: &Redecision, survey: &Survey, apply: bool) -> anyhow::Result<Report> {
    let bar = progress(survey.photos.len() as u64, "photos");
    let report = redecision.run(survey, apply, |photos| bar.set_position(photos)).await;
    bar.finish_and_clear();
    Ok(report?)
}
