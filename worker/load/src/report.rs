//! The report of a run: as JSON, as a page, or as rows for the terminal.

use serde_json::{Map, Value, json};

use super::{Check, CheckReport, Measurements};

/// Everything to report of a run.
pub struct LoadReport {
    /// The options of the run.
    pub options: Vec<ReportEntry>,
    /// The machine.
    pub machine: Vec<ReportEntry>,
    /// Throughput, latency and resource usage.
    pub measurements: Measurements,
    /// The checks of the final state.
    pub checks: CheckReport,
}

/// A named value of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportEntry {
    /// The name in JSON, which scripts rely on.
    pub key: &'static str,
    /// The name in tables.
    pub label: &'static str,
    /// The value.
    pub value: String,
}

impl ReportEntry {
    /// Creates an entry.
    pub fn new(key: &'static str, label: &'static str, value: impl Into<String>) -> Self {
        Self { key, label, value: value.into() }
    }
}

/// Violations of one check that are printed; JSON has all.
pub const LISTED_FAILURES: usize = 5;

impl LoadReport {
    /// Returns the measurements as labels and texts.
    pub fn measurement_rows(&self) -> Vec<(&'static str, String)> {
        let measured = &self.measurements;
        let latency = |percent: f64| measured.latency(percent).map_or_else(|| "-".into(), format_duration);
        let mut rows = vec![
            ("photos decided", measured.decided.to_string()),
            ("throughput", format!("{:.1} photos/s over {}", measured.rate(), format_duration(measured.seconds))),
            ("latency p50", latency(50.0)),
            ("latency p90", latency(90.0)),
            ("latency p99", latency(99.0)),
            ("latency max", latency(100.0)),
            ("maximum queue depth", format!("{} messages", measured.max_queue_depth())),
        ];
        if let Some(counters) = &measured.counters {
            rows.push(("commit conflicts", counters.conflicts.to_string()));
            rows.push(("retries after a failure", counters.retries.to_string()));
            rows.push(("waits for a row or an object", counters.not_yet.to_string()));
        }
        if !measured.usage.is_empty() {
            let cpu = measured.cpu_seconds();
            let per_photo = 1000.0 * cpu / measured.decided.max(1) as f64;
            rows.push(("CPU of all workers", format!("{cpu:.1} s, {per_photo:.0} ms per photo")));
            let peak = measured.peak_memory() as f64 / 1e6;
            rows.push(("peak memory of a worker", format!("up to {peak:.0} MB with its decoder processes")));
        }
        if let Some(growth) = measured.memory_growth() {
            rows.push(("growth of memory", format!("{:.0} kB a minute in the second half, all workers", growth / 1e3)));
        }
        rows
    }

    /// Returns the report for scripts.
    pub fn to_json(&self) -> Value {
        let named = |entries: &[ReportEntry]| -> Map<String, Value> {
            entries.iter().map(|entry| (entry.key.to_owned(), entry.value.clone().into())).collect()
        };
        let check = |check: &Check| json!({ "name": check.name, "holds": check.has_passed(), "about": check.about, "failures": check.failures });
        json!({
            "holds": self.checks.has_passed(),
            "run": named(&self.options),
            "machine": named(&self.machine),
            "figures": self.measurements.to_json(),
            "checks": self.checks.0.iter().map(check).collect::<Vec<_>>(),
        })
    }
}

/// Formats seconds with the digits that matter. Rounds before it splits into units, so that it never shows 60 seconds.
fn format_duration(seconds: f64) -> String {
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

/// Returns the number of cores, processor, memory and program version of this machine.
pub fn describe_machine() -> Vec<ReportEntry> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |file: &str, name: &str| -> Option<String> {
        let text = std::fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = read("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let memory = memory.map(|kib| ReportEntry::new("memory", "memory", format!("{:.1} GB", kib * 1024.0 / 1e9)));
    let processor = read("/proc/cpuinfo", "model name").map(|name| ReportEntry::new("processor", "processor", name));
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let version = ReportEntry::new("sparks", "sparks", format!("{} ({build})", env!("CARGO_PKG_VERSION")));
    let cores = ReportEntry::new("cores", "cores", cores.to_string());
    [cores].into_iter().chain(processor).chain(memory).chain([version]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_digits_that_matter() {
        let formatted = [0.0431, 0.9, 12.34, 125.0, 7380.0].map(format_duration);
        assert_eq!(formatted, ["43 ms", "900 ms", "12.3 s", "2 min 05 s", "2 h 03 min"]);
        let rounded = [0.9996, 99.96, 119.7, 3599.6, 7199.0].map(format_duration);
        assert_eq!(rounded, ["1.0 s", "1 min 40 s", "2 min 00 s", "1 h 00 min", "2 h 00 min"]);
    }
}
