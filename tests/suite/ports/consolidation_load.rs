//! Consolidation of many new persons: the threads of the runtime stay free for messages and health checks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use sparks_domain::{Key, PersonId, Presence, Signature};
use sparks_engine::{Commit, PhotoGuard, Store, StoredFace};
use sparks_tests::{
    fault_injection::FaultPlan,
    samples::{allocated, empty_commit, face, image, person, processed, set},
    snapshot::{count, read_log},
    worker::{consolidator, open},
};

use super::data_folders::DataFolders;

/// Random directions of this many dimensions have the similarities that the scale of the model states.
const DIMENSIONS: usize = 144;
const PERSONS_PER_PHOTO: u32 = 10;
/// One in so many persons has the same identity as the person before, in another photo.
const DUPLICATES: u32 = 100;

/// A generator of faces.
struct FaceGenerator {
    random: fastrand::Rng,
    identity: Vec<f32>,
}

impl FaceGenerator {
    fn direction(&mut self) -> Vec<f32> {
        // Sums of uniform values are nearly normally distributed.
        (0..DIMENSIONS).map(|_| (0..6).map(|_| self.random.f32() - 0.5).sum()).collect()
    }

    fn face(&mut self, number: u32) -> Signature {
        if number == 1 || number % DUPLICATES != 1 {
            self.identity = self.direction();
        }
        let noise = self.direction();
        let vector: Vec<f32> = self.identity.iter().zip(noise).map(|(own, noise)| own + 0.5 * noise).collect();
        Signature::quantise(&vector).unwrap()
    }
}

/// Commits photos of this number of new persons.
async fn commit_new_persons(store: &dyn Store, persons: u32) {
    let mut generator = FaceGenerator { random: fastrand::Rng::with_seed(1), identity: Vec::new() };
    for first in (1..=persons).step_by(PERSONS_PER_PHOTO as usize) {
        let (image, numbers): (_, Vec<u32>) = (image(first.into()), (first..first + PERSONS_PER_PHOTO).collect());
        let template = |(n, number): (u16, &u32)| StoredFace {
            face: face(&image, n),
            model: sparks_faces::SYNTHETIC_MODEL.into(),
            signature: generator.face(*number),
            person: Some(person(*number)),
            template: true,
        };
        let signatures = (0..).zip(&numbers).map(template).collect();
        let row = |number: &u32| {
            let id: PersonId = person(*number);
            set(&Key::person(id), Presence::Absent, json!({ "entityType": "PERSON", "displayName": id }))
        };
        let commit = Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: None }),
            events: vec![allocated(&image, first - 1, &numbers), processed(&image, "v1", &numbers)],
            mutations: numbers.iter().map(row).collect(),
            signatures,
            ..empty_commit()
        };
        store.commit(&commit).await.unwrap();
    }
}

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
