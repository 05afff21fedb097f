//! `sparks faces`

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context;
use embedded_graphics::{
    pixelcolor::Rgb888,
    prelude::{RgbColor, WebColors},
};
use serde_json::{Value, json};
use sparks_config::Settings;
use sparks_domain::{Candidate, SeenFace};
use sparks_engine::{Cpu, Darkroom, FaceEngine};
use sparks_faces::Local;

use crate::{
    cli::{EvalArgs, FacesAction, FacesArgs, Global, ShowArgs},
    draw::Canvas,
    evaluate::{Counts, LabelledPhoto, Score, Sighting, Trial, Verification, find},
    output::{Output, progress},
    wiring::{self, WrongUse},
};

/// Tries the engine on photos.
pub async fn run(global: &Global, args: FacesArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    match args.action {
        FacesAction::Eval(args) => evaluate(global, args, output).await,
        FacesAction::Show(args) => show(global, args, output).await,
    }
}

async fn evaluate(global: &Global, args: EvalArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let policy = wiring::gallery_policy(&settings)?;
    let darkroom = wiring::darkroom(&settings);
    let (photos, persons_true) = find(&args.dir, darkroom.as_ref())?;
    let engine = Arc::new(wiring::local_engine(&settings)?);
    let (sightings, unreadable) = look_at_all(&photos, engine, darkroom, Cpu::new(wiring::jobs(&settings))).await;

    let truth: Vec<usize> = photos.iter().map(|photo| photo.person).collect();
    let subjects = truth
        .iter()
        .zip(&sightings)
        .filter_map(|(person, photo)| Some((*person, photo.faces.get(photo.subject?)?.signature.as_ref()?)));
    let verification = Verification::of(&subjects.collect::<Vec<_>>());
    let mut scores = Vec::new();
    for seed in 0..args.orders {
        let mut order: Vec<usize> = (0..photos.len()).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let said = Trial::new(&policy, sparks_faces::scale).run(&sightings, &order)?;
        scores.push(Counts::of(&said, &truth).score(photos.len()));
    }
    let detected = sightings.iter().filter(|photo| photo.subject.is_some()).count();
    let report = Report { photos: photos.len(), detected, persons_true, verification, scores, unreadable };
    report.print(output)?;
    Ok(ExitCode::SUCCESS)
}

/// What the engine sees in each photo, and the photos that cannot be read.
async fn look_at_all(
    photos: &[LabelledPhoto],
    engine: Arc<Local>,
    darkroom: Arc<dyn Darkroom>,
    cpu: Cpu,
) -> (Vec<Sighting>, Vec<(PathBuf, String)>) {
    let bar = progress(photos.len() as u64, "photos");
    let looks = photos.iter().map(|photo| {
        let (path, engine, darkroom, bar) =
            (photo.path.clone(), Arc::clone(&engine), Arc::clone(&darkroom), bar.clone());
        let cpu = cpu.clone();
        tokio::spawn(async move {
            let seen = cpu.run(move || {
                let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
                let pixels = darkroom.open(&bytes).map_err(|error| error.to_string())?;
                Ok::<_, String>(engine.look(&pixels))
            });
            let seen = seen.await.unwrap_or_else(|crashed| Err(crashed.to_string()));
            bar.inc(1);
            seen
        })
    });
    let looks: Vec<_> = looks.collect();
    let (mut sightings, mut unreadable) = (Vec::new(), Vec::new());
    for (photo, look) in photos.iter().zip(looks) {
        let faces = look.await.unwrap_or_else(|failed| Err(failed.to_string()));
        let faces = faces.unwrap_or_else(|reason| {
            unreadable.push((photo.path.clone(), reason));
            Vec::new()
        });
        sightings.push(Sighting::of(faces));
    }
    bar.finish_and_clear();
    (sightings, unreadable)
}

/// Draws what the engine sees in one photo, with the names of whoever the data folder knows.
async fn show(global: &Global, args: ShowArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let about = |what: &dyn std::fmt::Display| WrongUse(format!("{}: {what}", args.photo.display()));
    let bytes = std::fs::read(&args.photo).map_err(|error| about(&error))?;
    let pixels = wiring::darkroom(&settings).open(&bytes).map_err(|error| about(&error))?;
    let faces = wiring::local_engine(&settings)?.look(&pixels);
    let names = names(&settings, &faces).await?;
    let mut canvas = Canvas::new(&pixels).ok_or_else(|| about(&"no pixels"))?;
    for (face, name) in faces.iter().zip(&names) {
        let (colour, name) = match name {
            Some(name) => (Rgb888::GREEN, format!("{name} ")),
            None => (Rgb888::CSS_ORANGE, String::new()),
        };
        canvas.face(face, colour, &format!("{name}{:.2}", face.confidence));
    }
    std::fs::write(&args.output, canvas.png()?).with_context(|| format!("cannot write {}", args.output.display()))?;
    if output.is_json() {
        for (face, name) in faces.iter().zip(&names) {
            output.json(&json!({
                "box": face.bounds, "landmarks": face.landmarks, "confidence": face.confidence,
                "quality": face.quality, "attributes": face.attributes, "name": name,
            }))?;
        }
    } else {
        let header = ["face", "name", "score", "size", "sharpness", "turn"];
        let rows = faces.iter().zip(&names).enumerate().map(|(n, (face, name))| {
            let turn = face.quality.turn.map(|turn| format!("{turn:.2}")).unwrap_or_default();
            let (size, sharpness) = (face.quality.size, face.quality.sharpness);
            let name = name.clone().unwrap_or_else(|| "-".into());
            vec![
                n.to_string(),
                name,
                format!("{:.2}", face.confidence),
                format!("{size:.0}"),
                format!("{sharpness:.2}"),
                turn,
            ]
        });
        output.table(&header, rows.collect::<Vec<_>>())?;
        output.line(format!("drawn on {}", args.output.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whom the data folder, if there is one, takes the faces for.
async fn names(settings: &Settings, faces: &[SeenFace]) -> anyhow::Result<Vec<Option<String>>> {
    if !settings.data.join("sparks.db").is_file() {
        return Ok(vec![None; faces.len()]);
    }
    let index = wiring::index(settings, &wiring::open(settings).await?).await?;
    let policy = wiring::gallery_policy(settings)?;
    let known = index.known();
    let found = known.gallery.search(faces, settings.faces.candidates, known.people.len());
    let name = |candidates: &Vec<Candidate>| {
        let person = policy.recognise(candidates, found.persons)?.person()?;
        known.people.get(person).map(|person| person.display_name)
    };
    Ok(found.candidates.iter().map(name).collect())
}

struct Report {
    photos: usize,
    detected: usize,
    persons_true: usize,
    verification: Verification,
    scores: Vec<Score>,
    unreadable: Vec<(PathBuf, String)>,
}

impl Report {
    fn print(&self, output: &mut Output) -> std::io::Result<()> {
        if output.is_json() { output.json(&self.to_json()) } else { self.tell(output) }
    }

    fn detection_rate(&self) -> f64 {
        self.detected as f64 / self.photos.max(1) as f64
    }

    fn to_json(&self) -> Value {
        let mean = Score::mean(&self.scores);
        let orders: Vec<Value> = self.scores.iter().map(order).collect();
        let unreadable =
            self.unreadable.iter().map(|(path, why)| json!({ "path": path.display().to_string(), "reason": why }));
        json!({
            "photos": self.photos,
            "detection_rate": self.detection_rate(),
            "tar_at_far_1pct": self.verification.tar_at_far_1pct,
            "tar_at_far_01pct": self.verification.tar_at_far_01pct,
            "best_threshold": self.verification.best_threshold,
            "best_accuracy": self.verification.best_accuracy,
            "precision": mean.precision,
            "recall": mean.recall,
            "persons_made": mean.persons,
            "persons_true": self.persons_true,
            "corrections_per_100": mean.corrections_per_100,
            "unidentified": mean.unidentified,
            "orders": orders,
            "unreadable": unreadable.collect::<Vec<_>>(),
        })
    }

    fn tell(&self, output: &mut Output) -> std::io::Result<()> {
        let v = &self.verification;
        output.line(format!("{} photos of {} persons", self.photos, self.persons_true))?;
        output.columns([
            vec!["  a face found in".into(), format!("{} of {}", self.detected, self.photos)],
            vec!["  right pairs accepted at 1% wrong ones".into(), percent(v.tar_at_far_1pct)],
            vec!["  right pairs accepted at 0.1% wrong ones".into(), percent(v.tar_at_far_01pct)],
            vec![
                "  best threshold for one pair".into(),
                format!("{:.3} ({} right)", v.best_threshold, percent(v.best_accuracy)),
            ],
        ])?;
        output.line("\none photo at a time")?;
        let row = |name: String, s: &Score| {
            let number = |x: f64| format!("{x:.1}").trim_end_matches(".0").to_owned();
            vec![
                format!("  {name}"),
                format!("{:.4}", s.precision),
                format!("{:.4}", s.recall),
                number(s.persons),
                number(s.corrections_per_100),
                number(s.unidentified),
            ]
        };
        let orders = self.scores.iter().enumerate().map(|(n, score)| row(format!("order {}", n + 1), score));
        let mean = row("mean".into(), &Score::mean(&self.scores));
        let header = ["", "precision", "recall", "persons", "corrections per 100", "unidentified"];
        output.table(&header, orders.chain([mean]).collect::<Vec<_>>())?;
        for (path, reason) in &self.unreadable {
            output.line(format!("{}: {reason}", path.display()))?;
        }
        Ok(())
    }
}

fn order(score: &Score) -> Value {
    json!({
        "precision": score.precision,
        "recall": score.recall,
        "persons_made": score.persons,
        "corrections_per_100": score.corrections_per_100,
        "unidentified": score.unidentified,
    })
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
