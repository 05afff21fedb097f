//! `sparks faces eval`

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use sparks_engine::{CpuPool, FaceEngine, ImageProcessor};
use sparks_evaluation::{ClusteringScore, EvaluatedPhoto, EvaluationReport, VerificationMetrics, run_trials};
use sparks_faces::LocalEngine;

use super::{
    cli::EvalArgs,
    labelled_photos::{LabelledPhoto, find_labelled_photos},
};
use crate::{
    cli::Global,
    output::{Output, progress_bar},
    wiring,
};

/// Evaluates the local engine on labelled photos.
pub async fn run(global: &Global, args: EvalArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let policy = wiring::gallery_policy(&settings)?;
    let image_processor = wiring::image_processor(&settings);
    let (photos, labelled_persons) = find_labelled_photos(&args.dir, image_processor.as_ref())?;
    let engine = Arc::new(wiring::local_engine(&settings)?);
    let cpu = CpuPool::new(wiring::jobs(&settings));
    let (analyzed, unreadable) = analyze_photos(&photos, engine, image_processor, cpu).await;

    let labels: Vec<usize> = photos.iter().map(|photo| photo.label).collect();
    let subjects = labels
        .iter()
        .zip(&analyzed)
        .filter_map(|(label, photo)| Some((*label, photo.faces.get(photo.subject?)?.signature.as_ref()?)));
    let verification = VerificationMetrics::measure(&subjects.collect::<Vec<_>>());
    let report = EvaluationReport {
        photos: photos.len(),
        detected: analyzed.iter().filter(|photo| photo.subject.is_some()).count(),
        labelled_persons,
        verification,
        scores: run_trials(&analyzed, &labels, args.orders, &policy, sparks_faces::scale)?,
        unreadable,
    };
    if output.is_json() {
        output.json(&report.to_json())?;
    } else {
        print(&report, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Analyzes all photos in parallel. Returns the faces of each, and the photos that could not be read with the reason.
async fn analyze_photos(
    photos: &[LabelledPhoto],
    engine: Arc<LocalEngine>,
    image_processor: Arc<dyn ImageProcessor>,
    cpu: CpuPool,
) -> (Vec<EvaluatedPhoto>, Vec<(PathBuf, String)>) {
    let bar = progress_bar(photos.len() as u64, "photos");
    let tasks = photos.iter().map(|photo| {
        let (path, engine, image_processor, bar) =
            (photo.path.clone(), Arc::clone(&engine), Arc::clone(&image_processor), bar.clone());
        let cpu = cpu.clone();
        tokio::spawn(async move {
            let faces = cpu.run(move || {
                let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
                let pixels = image_processor.decode(&bytes).map_err(|error| error.to_string())?;
                Ok::<_, String>(engine.analyze(&pixels))
            });
            let faces = faces.await.unwrap_or_else(|panicked| Err(panicked.to_string()));
            bar.inc(1);
            faces
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let (mut analyzed, mut unreadable) = (Vec::new(), Vec::new());
    for (photo, task) in photos.iter().zip(tasks) {
        let faces = task.await.unwrap_or_else(|failed| Err(failed.to_string()));
        let faces = faces.unwrap_or_else(|reason| {
            unreadable.push((photo.path.clone(), reason));
            Vec::new()
        });
        analyzed.push(EvaluatedPhoto::of(faces));
    }
    bar.finish_and_clear();
    (analyzed, unreadable)
}

fn print(report: &EvaluationReport, output: &mut Output) -> std::io::Result<()> {
    let v = &report.verification;
    output.line(format!("{} photos of {} persons", report.photos, report.labelled_persons))?;
    output.columns([
        vec!["  photos with a detected face".into(), format!("{} of {}", report.detected, report.photos)],
        vec!["  true accept rate at 1% false accepts".into(), percent(v.tar_at_far_1pct)],
        vec!["  true accept rate at 0.1% false accepts".into(), percent(v.tar_at_far_01pct)],
        vec![
            "  best threshold for one pair".into(),
            format!("{:.3} (accuracy {})", v.best_threshold, percent(v.best_accuracy)),
        ],
    ])?;
    output.line("\nidentification, one photo at a time")?;
    let row = |name: String, score: &ClusteringScore| {
        let number = |x: f64| format!("{x:.1}").trim_end_matches(".0").to_owned();
        vec![
            format!("  {name}"),
            format!("{:.4}", score.precision),
            format!("{:.4}", score.recall),
            number(score.persons),
            number(score.corrections_per_100),
            number(score.unidentified),
        ]
    };
    let orders = report.scores.iter().enumerate().map(|(n, score)| row(format!("order {}", n + 1), score));
    let mean = row("mean".into(), &report.mean());
    let header = ["", "precision", "recall", "persons", "corrections per 100", "unidentified"];
    output.table(&header, orders.chain([mean]).collect::<Vec<_>>())?;
    for (path, reason) in &report.unreadable {
        output.line(format!("{}: {reason}", path.display()))?;
    }
    Ok(())
}

fn percent(fraction: f64) -> String {
    format!("{:.1}%", fraction * 100.0)
}
