//! Runs the simulation for many seeds.

use std::{process::ExitCode, time::Instant};

use clap::Parser;
use sparks_simulation::{Contention, Crowd, Plan, run, shrink};

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
    /// Instead of a drawn plan, let this many workers meet new faces only, and print how often they conflict
    #[arg(long)]
    crowd: Option<usize>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(workers) = args.crowd {
        return meet(args.seed, workers);
    }
    let (started, mut deliveries, mut failed, mut seed) = (Instant::now(), 0, 0_u64, args.seed);
    loop {
        let mut report = run(&Plan::draw(seed), args.story);
        report.violations.retain(|violation| violation.contains(&args.only));
        report.story.iter().for_each(|line| println!("{line}"));
        deliveries += report.deliveries;
        if !report.violations.is_empty() {
            failed += 1;
            report.violations.iter().for_each(|violation| println!("seed {seed}: {violation}"));
            if !args.keep_going {
                tell(seed, &args.only);
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
        if deliveries >= args.deliveries.unwrap_or(0) {
            break;
        }
    }
    let (runs, seconds) = (seed - args.seed, started.elapsed().as_secs_f64());
    println!(
        "{deliveries} deliveries in {runs} runs (seeds {} to {}), {seconds:.1} s: {failed} runs violate an invariant",
        args.seed,
        seed - 1
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
