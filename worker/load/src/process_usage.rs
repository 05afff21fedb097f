//! CPU time and memory of worker processes, from `/proc`.

use std::{collections::HashMap, fs};

/// CPU time and memory of a worker and its decoder processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessUsage {
    /// Seconds of CPU time, user and system.
    pub cpu: f64,
    /// Resident bytes now.
    pub memory: u64,
    /// The sum of the peak resident bytes of each process, which need not have occurred at the same time.
    pub peak: u64,
}

/// The fields of `/proc/PID/stat` that are used.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stat {
    parent: u32,
    /// User and system time of the process and of its ended children, in ticks.
    ticks: u64,
}

impl ProcessUsage {
    /// Returns the usage of each of these processes with its children. An ended process counts as zero.
    pub fn of(workers: &[u32]) -> Vec<Self> {
        let stats = all_stats();
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

fn all_stats() -> HashMap<u32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// Parses the fields behind the process name, which may contain spaces and parentheses and ends with the last one.
fn parse_stat(line: &str) -> Option<Stat> {
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
    fn a_process_name_may_contain_parentheses() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 1 0 99";
        assert_eq!(parse_stat(line), Some(Stat { parent: 7, ticks: 50 }));
        assert_eq!(parse_stat("42 (a"), None);
    }

    #[test]
    fn this_process_has_usage() {
        let usage = ProcessUsage::of(&[std::process::id(), u32::MAX]);
        assert!(usage[0].memory > 0 && usage[0].peak > 0, "{usage:?}");
        assert_eq!(usage[1], ProcessUsage::default(), "no process has this ID");
    }
}
