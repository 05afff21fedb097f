//! Hundreds of messages, some duplicated, some malformed, some about photos deleted meanwhile, and workers killed at random.

use std::{
    collections::BTreeSet,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    ground_truth::identity_count,
    harness::{ADA, Platform, Worker, created, delete, within},
};

/// Numbers of photos and messages.
struct Load {
    photos: usize,
    identities: usize,
    deleted: usize,
    malformed: usize,
    duplicates: usize,
}

#[test]
fn no_photo_is_lost_or_processed_twice_and_deleted_ones_stay_deleted() {
    check(&Load { photos: 140, identities: 20, deleted: 10, malformed: 10, duplicates: 40 });
}

#[test]
#[ignore = "takes a minute; run by the scheduled workflow"]
fn five_hundred_messages_are_neither_lost_nor_processed_twice() {
    check(&Load { photos: 350, identities: 40, deleted: 25, malformed: 25, duplicates: 100 });
}

fn check(load: &Load) {
    let seed =
        std::env::var("SPARKS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SPARKS_TEST_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let platform = Platform::new(load.photos, load.identities);
    platform.put_limit(ADA, 500);
    let images: Vec<String> = (0..load.photos).map(|n| platform.upload(n)).collect();

    // Deleted photos get three messages in random order: created, deleted, and created again.
    let (deleted, kept) = images.split_at(load.deleted);
    let mut messages: Vec<String> = images.iter().map(|image| created(image)).collect();
    messages.extend(deleted.iter().map(|image| delete(image)));
    let repeats: Vec<String> =
        (0..load.duplicates - load.deleted).map(|_| created(random.choice(kept).unwrap())).collect();
    messages.extend(deleted.iter().map(|image| created(image)).chain(repeats));
    let malformed = ["{", "[]", "{\"Records\":[]}", "{\"action\":\"explode\"}", "nonsense"];
    messages.extend((0..load.malformed).map(|n| malformed[n % malformed.len()].to_owned()));
    assert_eq!(messages.len(), load.photos + load.deleted + load.duplicates + load.malformed);
    random.shuffle(&mut messages);
    platform.send(&messages);

    let mut workers: Vec<Worker> = (0..3).map(|_| platform.worker(&[])).collect();
    // A worker is killed every second, and on a fast machine after every tenth of the messages.
    let (mut kills, mut last_kill, mut unsettled) = (0, Instant::now(), messages.len() as u64);
    within(Duration::from_secs(300), "all messages are settled", &mut || {
        sleep(Duration::from_millis(50));
        let now = platform.unsettled();
        let is_time = last_kill.elapsed() >= Duration::from_secs(1)
            || unsettled.saturating_sub(now) >= messages.len() as u64 / 10;
        if now > 0 && is_time {
            (last_kill, unsettled) = (Instant::now(), now);
            let victim = random.usize(..workers.len());
            workers[victim].process.kill().unwrap();
            workers[victim] = platform.worker(&[]);
            kills += 1;
        }
        platform.unsettled() == 0
    });
    for worker in &workers {
        worker.signal("TERM");
    }
    for worker in &mut workers {
        assert_eq!(worker.wait_for_exit(Duration::from_secs(40)), Some(0));
    }
    println!("{kills} kills");
    assert!(kills >= 3, "only {kills} kills: the load is too small");

    let dead_letters = platform.dead_letters();
    assert_eq!(dead_letters.len(), load.malformed, "{dead_letters:?}");
    assert!(dead_letters.iter().all(|letter| letter["cause"] == "malformed"), "{dead_letters:?}");

    let processed: Vec<String> = images_of(&platform, "PhotoProcessed");
    let once: BTreeSet<&String> = processed.iter().collect();
    assert_eq!(once.len(), processed.len(), "no photo is processed twice");
    assert!(kept.iter().all(|image| once.contains(image)), "no photo is lost");
    for image in kept {
        assert!(platform.object(&format!("processed/{image}_large.webp")).is_file());
    }
    let recorded: BTreeSet<String> = images_of(&platform, "PhotoDeleted").into_iter().collect();
    assert_eq!(recorded, deleted.iter().cloned().collect());
    let items = platform.sparks.items();
    for image in deleted {
        assert!(!items.iter().any(|item| item["PK"] == image.as_str()), "{image} has rows");
        for object in ["originals/{}.jpg", "processed/{}_large.webp", "processed/{}_medium.webp"] {
            let object = platform.object(&object.replace("{}", image));
            assert!(!object.exists(), "{} exists", object.display());
        }
    }
    assert_eq!(
        platform.item(&format!("LIMIT#{ADA}"), ADA).unwrap()["limit"],
        500 + load.deleted,
        "credited once per deleted photo"
    );
    assert_eq!(platform.sparks.json(["verify"])["clean"], true);
    platform.sparks.assert_crops();

    // The PERSON rows are exactly the tagged persons.
    let persons: BTreeSet<&str> =
        items.iter().filter(|item| item["entityType"] == "PERSON").map(|item| item["SK"].as_str().unwrap()).collect();
    let tagged = items.iter().filter_map(|item| item["entityType"].as_str()?.strip_prefix("TAGGING#"));
    assert_eq!(persons, tagged.collect());
    assert_eq!(persons.len(), identity_count(&platform.sparks.path("album"), load.deleted), "one person per identity");
}

fn images_of(platform: &Platform, event_type: &str) -> Vec<String> {
    let events = platform.sparks.events_of(event_type);
    events.iter().map(|event| event["event_data"]["image_id"].as_str().unwrap().to_owned()).collect()
}
