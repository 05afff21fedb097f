//! Scaling of workers on AWS: `cargo bench -p sparks-tests --bench cloud`.
//!
//! Every request to every service has a latency of 20 ms, and no faces are analyzed. One worker and eight workers process the
//! same queue alternately; the result is the number of photos per second between the first commits and the last. Workers are
//! independent processes with the same settings.
//!
//! Everything shares the cores of one machine, so services are as cheap as possible: DynamoDB is Dynoxide, which is installed under
//! `target/`, and the others are in this process. The report also has CPU time per photo and the load of the cores: cores that
//! are always busy limit the result.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap ends the benchmark")]

#[path = "cloud/cpu_time.rs"]
mod cpu_time;
#[path = "cloud/environment.rs"]
mod environment;
#[path = "cloud/services.rs"]
mod services;

use std::time::Duration;

use cpu_time::CpuTime;
use environment::Environment;
use sparks_tests::album::{Photo, photo};

const LATENCY: Duration = Duration::from_millis(20);
const WORKERS: usize = 8;
/// Photos per worker.
const PHOTOS_PER_WORKER: usize = 100;

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` passes --test and only checks that it runs.
    let quick = std::env::args().any(|arg| arg == "--test");
    let (rounds, share) = if quick { (1, 3) } else { (5, PHOTOS_PER_WORKER) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{} ms per request, {share} photos per worker; CPU time per photo of the worker,", LATENCY.as_millis());
    println!("its decoders, DynamoDB, and all other services with the proxies\n");
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

/// Returns the photos per second of this many workers, with this many photos per worker.
async fn speed(workers: usize, share: usize) -> f64 {
    let environment = Environment::new(LATENCY).await;
    let photos: Vec<Photo> = (0..(workers * share) as u64).map(|n| photo(n, &[])).collect();
    environment.upload(&photos).await;
    let before = CpuTime::now();
    let running: Vec<_> = (0..workers).map(|_| environment.start_worker()).collect();
    environment.wait_for_photos(photos.len()).await;
    let cpu = CpuTime::now().since(&before);
    let requests = environment.take_requests();
    drop(running);

    let times = environment.commits(photos.len()).await;
    // At the start and at the end not all workers are busy.
    let busy = &times[times.len() / 8..times.len() * 7 / 8];
    let seconds = (busy[busy.len() - 1] - busy[0]) as f64 / 1000.0;
    let speed = (busy.len() - 1) as f64 / seconds;
    let per_photo = |n: usize| n as f64 / photos.len() as f64;
    let commits = requests.iter().filter(|target| target.ends_with(".TransactWriteItems")).count();
    let [worker, decoder, dynamo, own] =
        [cpu.workers, cpu.decoders, cpu.services, cpu.own].map(|seconds| seconds * 1000.0 / photos.len() as f64);
    println!(
        "{workers} workers: {speed:5.2} photos per second; {worker:.1} + {decoder:.1} + {dynamo:.1} + {own:.1} ms of CPU time, {:.1} requests, \
         {:.2} conflicts per photo; cores {:.0}% busy",
        per_photo(requests.len()),
        per_photo(commits - photos.len()),
        cpu.cores * 100.0,
    );
    speed
}
