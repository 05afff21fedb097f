//! Thousands of malformed messages.

use std::{fs, time::Duration};

use crate::harness::{Platform, within};

/// Returns a golden message with random changes.
fn mutate(random: &mut fastrand::Rng, golden: &[String]) -> String {
    let mut text: Vec<char> = random.choice(golden).unwrap().chars().filter(|c| *c != '\n').collect();
    for _ in 0..random.usize(1..6) {
        let place = random.usize(..text.len().max(1));
        match random.u8(..4) {
            0 | 1 if text.is_empty() => {}
            0 => text[place] = random.char(' '..'\u{2fff}'),
            1 => drop(text.remove(place)),
            2 => text.truncate(place.max(1)),
            _ => text
                .insert(place, *random.choice(&['"', '{', '}', '[', ']', ',', ':', '\\', '/', '.', '%', '0']).unwrap()),
        }
    }
    text.into_iter().collect()
}

#[test]
fn three_thousand_malformed_messages_neither_stop_the_worker_nor_leak() {
    check(3_000);
}

#[test]
#[ignore = "takes 20 seconds; run by the scheduled workflow"]
fn ten_thousand_malformed_messages_neither_stop_the_worker_nor_leak() {
    check(10_000);
}

fn check(count: usize) {
    let seed =
        std::env::var("SPARKS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SPARKS_TEST_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/messages");
    let golden = fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path());
    let golden: Vec<String> = golden
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|p| fs::read_to_string(p).unwrap())
        .collect();
    let platform = Platform::new(1, 1);
    let worker = platform.worker(&[("SPARKS_QUEUE_PREREQUISITE_TIMEOUT_SECONDS", "0")]);
    let mut memory = Vec::new();
    for _ in 0..4 {
        let messages: Vec<String> = (0..count / 4).map(|_| mutate(&mut random, &golden)).collect();
        platform.send(&messages.iter().filter(|m| !m.trim().is_empty()).cloned().collect::<Vec<_>>());
        within(Duration::from_secs(240), "all are settled", &mut || platform.unsettled() == 0);
        memory.push(resident(worker.process.id()));
    }
    println!("resident: {memory:?} KiB");
    assert!(!worker.log().contains("panicked"), "the worker panicked");
    assert_eq!(worker.get("/healthz").0, 200);
    assert!(memory[3] < memory[1] + 16 * 1024, "memory grows: {memory:?} KiB");
    let dead_letters = platform.dead_letters();
    assert!(dead_letters.len() > count / 10, "{}", dead_letters.len());
    assert!(dead_letters.iter().all(|letter| !letter["reason"].as_str().unwrap().is_empty()));
    let image = platform.upload(0);
    platform.send(&[crate::harness::created(&image)]);
    within(Duration::from_secs(30), "a photo is processed", &mut || platform.unsettled() == 0);
    assert!(!platform.persons_in(&image).is_empty());
}

/// Returns the resident memory of a process in KiB.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
