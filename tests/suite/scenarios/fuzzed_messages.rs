//! Thousands of messages that nobody ever meant.

use std::{fs, time::Duration};

use crate::platform::{Platform, within};

const MESSAGES: usize = 10_000;

/// A golden message with something broken in it.
fn broken(random: &mut fastrand::Rng, golden: &[String]) -> String {
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
fn ten_thousand_of_them_stop_nothing_and_leave_no_memory_behind() {
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
    let worker = platform.worker(&[("SPARKS_QUEUE_WAIT_SECONDS", "0")]);
    let mut memory = Vec::new();
    for _ in 0..4 {
        let messages: Vec<String> = (0..MESSAGES / 4).map(|_| broken(&mut random, &golden)).collect();
        platform.send(&messages.iter().filter(|m| !m.trim().is_empty()).cloned().collect::<Vec<_>>());
        within(Duration::from_secs(240), "all are settled", &mut || platform.unsettled() == 0);
        memory.push(resident(worker.process.id()));
    }
    println!("resident: {memory:?} KiB");
    assert!(!worker.log().contains("panicked"), "a panic");
    assert_eq!(worker.get("/healthz").0, 200);
    assert!(memory[3] < memory[1] + 16 * 1024, "memory grows: {memory:?} KiB");
    let letters = platform.letters();
    assert!(letters.len() > 1000, "{}", letters.len());
    assert!(letters.iter().all(|letter| !letter["reason"].as_str().unwrap().is_empty()));
    let image = platform.upload(0);
    platform.send(&[crate::platform::created(&image)]);
    within(Duration::from_secs(30), "real work goes on", &mut || platform.unsettled() == 0);
    assert!(!platform.persons_in(&image).is_empty());
}

/// Kibibytes of memory.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
