//! The real binary on a large store: its time, its CPU and its memory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::Value;

/// What a run of the binary took.
struct Run {
    wall: Duration,
    cpu: Duration,
    peak: u64,
    answer: Value,
}

/// Rebuilds a table that is right, and one whose rows of ours are gone.
pub fn rebuilds(data: &Path, photos: usize) {
    println!("rebuild of {photos} photos' events  (at most 60 s, 300 MB)");
    let right = run(data, &["rebuild"]);
    assert_eq!(right.answer["changed"], 0, "the filled store is what the log says");
    tell("  nothing to mend", &right);
    let database = Connection::open(data.join("sparks.db")).unwrap();
    let ours = "DELETE FROM items WHERE entityType LIKE 'TAGGING#%' OR entityType IN ('PERSON', 'UNKNOWN_PERSONS')";
    let deleted = database.execute(ours, []).unwrap();
    drop(database);
    let gone = run(data, &["rebuild"]);
    tell(&format!("  {deleted} rows gone"), &gone);
    assert_eq!(gone.answer["after"], right.answer["after"], "the same rows as before");
    println!();
}

/// Starts up, finds that there is nothing to do, and ends.
pub fn starts(data: &Path) {
    let photo = Path::new(env!("CARGO_MANIFEST_DIR")).join("photos/biden.jpg");
    run(data, &["ingest", photo.to_str().unwrap()]);
    println!("start, one duplicate, end  (at most 1 s, 60 MB)");
    tell("  ingest", &run(data, &["ingest", photo.to_str().unwrap()]));
}

fn tell(what: &str, run: &Run) {
    let (wall, cpu) = (run.wall.as_secs_f64(), run.cpu.as_secs_f64());
    println!("{what:<24} {wall:>7.2} s wall {cpu:>7.2} s CPU {:>5} MB at most", run.peak >> 20);
}

fn run(data: &Path, args: &[&str]) -> Run {
    let mut command = Command::new(binary());
    let started = Instant::now();
    command.arg("--data").arg(data).args(args).arg("--json").stdout(Stdio::piped());
    let process = command.spawn().unwrap();
    let proc = PathBuf::from(format!("/proc/{}", process.id()));
    let watch = std::thread::spawn(move || watch(&proc));
    let output = process.wait_with_output().unwrap();
    let wall = started.elapsed();
    assert!(output.status.success());
    let (cpu, peak) = watch.join().unwrap();
    Run { wall, cpu, peak, answer: serde_json::from_slice(&output.stdout).unwrap() }
}

/// The last that can be seen of a process: its CPU in ticks of 10 ms, and the most memory it had.
fn watch(proc: &Path) -> (Duration, u64) {
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

/// The binary, built with the profile of this benchmark.
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
