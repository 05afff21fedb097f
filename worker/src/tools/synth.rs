//! `sparks synth`

use std::{fs, process::ExitCode};

use anyhow::Context;
use serde_json::json;
use sparks_faces::AlbumSpec;

use super::cli::SynthArgs;
use crate::{
    output::{Output, progress_bar},
    wiring::UsageError,
};

/// Writes the photos, then `truth.json`, so that a folder with that file is complete.
pub fn run(args: SynthArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    if args.identities == 0 || args.faces_per_photo == 0 {
        return Err(UsageError("--identities and --faces-per-photo must be at least 1".into()).into());
    }
    if !(args.noise >= 0.0 && args.noise.is_finite()) {
        return Err(UsageError("--noise must be 0 or more".into()).into());
    }
    let spec = AlbumSpec {
        photos: args.photos,
        identities: args.identities,
        faces_per_photo: args.faces_per_photo,
        noise: args.noise,
        seed: args.seed,
    };
    let dir = &args.dir;
    fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;
    let bar = progress_bar(args.photos as u64, "photos");
    let mut truth = Vec::with_capacity(args.photos);
    for n in 0..args.photos {
        let photo = spec.photo(n);
        let path = dir.join(&photo.file_name);
        fs::write(&path, &photo.jpeg).with_context(|| format!("failed to write {}", path.display()))?;
        truth.push(json!({ "file": photo.file_name, "identities": photo.identities }));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let truth_file = dir.join("truth.json");
    fs::write(&truth_file, serde_json::to_string_pretty(&truth)?)
        .with_context(|| format!("failed to write {}", truth_file.display()))?;
    if output.is_json() {
        output
            .json(&json!({ "dir": dir.display().to_string(), "photos": args.photos, "identities": args.identities }))?;
    } else {
        output.line(format!("{} photos of {} identities in {}", args.photos, args.identities, dir.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
