//! `sparks setup`

use std::process::ExitCode;

use serde_json::json;
use sparks_aws::Done;
use sparks_config::Backend;

use crate::{
    cli::{Global, SetupArgs},
    output::Output,
    wiring::{self, WrongUse},
};

/// Makes what is missing in the cloud.
pub async fn run(global: &Global, args: SetupArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let collection = wiring::collection(&settings)?;
    if settings.backend != Backend::Aws && collection.is_none() {
        let what = "a data folder needs no setup; for the cloud set backend = \"aws\", as config/aws.toml does";
        return Err(WrongUse(what.into()).into());
    }
    let (mut setup, estate) = wiring::setup(&settings, args.dry_run).await;
    let mut done = match settings.backend {
        Backend::Aws => setup.all(&estate).await,
        Backend::Embedded => Ok(()),
    };
    if let (Ok(()), Some(collection)) = (&done, collection) {
        done = setup.collection(collection).await;
    }
    let steps = setup.into_steps();
    for step in &steps {
        match output.is_json() {
            true => output.json(&json!({ "what": step.what, "state": step.done.to_string() }))?,
            false => output.line(format!("{:<8} {}", step.done, step.what))?,
        }
    }
    done?;
    let is_missing = steps.iter().any(|step| step.done == Done::Wanted);
    Ok(if is_missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
