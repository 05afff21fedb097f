//! Whether workers in the cloud are in each other's way: `cargo bench -p sparks-tests --bench cloud`.
//!
//! Every request to every service takes 20 ms on its way, and nobody looks for faces. The same queue is worked off by one worker
//! and by eight, in turns; what counts is photos a second between the first commits and the last. Workers are processes with
//! the same settings, and know nothing of each other.
//!
//! All of it shares the cores of one machine, so services are as cheap as can be: DynamoDB is Dynoxide, which is installed under
//! `target/`, and the others are in this process. What a photo costs everybody, and how busy the cores were, stands beside each
//! figure: where they are busy all the time, they are what is measured.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on says so by panicking")]

#[path = "cloud/place.rs"]
mod place;
#[path = "cloud/services.rs"]
mod services;
#[path = "cloud/spent.rs"]
mod spent;

use std::time::Duration;

use place::Place;
use sparks_tests::album::{Photo, photo};
use spent::Spent;

const LATENCY: Duration = Duration::from_millis(20);
const WORKERS: usize = 8;
/// Photos for each worker.
const SHARE: usize = 100;

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` asks for no more than that it runs.
    let quick = std::env::args().any(|arg| arg == "--test");
    let (rounds, share) = if quick { (1, 3) } else { (5, SHARE) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{} ms a request, {share} photos for each worker; CPU a photo in the worker itself,", LATENCY.as_millis());
    println!("where it decodes, in DynamoDB, and in all other services with what stands before them\n");
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let [one, many] = [1, WORKERS].map(|workers| runtime.block_on(speed(workers, share)));
        println!("round {round}: ratio {:.2}\n", many / one);
        ratios.push(many / one);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!("median ratio {median:.2}, which is {:.2} of {WORKERS}  (at least 0.9)", median / WORKERS as f64);
}

/// Photos a second of so many workers, with as many photos for each.
async fn speed(workers: usize, share: usize) -> f64 {
    let place = Place::new(LATENCY).await;
    let photos: Vec<Photo> = (0..(workers * share) as u64).map(|n| photo(n, &[])).collect();
    place.upload(&photos).await;
    let before = Spent::so_far();
    let running: Vec<_> = (0..workers).map(|_| place.start_worker()).collect();
    place.until(photos.len()).await;
    let spent = Spent::so_far().since(&before);
    let requests = place.take_requests();
    drop(running);

    let times = place.commits(photos.len()).await;
    // While they start and when they run out of work, not all of them work.
    let busy = &times[times.len() / 8..times.len() * 7 / 8];
    let seconds = (busy[busy.len() - 1] - busy[0]) as f64 / 1000.0;
    let speed = (busy.len() - 1) as f64 / seconds;
    let a_photo = |n: usize| n as f64 / photos.len() as f64;
    let commits = requests.iter().filter(|target| target.ends_with(".TransactWriteItems")).count();
    let [worker, darkroom, dynamo, here] = [spent.workers, spent.darkrooms, spent.services, spent.here]
        .map(|seconds| seconds * 1000.0 / photos.len() as f64);
    println!(
        "{workers} at work: {speed:5.2} photos a second, {worker:.1} + {darkroom:.1} + {dynamo:.1} + {here:.1} ms of CPU, {:.1} requests, \
         {:.2} refused commits a photo; cores {:.0}% busy",
        a_photo(requests.len()),
        a_photo(commits - photos.len()),
        spent.cores * 100.0,
    );
    speed
}
