//! Time and memory of the binary on a large store.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::Value;

/// Measurements of a run of the binary.
struct Run {
    wall: Duration,
    cpu: Duration,
    peak: u64,
    output: Value,
}

/// Rebuilds a table without drift, and one whose person rows are deleted.
pub fn rebuilds(data: &Path, photos: usize) {
    println!("rebuild of the events of {photos} photos  (at most 60 s, 300 MB)");
    let unchanged = run(data, &["rebuild"]);
    assert_eq!(unchanged.output["changed"], 0, "the filled store has drift");
    report("  no drift", &unchanged);
    let database = Connection::open(data.join("sparks.db")).unwrap();
    let delete = "DELETE FROM items WHERE entityType LIKE 'TAGGING#%' OR entityType IN ('PERSON', 'UNKNOWN_PERSONS')";
    let deleted = database.execute(delete, []).unwrap();
    drop(database);
    let restored = run(data, &["rebuild"]);
    report(&format!("  {deleted} rows deleted"), &restored);
    assert_eq!(restored.output["after"], unchanged.output["after"], "the same rows as before");
    println!();
}

/// Measures an ingest of one duplicate.
pub fn starts(data: &Path) {
    let photo = Path::new(env!("CARGO_MANIFEST_DIR")).join("photos/biden.jpg");
    run(data, &["ingest", photo.to_str().unwrap()]);
    println!("start, one duplicate, end  (at most 1 s, 60 MB)");
    report("  ingest", &run(data, &["ingest", photo.to_str().unwrap()]));
}

fn report(what: &str, run: &Run) {
    let (wall, cpu) = (run.wall.as_secs_f64(), run.cpu.as_secs_f64());
    println!("{what:<24} {wall:>7.2} s wall {cpu:>7.2} s CPU {:>5} MB at most", run.peak >> 20);
}

fn run(data: &Path, args: &[&str]) -> Run {
    let mut command = Command::new(binary());
    let started = Instant::now();
    command.arg("--data").arg(data).args(args).arg("--json").stdout(Stdio::piped());
    let process = command.spawn().unwrap();
    let proc = PathBuf::from(format!("/proc/{}", process.id()));
    let measurement = std::thread::spawn(move || measure(&proc));
    let output = process.wait_with_output().unwrap();
    let wall = started.elapsed();
    assert!(output.status.success());
    let (cpu, peak) = measurement.join().unwrap();
    Run { wall, cpu, peak, output: serde_json::from_slice(&output.stdout).unwrap() }
}

/// Returns the CPU time of a process, in ticks of 10 ms, and its peak memory, as read last before its end.
fn measure(proc: &Path) -> (Duration, u64) {
    let (mut cpu, mut peak) = (Duration::ZERO, 0);
    while let (Ok(status), Ok(stat)) = (fs::read_to_string(proc.join("status")), fs::read_to_string(proc.join("stat")))
    {
        let Some(line) = status.lines().find(|line| line.starts_with("VmHWM")) else { break };
        peak = line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024;
        let after_name = stat.rsplit_once(')').unwrap().1;
        let ticks: u64 =
            after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        cpu = Duration::from_millis(ticks * 10);
        std::thread::sleep(Duration::from_millis(1));
    }
    (cpu, peak)
}

/// Returns the path of the binary, built with the profile of this benchmark.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(build)
}

fn build() -> PathBuf {
    let profile = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "sparks-worker"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
    profile.join("sparks")
}
