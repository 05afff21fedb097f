//! Prints the report of a load test.

use std::io;

use sparks_load::{Check, LISTED_FAILURES, LoadReport, ReportEntry};

use crate::output::Output;

/// Prints the report, as JSON or as text.
pub fn print(report: &LoadReport, output: &mut Output) -> io::Result<()> {
    if output.is_json() {
        return output.json(&report.to_json());
    }
    output.line("run")?;
    let option = |entry: &ReportEntry| vec![format!("  {}", entry.label), entry.value.clone()];
    output.columns(report.options.iter().map(option).collect::<Vec<_>>())?;
    output.line("\nmeasurements")?;
    let measurements = report.measurement_rows().into_iter().map(|(label, text)| vec![format!("  {label}"), text]);
    output.columns(measurements.collect::<Vec<_>>())?;
    output.line("\nchecks")?;
    let row = |check: &Check| vec![format!("  {}", mark(check)), check.name.into(), check.about.clone()];
    output.columns(report.checks.0.iter().map(row).collect::<Vec<_>>())?;
    for check in report.checks.0.iter().filter(|check| !check.has_passed()) {
        output.line(format!("\nfailed: {}", check.name))?;
        for failure in check.failures.iter().take(LISTED_FAILURES) {
            output.line(format!("  {failure}"))?;
        }
        if let Some(more) = check.failures.len().checked_sub(LISTED_FAILURES).filter(|more| *more > 0) {
            output.line(format!("  and {more} more"))?;
        }
    }
    output.line(format!("\n{}", report.checks.verdict()))
}

fn mark(check: &Check) -> &'static str {
    if check.has_passed() { "ok" } else { "FAILED" }
}
