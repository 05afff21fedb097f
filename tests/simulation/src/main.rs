//! Runs the simulation for many seeds.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    process::ExitCode,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use sparks_simulation::{Contention, Crowd, Plan, Report, run, shrink};

/// Simulate many workers, a platform and an operator with faults, and check that nothing is lost
///
/// Each seed is one run, in virtual time. A seed that violates an invariant is printed with the shortest story found.
///
/// Examples:
///   cargo run --release -p sparks-simulation -- --deliveries 1000000
///   cargo run --release -p sparks-simulation -- --seed 42 --story
///   cargo run --release -p sparks-simulation -- --crowd 200
#[derive(Parser)]
#[command(verbatim_doc_comment)]
struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this many deliveries of messages to workers; without it, only the first seed is run
    #[arg(long)]
    deliveries: Option<u64>,
    /// Print what happened in the first seed
    #[arg(long)]
    story: bool,
    /// Count only violations that contain this text
    #[arg(long, default_value = "")]
    only: String,
    /// Continue after a violation
    #[arg(long)]
    keep_going: bool,
    /// The number of seeds that are run at once [default: the number of cores]; the result does not depend on it
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// Instead of a drawn plan, let this many workers meet new faces only, and print how often they conflict
    #[arg(long)]
    crowd: Option<usize>,
}

/// The time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);

/// What all seeds so far amount to.
struct Tally {
    started: Instant,
    runs: u64,
    deliveries: u64,
    failed: u64,
}

impl Tally {
    fn rate(&self) -> f64 {
        self.deliveries as f64 / self.started.elapsed().as_secs_f64()
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(workers) = args.crowd {
        return meet(args.seed, workers);
    }
    let mut tally = Tally { started: Instant::now(), runs: 0, deliveries: 0, failed: 0 };
    let first_failed = run_seeds(&args, &mut tally);
    if let Some(seed) = first_failed.filter(|_| !args.keep_going) {
        tell(seed, &args.only);
        return ExitCode::FAILURE;
    }
    let Tally { started, runs, deliveries, failed } = tally;
    println!(
        "{deliveries} deliveries in {runs} runs (seeds {} to {}), {:.1} s: {failed} runs violate an invariant",
        args.seed,
        args.seed + runs - 1,
        started.elapsed().as_secs_f64(),
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs seeds on several threads, and counts them in their order, so that the result does not depend on the number of threads.
/// Returns the first seed that violates an invariant.
fn run_seeds(args: &Args, tally: &mut Tally) -> Option<u64> {
    let jobs = args.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let (next_seed, is_done) = (AtomicU64::new(args.seed), AtomicBool::new(false));
    let (sender, reports) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..if args.deliveries.is_some() { jobs } else { 1 } {
            let (sender, next_seed, is_done) = (sender.clone(), &next_seed, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    let seed = next_seed.fetch_add(1, Ordering::Relaxed);
                    let report = run(&Plan::draw(seed), args.story && seed == args.seed);
                    drop(sender.send((seed, report)));
                }
            });
        }
        let first_failed = count_in_order(args, tally, &reports);
        is_done.store(true, Ordering::Relaxed);
        first_failed
    })
}

/// Counts the reports in the order of their seeds, until there are enough.
fn count_in_order(args: &Args, tally: &mut Tally, reports: &mpsc::Receiver<(u64, Report)>) -> Option<u64> {
    let (mut early, mut first_failed, mut told) = (BTreeMap::new(), None, Instant::now());
    for (seed, report) in reports {
        early.insert(seed, report);
        while let Some(mut report) = early.remove(&(args.seed + tally.runs)) {
            let seed = args.seed + tally.runs;
            report.violations.retain(|violation| violation.contains(&args.only));
            report.story.iter().for_each(|line| println!("{line}"));
            report.violations.iter().for_each(|violation| println!("seed {seed}: {violation}"));
            tally.runs += 1;
            tally.deliveries += report.deliveries;
            if !report.violations.is_empty() {
                tally.failed += 1;
                first_failed.get_or_insert(seed);
            }
            let has_failed = first_failed.is_some() && !args.keep_going;
            if has_failed || tally.deliveries >= args.deliveries.unwrap_or(0) {
                return first_failed;
            }
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            let rate = tally.rate();
            let Tally { runs, deliveries, failed, .. } = tally;
            eprintln!("{deliveries} deliveries in {runs} runs, {rate:.0} a second, {failed} runs failed");
        }
    }
    first_failed
}

/// Lets workers meet new faces only, and prints how often they conflict.
fn meet(seed: u64, workers: usize) -> ExitCode {
    let mut is_violated = false;
    for crowd in Crowd::ALL {
        let report = run(&Plan::crowd(seed, workers, crowd), false);
        let Contention { commits, identity_conflicts, photo_conflicts, new_persons, drained } = report.contention;
        let photos = Plan::crowd_photos(workers);
        println!(
            "{workers} workers, {photos} photos, {crowd:?}: {new_persons} new persons, {:.2} conflicts per new person ({identity_conflicts} \
             over persons, {photo_conflicts} over photos), {:.2} commits and {:.2} deliveries per photo, drained after {:.0} s",
            identity_conflicts as f64 / new_persons.max(1) as f64,
            commits as f64 / photos as f64,
            report.deliveries as f64 / photos as f64,
            drained.as_secs_f64(),
        );
        report.violations.iter().take(10).for_each(|violation| println!("{violation}"));
        is_violated |= !report.violations.is_empty();
    }
    if is_violated { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints the shortest story of a failing seed.
fn tell(seed: u64, only: &str) {
    let plan = shrink(&Plan::draw(seed), |violation| violation.contains(only));
    let report = run(&plan, true);
    println!("\nThe shortest plan found that fails:\n{plan}\n\nWhat happens:");
    report.story.iter().for_each(|line| println!("{line}"));
    println!("\nViolations:");
    report.violations.iter().for_each(|violation| println!("  {violation}"));
}
