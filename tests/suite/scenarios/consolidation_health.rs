//! A worker that consolidates many new persons answers health checks meanwhile.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use sparks_tests::{
    new_persons::{DUPLICATES, commit_new_persons},
    worker::open,
};

use crate::harness::Platform;

/// Lets a worker consolidate this many persons. Returns the duration of each health check, in ascending order.
fn health_checks_during_consolidation(persons: u32) -> Vec<Duration> {
    let platform = Platform::new(0, 1);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { commit_new_persons(open(&platform.sparks.data()).store.as_ref(), persons).await });
    let worker = platform.worker(&[]);
    let (started, mut durations, mut quiet_since) = (Instant::now(), Vec::new(), Instant::now());
    let (mut merged, mut last_cpu) = (0, cpu_ticks(worker.process.id()));
    // Consolidation begins some seconds after the start, and uses a core until it ends.
    while started.elapsed() < Duration::from_secs(15) || quiet_since.elapsed() < Duration::from_secs(10) {
        let check = Instant::now();
        assert_eq!(worker.get("/healthz").0, 200);
        durations.push(check.elapsed());
        if durations.len() % 50 == 0 {
            let found = platform.sparks.database().query_row(
                "SELECT count(*) FROM log WHERE event_type = 'PersonsMerged'",
                [],
                |row| row.get::<_, i64>(0),
            );
            let cpu = cpu_ticks(worker.process.id());
            if found.as_ref().is_ok_and(|found| *found > merged) || cpu > last_cpu + 20 {
                quiet_since = Instant::now();
            }
            (merged, last_cpu) = (found.unwrap_or(merged), cpu);
        }
        assert!(started.elapsed() < Duration::from_secs(1800), "consolidation does not end");
        sleep(Duration::from_millis(20));
    }
    assert!(merged >= i64::from(persons / DUPLICATES / 2), "only {merged} of {persons} persons were merged");
    durations.sort_unstable();
    let (count, seconds) = (durations.len(), started.elapsed().as_secs());
    let of = |share: f64| durations[((count - 1) as f64 * share) as usize];
    println!(
        "{persons} persons, {merged} merged in {seconds} s; {count} health checks: median {:?}, 99% {:?}, longest {:?}",
        of(0.5),
        of(0.99),
        of(1.0)
    );
    durations
}

/// Returns the CPU time that a process has used.
fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 1..].split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
#[ignore = "takes minutes"]
fn health_checks_take_milliseconds_while_20000_persons_are_consolidated() {
    let durations = health_checks_during_consolidation(20_000);
    let usual = durations[(durations.len() - 1) * 99 / 100];
    assert!(usual < Duration::from_millis(100), "one in a hundred health checks takes over {usual:?}");
}
