//! How much memory a command takes, with all processes that it starts.

use std::{
    fs,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

const PAUSE: Duration = Duration::from_millis(5);

/// The most memory that the process and its children ever had at once, in bytes, and what it printed. Pages they share
/// count once.
pub fn run_watched(mut command: Command) -> (u64, Output) {
    let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = process.id();
    let watch = thread::spawn(move || {
        let mut peak = 0;
        loop {
            let sum = family(pid).into_iter().filter_map(memory).sum::<u64>();
            if sum == 0 {
                return peak;
            }
            peak = peak.max(sum);
            thread::sleep(PAUSE);
        }
    });
    let output = process.wait_with_output().unwrap();
    (watch.join().unwrap(), output)
}

/// The process, its children, theirs and so on, as far as they are there.
fn family(oldest: u32) -> Vec<u32> {
    let mut found = vec![oldest];
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

/// Nothing of a process that has ended.
fn memory(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("Pss:"))?.split_whitespace().next()?;
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}
