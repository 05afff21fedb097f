//! `sparks faces show`

use std::process::ExitCode;

use anyhow::Context;
use embedded_graphics::{
    pixelcolor::Rgb888,
    prelude::{RgbColor, WebColors},
};
use serde_json::json;
use sparks_config::Settings;
use sparks_domain::{Candidate, DetectedFace};
use sparks_engine::FaceEngine;

use super::{canvas::Canvas, cli::ShowArgs};
use crate::{
    cli::Global,
    output::Output,
    wiring::{self, UsageError},
};

/// Draws the faces detected in a photo, with the names of the persons of the data folder.
pub async fn run(global: &Global, args: ShowArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let invalid = |reason: &dyn std::fmt::Display| UsageError(format!("{}: {reason}", args.photo.display()));
    let bytes = std::fs::read(&args.photo).map_err(|error| invalid(&error))?;
    let pixels = wiring::image_processor(&settings).decode(&bytes).map_err(|error| invalid(&error))?;
    let faces = wiring::local_engine(&settings)?.analyze(&pixels);
    let names = identify(&settings, &faces).await?;
    let mut canvas = Canvas::new(&pixels).ok_or_else(|| invalid(&"no pixels"))?;
    for (face, name) in faces.iter().zip(&names) {
        let (colour, name) = match name {
            Some(name) => (Rgb888::GREEN, format!("{name} ")),
            None => (Rgb888::CSS_ORANGE, String::new()),
        };
        canvas.draw_face(face, colour, &format!("{name}{:.2}", face.confidence));
    }
    let write_context = || format!("failed to write {}", args.output.display());
    std::fs::write(&args.output, canvas.to_png()?).with_context(write_context)?;
    if output.is_json() {
        for (face, name) in faces.iter().zip(&names) {
            output.json(&json!({
                "box": face.bounds, "landmarks": face.landmarks, "confidence": face.confidence,
                "quality": face.quality, "attributes": face.attributes, "name": name,
            }))?;
        }
    } else {
        print(&faces, &names, output)?;
        output.line(format!("wrote {}", args.output.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(faces: &[DetectedFace], names: &[Option<String>], output: &mut Output) -> std::io::Result<()> {
    let header = ["face", "name", "score", "size", "sharpness", "turn"];
    let rows = faces.iter().zip(names).enumerate().map(|(n, (face, name))| {
        let (size, sharpness) = (face.quality.size, face.quality.sharpness);
        vec![
            n.to_string(),
            name.clone().unwrap_or_else(|| "-".into()),
            format!("{:.2}", face.confidence),
            format!("{size:.0}"),
            format!("{sharpness:.2}"),
            face.quality.turn.map(|turn| format!("{turn:.2}")).unwrap_or_default(),
        ]
    });
    output.table(&header, rows.collect::<Vec<_>>())
}

/// Returns the name of the person that each face matches, if there is a data folder.
async fn identify(settings: &Settings, faces: &[DetectedFace]) -> anyhow::Result<Vec<Option<String>>> {
    if !settings.data.join("sparks.db").is_file() {
        return Ok(vec![None; faces.len()]);
    }
    let index = wiring::gallery_index(settings, &wiring::open(settings).await?).await?;
    let policy = wiring::gallery_policy(settings)?;
    let known = index.state();
    let found = known.gallery.search(faces, settings.faces.candidates, known.people.len());
    let name = |candidates: &Vec<Candidate>| {
        let person = policy.identify(candidates, found.persons)?.person()?;
        known.people.get(person).map(|person| person.display_name)
    };
    Ok(found.candidates.iter().map(name).collect())
}
