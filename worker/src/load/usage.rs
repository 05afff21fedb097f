//! What processes take, as the system tells.

use std::{collections::HashMap, fs};

/// What a worker has taken so far, with the processes that decode for it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Seconds of computing, user and system.
    pub cpu: f64,
    /// Bytes in memory now.
    pub memory: u64,
    /// The most bytes that each of them ever had in memory, which need not have been at the same moment.
    pub peak: u64,
}

/// A line of `/proc/PID/stat`, as far as we care.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stat {
    parent: u32,
    /// User, system, and both of children that have ended, in ticks.
    ticks: u64,
}

impl Usage {
    /// What these processes have taken, each with its children. One that has ended took nothing that is still to be seen.
    pub fn of(workers: &[u32]) -> Vec<Self> {
        let stats = all();
        let mut usage: HashMap<u32, Self> = workers.iter().map(|pid| (*pid, Self::default())).collect();
        for (pid, stat) in &stats {
            let owner = if usage.contains_key(pid) { *pid } else { stat.parent };
            let Some(sum) = usage.get_mut(&owner) else { continue };
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            sum.cpu += stat.ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
            sum.memory += kib(&status, "VmRSS:") << 10;
            sum.peak += kib(&status, "VmHWM:") << 10;
        }
        workers.iter().map(|pid| usage.get(pid).copied().unwrap_or_default()).collect()
    }
}

fn all() -> HashMap<u32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// The name, which may hold anything, ends with the last parenthesis.
fn stat(line: &str) -> Option<Stat> {
    let fields: Vec<&str> = line[line.rfind(')')? + 1..].split_whitespace().collect();
    let number = |n: usize| fields.get(n)?.parse::<u64>().ok();
    let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
    Some(Stat { parent: u32::try_from(number(1)?).ok()?, ticks })
}

fn kib(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 1 0 99";
        assert_eq!(stat(line), Some(Stat { parent: 7, ticks: 50 }));
        assert_eq!(stat("42 (a"), None);
    }

    #[test]
    fn this_process_takes_something() {
        let usage = Usage::of(&[std::process::id(), u32::MAX]);
        assert!(usage[0].memory > 0 && usage[0].peak > 0, "{usage:?}");
        assert_eq!(usage[1], Usage::default(), "nobody has this number");
    }
}
