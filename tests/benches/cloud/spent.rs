//! What processes have spent at work.

use std::{collections::BTreeMap, fs};

/// CPU time of this benchmark and of all that it has started, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// The workers themselves.
    pub workers: f64,
    /// The processes in which workers decode.
    pub darkrooms: f64,
    /// Services in processes of their own.
    pub services: f64,
    /// This process, with everything that stands between workers and services.
    pub here: f64,
    /// What share of all cores was at work, for whomever.
    pub cores: f64,
    /// What all cores have spent at work, and in all.
    ticks: (f64, f64),
}

impl Spent {
    /// So far.
    pub fn so_far() -> Self {
        let (all, here) = (processes(), std::process::id());
        let is_ours = |id: u32| all.get(&id).is_some_and(|process| process.parent == here);
        let mut spent = Self { ticks: ticks(), ..Self::default() };
        for (id, process) in &all {
            let whose = match process.parent {
                _ if *id == here => &mut spent.here,
                parent if parent == here && process.name == "sparks" => &mut spent.workers,
                parent if parent == here => &mut spent.services,
                parent if is_ours(parent) => &mut spent.darkrooms,
                _ => continue,
            };
            *whose += process.seconds;
        }
        spent
    }

    /// Since then.
    pub fn since(&self, before: &Self) -> Self {
        let ticks = (self.ticks.0 - before.ticks.0, self.ticks.1 - before.ticks.1);
        Self {
            workers: self.workers - before.workers,
            darkrooms: self.darkrooms - before.darkrooms,
            services: self.services - before.services,
            here: self.here - before.here,
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

/// All processes, by number.
fn processes() -> BTreeMap<u32, Process> {
    let found = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.ok()?;
        let id = entry.file_name().to_str()?.parse().ok()?;
        Some((id, process(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
    });
    found.collect()
}

/// The process of `/proc/ID/stat`. Its name stands in parentheses, and may have some in itself.
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

/// What all cores have spent at work, and in all, since the machine started.
fn ticks() -> (f64, f64) {
    let all = fs::read_to_string("/proc/stat").unwrap();
    let spent: Vec<f64> = all.lines().next().unwrap().split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect();
    let whole: f64 = spent.iter().sum();
    (whole - spent[3] - spent[4], whole)
}
