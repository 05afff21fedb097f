//! What is told of a run: as a table, as JSON, or as a page.

use std::io;

use serde_json::{Map, Value, json};

use super::{Check, Figures, Outcome};
use crate::output::Output;

/// Everything there is to tell of a run.
pub struct Report {
    /// What was asked for, and of what.
    pub settings: Vec<(&'static str, String)>,
    /// What it was measured on.
    pub machine: Vec<(&'static str, String)>,
    /// What was measured.
    pub figures: Figures,
    /// Whether it is right.
    pub outcome: Outcome,
}

/// Failures of a check that are told to people; scripts get all.
pub const TOLD: usize = 5;

impl Report {
    /// For scripts, or for people.
    pub fn print(&self, output: &mut Output) -> io::Result<()> {
        if output.is_json() { output.json(&self.to_json()) } else { self.tell(output) }
    }

    /// The figures as names and texts, in the order in which they are told.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let figures = &self.figures;
        let seconds = |percent: f64| figures.latency(percent).map_or_else(|| "-".into(), duration);
        let mut rows = vec![
            ("photos decided", figures.settled.to_string()),
            ("throughput", format!("{:.1} photos/s over {}", figures.rate(), duration(figures.seconds))),
            ("latency p50", seconds(50.0)),
            ("latency p90", seconds(90.0)),
            ("latency p99", seconds(99.0)),
            ("latency max", seconds(100.0)),
            ("queue at its deepest", format!("{} messages", figures.deepest())),
        ];
        if let Some(counts) = &figures.counts {
            rows.push(("commits decided again", counts.conflicts.to_string()));
            rows.push(("failures tried again", counts.retries.to_string()));
            rows.push(("waits for a row or an object", counts.not_yet.to_string()));
        }
        if !figures.usage.is_empty() {
            let each = 1000.0 * figures.cpu() / figures.settled.max(1) as f64;
            rows.push(("CPU of all workers", format!("{:.1} s, {each:.0} ms a photo", figures.cpu())));
            let most = figures.peak() as f64 / 1e6;
            rows.push(("most memory of a worker", format!("up to {most:.0} MB with those that decode for it")));
        }
        rows
    }

    fn tell(&self, output: &mut Output) -> io::Result<()> {
        let pairs = |rows: &[(&str, String)]| -> Vec<Vec<String>> {
            rows.iter().map(|(name, text)| vec![format!("  {name}"), text.clone()]).collect()
        };
        output.line("run")?;
        output.columns(pairs(&self.settings))?;
        output.line("\nfigures")?;
        output.columns(pairs(&self.rows()))?;
        output.line("\noutcome")?;
        let row = |check: &Check| vec![format!("  {}", mark(check)), check.name.into(), check.about.clone()];
        output.columns(self.outcome.0.iter().map(row).collect::<Vec<_>>())?;
        for check in self.outcome.0.iter().filter(|check| !check.holds()) {
            output.line(format!("\nnot so: {}", check.name))?;
            for failure in check.failures.iter().take(TOLD) {
                output.line(format!("  {failure}"))?;
            }
            if let Some(more) = check.failures.len().checked_sub(TOLD).filter(|more| *more > 0) {
                output.line(format!("  and {more} more"))?;
            }
        }
        let verdict = if self.outcome.holds() { "everything is as it must be" } else { "the outcome is wrong" };
        output.line(format!("\n{verdict}"))
    }

    fn to_json(&self) -> Value {
        let named = |rows: &[(&str, String)]| -> Map<String, Value> {
            rows.iter().map(|(name, text)| (name.replace(' ', "_"), text.clone().into())).collect()
        };
        let check = |check: &Check| json!({ "name": check.name, "holds": check.holds(), "about": check.about, "failures": check.failures });
        json!({
            "holds": self.outcome.holds(),
            "run": named(&self.settings),
            "machine": named(&self.machine),
            "figures": self.figures.to_json(),
            "checks": self.outcome.0.iter().map(check).collect::<Vec<_>>(),
        })
    }
}

/// For eyes that go down the list.
fn mark(check: &Check) -> &'static str {
    if check.holds() { "ok" } else { "NO" }
}

/// A length of time with as many digits as matter. What is rounded is what is split: a minute has no sixtieth second.
pub fn duration(seconds: f64) -> String {
    let rounded = |unit: f64| (seconds / unit).round();
    let (millis, tenths, whole, minutes) = (rounded(0.001), rounded(0.1), rounded(1.0), rounded(60.0));
    if millis < 1000.0 {
        format!("{millis} ms")
    } else if tenths < 1000.0 {
        format!("{:.1} s", tenths / 10.0)
    } else if whole < 3600.0 {
        format!("{} min {:02} s", (whole / 60.0).floor(), whole % 60.0)
    } else {
        format!("{} h {:02} min", (minutes / 60.0).floor(), minutes % 60.0)
    }
}

/// What this machine is.
pub fn machine() -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |file: &str, name: &str| -> Option<String> {
        let text = std::fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = read("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let memory = memory.map(|kib| ("memory", format!("{:.1} GB", kib * 1024.0 / 1e9)));
    let processor = read("/proc/cpuinfo", "model name").map(|name| ("processor", name));
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let version = ("sparks", format!("{} ({build})", env!("CARGO_PKG_VERSION")));
    [("cores", cores.to_string())].into_iter().chain(processor).chain(memory).chain([version]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_as_many_digits_as_matter() {
        let told = [0.0431, 0.9, 12.34, 125.0, 7380.0].map(duration);
        assert_eq!(told, ["43 ms", "900 ms", "12.3 s", "2 min 05 s", "2 h 03 min"]);
        let nearly = [0.9996, 99.96, 119.7, 3599.6, 7199.0].map(duration);
        assert_eq!(nearly, ["1.0 s", "1 min 40 s", "2 min 00 s", "1 h 00 min", "2 h 00 min"]);
    }
}
