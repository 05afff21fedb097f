//! `sparks redecide`

mod json;
mod tables;

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use sparks_config::{Analyzer, Consolidation, Settings};
use sparks_domain::{Item, Key, PersonId};
use sparks_engine::{CpuPool, FaceSearch, RedecideReport, RedecideSurvey, Redecision};

use crate::{
    backend::Backend,
    cli::{AnalyzerArg, Global, RedecideArgs},
    output::{Output, progress_bar},
    telemetry::metrics::Metrics,
    wiring::{self, FaceBackends, UsageError},
};

/// Rows read per request.
const PAGE: usize = 256;

/// Decides all photos again, or reports what would change.
pub async fn run(global: &Global, args: RedecideArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = settings(global, &args)?;
    if settings.faces.analyzer == Analyzer::Off {
        let message = "faces.analyzer is \"off\": choose an analyzer with --faces";
        return Err(UsageError(message.into()).into());
    }
    let jobs = wiring::jobs(&settings);
    let (cpu, metrics) = (CpuPool::new(jobs), Metrics::new());
    let face_backends = FaceBackends::from_settings(&settings, &cpu, &metrics).await?;
    let backend = wiring::open(&settings).await?;
    let index = wiring::gallery_index(&settings, &backend).await?;
    let pipeline = Arc::new(wiring::pipeline(&settings, &backend, cpu, &face_backends, Arc::clone(&index), &metrics)?);
    let redecision = Redecision {
        store: Arc::clone(&backend.store),
        pipeline: Arc::clone(&pipeline),
        index: Arc::clone(&index),
        scale: sparks_faces::scale,
        service: face_backends.search_service(&settings)?,
        candidates: settings.faces.candidates,
        jobs,
    };
    let survey = survey(&redecision, &backend).await?;
    confirm_cost(&survey, &settings, redecision.service.is_some(), &args)?;
    let report = decide_again(&redecision, &survey, args.apply).await?;
    if args.apply && settings.faces.consolidation == Consolidation::Join {
        wiring::consolidator(&settings, &backend, Arc::clone(&index), pipeline)?.run(true).await?;
        index.refresh().await?;
    }
    let names = read_names(&report, &backend).await?;
    let view = ReportView { report: &report, names, analyzer: settings.faces.analyzer, args: &args };
    if output.is_json() {
        output.json(&view.to_json())?
    } else {
        view.print(output)?
    }
    Ok(ExitCode::SUCCESS)
}

/// The report with what is needed to print it.
struct ReportView<'a> {
    report: &'a RedecideReport,
    /// Display names in the table.
    names: BTreeMap<PersonId, String>,
    analyzer: Analyzer,
    args: &'a RedecideArgs,
}

/// Reads the display names of the persons in the report.
async fn read_names(report: &RedecideReport, backend: &Backend) -> anyhow::Result<BTreeMap<PersonId, String>> {
    let persons: Vec<PersonId> = report.persons.keys().chain(&report.without_photos).copied().collect();
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
    let configured = wiring::settings(global, &[])?.settings.faces;
    let faces = args.faces.map(|faces| ("faces.analyzer", "--faces", AnalyzerArg::name(faces).into()));
    let jobs = args.jobs.map(|jobs| ("jobs", "--jobs", i64::from(jobs).into()));
    let threshold = args.threshold.map(|threshold| ("faces.threshold", "--threshold", threshold.into()));
    let flags: Vec<_> = [faces, jobs, threshold].into_iter().flatten().collect();
    let mut settings = wiring::settings(global, &flags)?.settings;
    // Similarities of Rekognition and of local models are not comparable, so a configured threshold is dropped.
    let is_other_measure =
        (configured.analyzer == Analyzer::Rekognition) != (settings.faces.analyzer == Analyzer::Rekognition);
    if is_other_measure && args.threshold.is_none() {
        settings.faces.threshold = 0.0;
    }
    Ok(settings)
}

async fn survey(redecision: &Redecision, backend: &Backend) -> anyhow::Result<RedecideSurvey> {
    let bar = progress_bar(backend.store.heads().await?.events(), "events");
    let survey = redecision.survey(|read| bar.set_position(read)).await;
    bar.finish_and_clear();
    Ok(survey?)
}

/// Prints the number and price of the service calls before any is made. With --apply they need --yes.
fn confirm_cost(
    survey: &RedecideSurvey,
    settings: &Settings,
    searches: bool,
    args: &RedecideArgs,
) -> Result<(), UsageError> {
    let photos = survey.photos.len() as u64;
    let detect = if settings.faces.analyzer == Analyzer::Rekognition { photos } else { 0 };
    let search = if searches { survey.faces } else { 0 };
    let calls = detect + search;
    if calls == 0 {
        return Ok(());
    }
    let usd = calls as f64 * settings.prices.rekognition_call;
    let cost = format!(
        "about {calls} calls to Rekognition ({detect} DetectFaces, {search} SearchFacesByImage), {usd:.2} USD by prices.rekognition_call"
    );
    if args.apply && !args.yes {
        return Err(UsageError(format!("--apply makes {cost}: confirm with --yes")));
    }
    eprintln!("{cost}");
    Ok(())
}

async fn decide_again(redecision: &Redecision, survey: &RedecideSurvey, apply: bool) -> anyhow::Result<RedecideReport> {
    let bar = progress_bar(survey.photos.len() as u64, "photos");
    let report = redecision.run(survey, apply, |photos| bar.set_position(photos)).await;
    bar.finish_and_clear();
    Ok(report?)
}
