//! Peak memory of a command and all processes that it starts.

use std::{
    fs,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

const INTERVAL: Duration = Duration::from_millis(5);

/// Runs a command. Returns the peak memory of the process and its descendants in bytes, and its output. Shared pages
/// count once (proportional set size).
pub fn run_and_measure(mut command: Command) -> (u64, Output) {
    let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = process.id();
    let measurement = thread::spawn(move || {
        let mut peak = 0;
        loop {
            let sum = process_tree(pid).into_iter().filter_map(memory).sum::<u64>();
            if sum == 0 {
                return peak;
            }
            peak = peak.max(sum);
            thread::sleep(INTERVAL);
        }
    });
    let output = process.wait_with_output().unwrap();
    (measurement.join().unwrap(), output)
}

/// Returns the process and its running descendants.
fn process_tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(member) = found.get(next) {
        next += 1;
        // Children belong to the thread that started them.
        let Ok(threads) = fs::read_dir(format!("/proc/{member}/task")) else { continue };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    found
}

/// Returns the memory of a process in bytes, or `None` if it has ended.
fn memory(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("Pss:"))?.split_whitespace().next()?;
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}
