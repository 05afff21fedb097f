//! Load tests that last as long as an operator likes, and what they must show.

use serde_json::Value;

/// The part of the workers' memory by which it may grow in a minute: more is a leak.
const MAX_GROWTH_PER_MINUTE: f64 = 0.005;

/// Returns the options of `sparks load` for a run of `SPARKS_TEST_SECONDS`, a minute by default.
pub fn load_options(photos_per_second: u64) -> Vec<String> {
    let seconds = std::env::var("SPARKS_TEST_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let photos = (seconds * photos_per_second).to_string();
    let rate = format!("{photos_per_second}/s");
    let options = ["--photos", &photos, "--rate", &rate, "--identities", "100", "--workers", "2", "--json"];
    let faults = ["--duplicates", "10%", "--corrupt", "2%", "--shuffle"];
    ["load"].iter().chain(&options).chain(&faults).map(|option| (*option).to_owned()).collect()
}

/// Asserts that a load test passed, without dead letters, and that the memory of its workers does not grow.
pub fn assert_steady(report: &Value) {
    let figures = &report["figures"];
    let memory: Vec<u64> =
        figures["samples"].as_array().expect("samples").iter().filter_map(|s| s["memory_bytes"].as_u64()).collect();
    let quarter = |n: usize| {
        let part = &memory[memory.len() * n / 4..memory.len() * (n + 1) / 4];
        part.iter().sum::<u64>() / 1_000_000 / part.len().max(1) as u64
    };
    println!(
        "{} photos in {} s, MB of all workers by quarter: {:?}, growth in the second half {} bytes a minute, CPU {} s, conflicts {}",
        figures["settled"],
        figures["seconds"],
        [0, 1, 2, 3].map(quarter),
        figures["memory_bytes_per_minute"],
        figures["cpu_seconds"],
        figures["conflicts"],
    );
    assert_eq!(report["holds"], true, "{}", report["checks"]);
    let growth = figures["memory_bytes_per_minute"].as_f64().expect("enough samples for the growth of memory");
    let most = memory.iter().max().map_or(0.0, |most| *most as f64) * MAX_GROWTH_PER_MINUTE;
    assert!(growth < most, "memory grows by {growth} bytes a minute, at most {most} is allowed");
}
