//! `sparks doctor`

mod face_services;
mod listen_address;
mod machine;
mod sample_photo;

use std::process::ExitCode;

use indicatif::ProgressBar;
use serde_json::json;
use sparks_config::{Backend, Settings};
use sparks_engine::{Finding, FindingStatus};

use crate::{
    cli::{DoctorArgs, Global},
    output::{Output, progress_bar, sanitize},
    wiring,
};

/// Progress steps that need no service.
const OFFLINE_STEPS: u64 = 3;

/// Checks whether a worker could run and prints the findings.
pub async fn run(global: &Global, args: DoctorArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    wiring::policy(&settings)?;
    let bar = progress_bar(OFFLINE_STEPS + if args.offline { 0 } else { sparks_aws::Doctor::STEPS }, "checking");
    let mut findings = vec![Finding::ok("settings", settings_origin(global))];
    findings.extend(check_offline(&settings, &bar).await?);
    if !args.offline {
        findings.extend(listen_address::check(&settings.run.listen).await);
        findings.extend(check_backend(&settings, &bar).await?);
        findings.extend(face_services::check(&settings).await?);
    }
    bar.finish_and_clear();
    for finding in &findings {
        print(finding, output)?;
    }
    print_summary(&findings, output)
}

fn settings_origin(global: &Global) -> String {
    let file = global.config.as_ref().map(|file| file.display().to_string());
    file.map_or_else(|| "built-in defaults and environment".to_owned(), |file| format!("{file} and built-in defaults"))
}

/// Checks the machine, the image processor and the face models. Image processing blocks, so it has its own thread.
async fn check_offline(settings: &Settings, bar: &ProgressBar) -> anyhow::Result<Vec<Finding>> {
    let mut findings = machine::check(settings);
    bar.inc(1);
    let (settings, bar) = (settings.clone(), bar.clone());
    let blocking = tokio::task::spawn_blocking(move || {
        let mut findings = Vec::new();
        let pixels = sample_photo::check_image_processor(&settings, &mut findings);
        bar.inc(1);
        sample_photo::check_face_models(&settings, pixels, &mut findings);
        bar.inc(1);
        findings
    });
    findings.extend(blocking.await?);
    Ok(findings)
}

/// Checks the cloud resources or the data folder.
async fn check_backend(settings: &Settings, bar: &ProgressBar) -> anyhow::Result<Vec<Finding>> {
    match settings.backend {
        Backend::Aws => {
            let (doctor, resources) = wiring::doctor(settings).await;
            let next = |what: &'static str| {
                bar.set_message(what);
                bar.inc(1);
            };
            Ok(doctor.examine(&resources, next).await)
        }
        Backend::Embedded => {
            let mut findings = vec![machine::check_disk_space(&settings.data)];
            let doctor = sparks_embedded::Doctor::new(&settings.data);
            findings.extend(tokio::task::spawn_blocking(move || doctor.examine()).await?);
            Ok(findings)
        }
    }
}

fn print(finding: &Finding, output: &mut Output) -> anyhow::Result<()> {
    let Finding { status, subject, observation, remedy } = finding;
    if output.is_json() {
        output.json(&json!({ "state": status.name(), "what": subject, "seen": observation, "remedy": remedy }))?;
        return Ok(());
    }
    let name = match (status, output.is_terminal() && std::env::var_os("NO_COLOR").is_none()) {
        (FindingStatus::Ok, true) => format!("\x1b[32m{:<5}\x1b[0m", status.name()),
        (FindingStatus::Warn, true) => format!("\x1b[33m{:<5}\x1b[0m", status.name()),
        (FindingStatus::Fail, true) => format!("\x1b[31m{:<5}\x1b[0m", status.name()),
        (_, false) => format!("{:<5}", status.name()),
    };
    let remedy = remedy.as_ref().map(|remedy| format!(" -> {remedy}")).unwrap_or_default();
    output.line(format!("{name} {}", sanitize(&format!("{subject}: {observation}{remedy}"))))?;
    Ok(())
}

/// Prints the summary and returns exit code 1 if any check failed.
fn print_summary(findings: &[Finding], output: &mut Output) -> anyhow::Result<ExitCode> {
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let (warnings, failures) = (count(FindingStatus::Warn), count(FindingStatus::Fail));
    if !output.is_json() {
        output.line(match (warnings, failures) {
            (0, 0) => "a worker can run here".to_owned(),
            (_, 0) => format!("a worker can run here; warnings: {warnings}"),
            _ => format!("a worker cannot run here; failures: {failures}, warnings: {warnings}"),
        })?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
