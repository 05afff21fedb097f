//! Consolidation of many new persons: the threads of the runtime stay free for messages and health checks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use sparks_tests::{
    fault_injection::FaultPlan,
    new_persons::{DUPLICATES, commit_new_persons},
    snapshot::{count, read_log},
    worker::{consolidator, open},
};

use super::data_folders::DataFolders;

/// Returns the CPU time of this thread. Unlike the time of day, it does not depend on what else the machine does.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Consolidates on a runtime with one thread. Returns the longest CPU time that the thread has spent without running other tasks.
async fn longest_block_of_consolidation(persons: u32) -> Duration {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    commit_new_persons(backend.store.as_ref(), persons).await;
    let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
    let longest = Arc::new(AtomicU64::new(0));
    let ticks = {
        let longest = Arc::clone(&longest);
        tokio::spawn(async move {
            loop {
                let before = cpu_time();
                tokio::time::sleep(Duration::from_millis(1)).await;
                longest.fetch_max((cpu_time() - before).as_micros() as u64, Ordering::Relaxed);
            }
        })
    };
    let (started, mut runs) = (Instant::now(), 1);
    while consolidator.run(true).await.unwrap().is_interrupted {
        runs += 1;
    }
    ticks.abort();
    let merged = count(&read_log(&backend).await, "PersonsMerged");
    let longest = Duration::from_micros(longest.load(Ordering::Relaxed));
    println!("{persons} persons: {merged} merged in {runs} runs, {:?}; longest block {longest:?}", started.elapsed());
    assert!(merged as u32 >= persons / DUPLICATES / 2, "only {merged} of {persons} persons were merged");
    longest
}

#[tokio::test(flavor = "current_thread")]
async fn consolidation_of_many_persons_leaves_the_runtime_responsive() {
    let longest = longest_block_of_consolidation(3000).await;
    assert!(longest < Duration::from_millis(100), "the runtime was blocked for {longest:?}");
}

/// Takes minutes.
#[tokio::test(flavor = "current_thread")]
#[ignore = "takes minutes"]
async fn consolidation_of_twenty_thousand_persons_leaves_the_runtime_responsive() {
    let longest = longest_block_of_consolidation(20_000).await;
    assert!(longest < Duration::from_millis(100), "the runtime was blocked for {longest:?}");
}
