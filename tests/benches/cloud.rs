//! Whether workers in the cloud are in each other's way: `cargo bench -p sparks-tests --bench cloud`.
//!
//! Every request to the emulator takes 20 ms on its way, or 80, and nobody looks for faces. The same queue is worked off by one
//! worker and by eight, in turns; what counts is photos a second between the first commit and the last.
//!
//! The emulator is one process on the same cores, and a photo is about ten requests to it, so what is measured is both. The longer
//! requests are on their way, the less the emulator matters; how busy the cores were stands beside each figure.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on says so by panicking")]

#[path = "../suite/cloud/account.rs"]
#[allow(dead_code, reason = "tests need more of it")]
mod account;

use std::time::Duration;

use account::{Account, Running};
use sparks_domain::{Event, Position};
use sparks_engine::Store;
use sparks_tests::{
    album::{Photo, photo},
    proxy::Proxy,
};

const LATENCIES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(80)];
const WORKERS: usize = 8;
/// Photos for each worker.
const SHARE: usize = 60;

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` asks for no more than that it runs.
    let quick = std::env::args().any(|arg| arg == "--test");
    let (rounds, share) = if quick { (1, 3) } else { (3, SHARE) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for latency in LATENCIES {
        println!("photos a second, {} ms a request", latency.as_millis());
        let mut ratios = Vec::new();
        for round in 1..=rounds {
            let (one, idle) = runtime.block_on(speed(1, share, latency));
            let (many, busy) = runtime.block_on(speed(WORKERS, share, latency));
            ratios.push(many / one);
            println!(
                "round {round}: 1 worker {one:6.2}, cores {idle:3.0}% busy   {WORKERS} workers {many:6.2}, cores {busy:3.0}% \
                 busy   ratio {:5.2}",
                many / one
            );
        }
        ratios.sort_by(f64::total_cmp);
        let median = ratios[ratios.len() / 2];
        println!("median ratio {median:.2}, which is {:.2} of {WORKERS}", median / WORKERS as f64);
    }
}

/// Photos a second of so many workers, with as many photos for each, and how busy the cores were, in percent.
async fn speed(workers: usize, share: usize, latency: Duration) -> (f64, f64) {
    let account = Account::new(&[("SPARKS_AWS_LANES", "64"), ("SPARKS_FACES_ANALYZER", "off")]).await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    let photos: Vec<Photo> = (0..(workers * share) as u64).map(|n| photo(n, &[])).collect();
    account.upload_all(&photos).await;
    proxy.set_latency(latency);
    let start = || Running::start(&account, [("SPARKS_AWS_ENDPOINT", proxy.endpoint())]);
    let running: Vec<Running> = (0..workers).map(|_| start()).collect();
    let before = ticks();
    account.until(photos.len()).await;
    let after = ticks();
    drop(running);
    let log = account.store.read_log(&Position::default(), 100_000).await.unwrap();
    let processed = log.iter().filter(|recorded| matches!(recorded.event, Event::PhotoProcessed(_)));
    let mut times: Vec<i64> = processed.map(|recorded| recorded.when.as_millis()).collect();
    times.sort_unstable();
    // While they start and when they run out of work, not all of them work.
    let busy = &times[times.len() / 8..times.len() * 7 / 8];
    let seconds = (busy[busy.len() - 1] - busy[0]) as f64 / 1000.0;
    let share = (after.0 - before.0) / (after.1 - before.1);
    ((busy.len() - 1) as f64 / seconds, share * 100.0)
}

/// What all cores have spent at work, and in all, since the machine started.
fn ticks() -> (f64, f64) {
    let all = std::fs::read_to_string("/proc/stat").unwrap();
    let spent: Vec<f64> = all.lines().next().unwrap().split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect();
    let whole: f64 = spent.iter().sum();
    (whole - spent[3] - spent[4], whole)
}
