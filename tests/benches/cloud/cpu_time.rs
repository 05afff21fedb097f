//! CPU time of processes.

use std::{collections::BTreeMap, fs};

/// CPU time of this benchmark and of all processes that it has started, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuTime {
    /// The workers.
    pub workers: f64,
    /// The decoder processes of the workers.
    pub decoders: f64,
    /// Services that are processes.
    pub services: f64,
    /// This process, with the proxies and the other services.
    pub own: f64,
    /// The utilization of all cores, 0 to 1.
    pub cores: f64,
    /// Busy and total ticks of all cores.
    ticks: (f64, f64),
}

impl CpuTime {
    /// Returns the CPU time so far.
    pub fn now() -> Self {
        let (all, own) = (processes(), std::process::id());
        let is_child = |id: u32| all.get(&id).is_some_and(|process| process.parent == own);
        let mut total = Self { ticks: ticks(), ..Self::default() };
        for (id, process) in &all {
            let share = match process.parent {
                _ if *id == own => &mut total.own,
                parent if parent == own && process.name == "sparks" => &mut total.workers,
                parent if parent == own => &mut total.services,
                parent if is_child(parent) => &mut total.decoders,
                _ => continue,
            };
            *share += process.seconds;
        }
        total
    }

    /// Returns the CPU time since an earlier measurement.
    pub fn since(&self, before: &Self) -> Self {
        let ticks = (self.ticks.0 - before.ticks.0, self.ticks.1 - before.ticks.1);
        Self {
            workers: self.workers - before.workers,
            decoders: self.decoders - before.decoders,
            services: self.services - before.services,
            own: self.own - before.own,
            cores: ticks.0 / ticks.1,
            ticks,
        }
    }
}

struct Process {
    name: String,
    parent: u32,
    seconds: f64,
}

/// Returns all processes by ID.
fn processes() -> BTreeMap<u32, Process> {
    let found = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.ok()?;
        let id = entry.file_name().to_str()?.parse().ok()?;
        Some((id, process(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
    });
    found.collect()
}

/// Parses `/proc/ID/stat`. The name is in parentheses and may contain parentheses.
fn process(stat: &str) -> Option<Process> {
    let (head, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |n: usize| fields.get(n)?.parse::<f64>().ok();
    Some(Process {
        name: head.split_once('(')?.1.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        seconds: (ticks(11)? + ticks(12)?) / rustix::param::clock_ticks_per_second() as f64,
    })
}

/// Returns busy and total ticks of all cores since the machine started.
fn ticks() -> (f64, f64) {
    let all = fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<f64> = all.lines().next().unwrap().split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect();
    let total: f64 = ticks.iter().sum();
    // Fields 3 and 4 are idle and iowait.
    (total - ticks[3] - ticks[4], total)
}
