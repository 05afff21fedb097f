//! Cost of the embedded backend: `cargo bench -p sparks-tests --bench embedded [-- PHOTOS]`.
//!
//! Fills one store with 1,000 photos and one with 1,000,000 (or PHOTOS), processes more photos in both alternately, and
//! measures the CPU time of queue, log and projections; then starts and rebuilds the large one with the binary.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap ends the benchmark")]

#[path = "embedded/fill.rs"]
mod fill;
#[path = "embedded/photo.rs"]
mod photo;
#[path = "embedded/program.rs"]
mod program;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use photo::Arrival;
use rustix::time::{ClockId, clock_gettime};
use sparks_embedded::{Embedded, Submission};
use sparks_engine::{ArrivalOrder, Clock, Pipeline, Queue, Settlement, SystemClock};
use sparks_tests::worker::{FOLDER_CONFIG, photos_in};

const SMALL: usize = 1_000;
const ROUNDS: usize = 20;
const PHOTOS_PER_ROUND: usize = 100;

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` passes --test and only checks that it runs.
    let quick = std::env::args().any(|arg| arg == "--test");
    let requested = std::env::args().find_map(|arg| arg.parse().ok());
    let large = requested.unwrap_or(if quick { 2_000 } else { 1_000_000 });
    let folder = tempfile::tempdir_in(target()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();

    let (small_store, large_store) = (folder.path().join("small"), folder.path().join("large"));
    fill::fill(&small_store, SMALL);
    let filling = Instant::now();
    fill::fill(&large_store, large);
    println!("filled {large} photos in {:.0} s\n", filling.elapsed().as_secs_f64());

    runtime.block_on(commit_costs(&small_store, &large_store, large));
    program::rebuilds(&large_store, large);
    program::starts(&large_store);
}

/// Processes photos alternately in the small and the large store, so that other load on the machine affects both.
async fn commit_costs(small: &Path, large: &Path, large_size: usize) {
    let stores = [Store::open(small).await, Store::open(large).await];
    println!("CPU time of queue, log and projections, {} photos each, alternately", ROUNDS * PHOTOS_PER_ROUND);
    for arrival in [Arrival::Chronological, Arrival::Random] {
        let mut cpu = [Duration::ZERO; 2];
        for round in 0..=ROUNDS {
            for (store, cpu) in stores.iter().zip(&mut cpu) {
                let before = cpu_time();
                for n in 0..PHOTOS_PER_ROUND {
                    store.process(round * PHOTOS_PER_ROUND + n, arrival).await;
                }
                // The first round warms up caches.
                *cpu += if round == 0 { Duration::ZERO } else { cpu_time() - before };
            }
        }
        let [few, many] = cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / (ROUNDS * PHOTOS_PER_ROUND) as f64);
        println!("  photos arrive {}", arrival.description());
        println!("    {SMALL:>9} in the store  {few:>6.0} us per photo  (at most 1000)");
        println!("    {large_size:>9} in the store  {many:>6.0} us per photo");
        println!("    ratio {:.2}  (at most 1.2)", many / few);
    }
    println!();
}

struct Store {
    backend: Embedded,
    pipeline: Pipeline,
    arrival_order: ArrivalOrder,
}

impl Store {
    async fn open(folder: &Path) -> Self {
        let backend = Embedded::open(folder, FOLDER_CONFIG).unwrap();
        let pipeline = photo::pipeline(Arc::clone(&backend.store) as Arc<_>).await;
        Self { backend, pipeline, arrival_order: ArrivalOrder::default() }
    }

    /// Processes one photo from its upload to the acknowledged message, without pixels.
    async fn process(&self, n: usize, arrival: Arrival) {
        let submission = self.backend.submitter.submit(photo::upload(n, arrival)).await.unwrap();
        assert!(matches!(submission, Submission::Queued(_)));
        let delivery = self.backend.queue.receive(1).await.unwrap().pop().unwrap();
        for photo in photos_in(&delivery.body).unwrap() {
            self.pipeline.process(photo, &self.arrival_order.slot(SystemClock.now())).await.unwrap();
        }
        self.backend.queue.settle(delivery, Settlement::Acknowledge).await.unwrap();
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap())
}

/// Returns the target folder, which is on a disk, unlike /tmp on many machines.
fn target() -> std::path::PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}
