//! `sparks doctor`

mod address;
mod machine;
mod pictures;
mod services;

use std::process::ExitCode;

use indicatif::ProgressBar;
use serde_json::json;
use sparks_config::{Backend, Settings};
use sparks_engine::{Finding, State};

use crate::{
    cli::{DoctorArgs, Global},
    output::{Output, harmless, progress},
    wiring,
};

/// Steps that need no service.
const OFFLINE: u64 = 3;

/// Looks whether a worker would work.
pub async fn run(global: &Global, args: DoctorArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    wiring::policy(&settings)?;
    let bar = progress(OFFLINE + if args.offline { 0 } else { sparks_aws::Doctor::STEPS }, "looking");
    let mut findings = vec![Finding::ok("settings", from(global))];
    findings.extend(offline(&settings, &bar).await?);
    if !args.offline {
        findings.extend(address::examine(&settings.run.listen).await);
        findings.extend(online(&settings, &bar).await?);
        findings.extend(services::examine(&settings).await?);
    }
    bar.finish_and_clear();
    for finding in &findings {
        print(finding, output)?;
    }
    conclude(&findings, output)
}

fn from(global: &Global) -> String {
    let file = global.config.as_ref().map(|file| file.display().to_string());
    file.map_or_else(|| "defaults and environment".to_owned(), |file| format!("{file}, over the defaults"))
}

/// What needs no service. Pictures are made on a thread that may wait.
async fn offline(settings: &Settings, bar: &ProgressBar) -> anyhow::Result<Vec<Finding>> {
    let mut findings = machine::examine(settings);
    bar.inc(1);
    let (mine, bar) = (settings.clone(), bar.clone());
    let made = tokio::task::spawn_blocking(move || {
        let mut findings = Vec::new();
        let pixels = pictures::darkroom(&mine, &mut findings);
        bar.inc(1);
        pictures::faces(&mine, pixels, &mut findings);
        bar.inc(1);
        findings
    });
    findings.extend(made.await?);
    Ok(findings)
}

async fn online(settings: &Settings, bar: &ProgressBar) -> anyhow::Result<Vec<Finding>> {
    match settings.backend {
        Backend::Aws => {
            let (doctor, estate) = wiring::doctor(settings).await;
            let next = |what: &'static str| {
                bar.set_message(what);
                bar.inc(1);
            };
            Ok(doctor.examine(&estate, next).await)
        }
        Backend::Embedded => {
            let mut findings = vec![machine::room(&settings.data)];
            let doctor = sparks_embedded::Doctor::new(&settings.data);
            findings.extend(tokio::task::spawn_blocking(move || doctor.examine()).await?);
            Ok(findings)
        }
    }
}

fn print(finding: &Finding, output: &mut Output) -> anyhow::Result<()> {
    let Finding { state, what, seen, remedy } = finding;
    if output.is_json() {
        output.json(&json!({ "state": state.name(), "what": what, "seen": seen, "remedy": remedy }))?;
        return Ok(());
    }
    let name = match (state, output.is_terminal() && std::env::var_os("NO_COLOR").is_none()) {
        (State::Ok, true) => format!("\x1b[32m{:<5}\x1b[0m", state.name()),
        (State::Warn, true) => format!("\x1b[33m{:<5}\x1b[0m", state.name()),
        (State::Fail, true) => format!("\x1b[31m{:<5}\x1b[0m", state.name()),
        (_, false) => format!("{:<5}", state.name()),
    };
    let remedy = remedy.as_ref().map(|remedy| format!(" -> {remedy}")).unwrap_or_default();
    output.line(format!("{name} {}", harmless(&format!("{what}: {seen}{remedy}"))))?;
    Ok(())
}

fn conclude(findings: &[Finding], output: &mut Output) -> anyhow::Result<ExitCode> {
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let (warnings, failures) = (count(State::Warn), count(State::Fail));
    if !output.is_json() {
        output.line(match (warnings, failures) {
            (0, 0) => "a worker would work here".to_owned(),
            (_, 0) => format!("a worker would work here; warnings: {warnings}"),
            _ => format!("a worker would not work here; failures: {failures}, warnings: {warnings}"),
        })?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
