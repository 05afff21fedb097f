//! `sparks setup`

use std::process::ExitCode;

use serde_json::json;
use sparks_aws::ResourceStatus;
use sparks_config::Backend;

use crate::{
    cli::{Global, SetupArgs},
    output::Output,
    wiring::{self, UsageError},
};

/// Creates missing cloud resources.
pub async fn run(global: &Global, args: SetupArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let collection = wiring::rekognition_collection(&settings)?;
    if settings.backend != Backend::Aws && collection.is_none() {
        let message = "a data folder needs no setup; for the cloud set backend = \"aws\", as config/aws.toml does";
        return Err(UsageError(message.into()).into());
    }
    let (mut setup, resources) = wiring::setup(&settings, args.dry_run).await;
    let mut result = match settings.backend {
        Backend::Aws => setup.all(&resources).await,
        Backend::Embedded => Ok(()),
    };
    if let (Ok(()), Some(collection)) = (&result, collection) {
        result = setup.face_collection(collection).await;
    }
    let reports = setup.into_reports();
    for report in &reports {
        match output.is_json() {
            true => output.json(&json!({ "what": report.resource, "state": report.status.json_value() }))?,
            false => output.line(format!("{:<8} {}", report.status, report.resource))?,
        }
    }
    result?;
    let is_missing = reports.iter().any(|report| report.status == ResourceStatus::Missing);
    Ok(if is_missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
