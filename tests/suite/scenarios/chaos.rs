//! Hundreds of messages, some twice, some nonsense, some about photos that are deleted meanwhile, and workers that die.

use std::{collections::BTreeSet, thread::sleep, time::Duration};

use crate::{
    platform::{ADA, Platform, Worker, created, delete, within},
    truth::known_persons,
};

const PHOTOS: usize = 350;
const DELETED: usize = 25;
const MALFORMED: usize = 25;
const DUPLICATES: usize = 100;

#[test]
fn nothing_is_lost_nothing_is_doubled_and_nothing_comes_back() {
    let seed =
        std::env::var("SPARKS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SPARKS_TEST_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let platform = Platform::new(PHOTOS, 40);
    platform.put_limit(ADA, 500);
    let images: Vec<String> = (0..PHOTOS).map(|n| platform.upload(n)).collect();

    // Photos that are deleted: their creation, their deletion, and their creation once more, in any order.
    let (deleted, kept) = images.split_at(DELETED);
    let mut messages: Vec<String> = images.iter().map(|image| created(image)).collect();
    messages.extend(deleted.iter().map(|image| delete(image)));
    let repeats: Vec<String> = (0..DUPLICATES - DELETED).map(|_| created(random.choice(kept).unwrap())).collect();
    messages.extend(deleted.iter().map(|image| created(image)).chain(repeats));
    let nonsense = ["{", "[]", "{\"Records\":[]}", "{\"action\":\"explode\"}", "nonsense"];
    messages.extend((0..MALFORMED).map(|n| nonsense[n % nonsense.len()].to_owned()));
    assert_eq!(messages.len(), 500);
    random.shuffle(&mut messages);
    platform.send(&messages);

    let mut workers: Vec<Worker> = (0..3).map(|_| platform.worker(&[])).collect();
    let mut kills = 0;
    within(Duration::from_secs(300), "everything is settled", &mut || {
        sleep(Duration::from_secs(1));
        if platform.unsettled() > 0 {
            let unlucky = random.usize(..workers.len());
            workers[unlucky].process.kill().unwrap();
            workers[unlucky] = platform.worker(&[]);
            kills += 1;
        }
        platform.unsettled() == 0
    });
    for worker in &workers {
        worker.signal("TERM");
    }
    for worker in &mut workers {
        assert_eq!(worker.ended(Duration::from_secs(40)), Some(0));
    }
    println!("{kills} kills");
    assert!(kills >= 3, "only {kills} kills: the load is too small");

    let letters = platform.letters();
    assert_eq!(letters.len(), MALFORMED, "{letters:?}");
    assert!(letters.iter().all(|letter| letter["cause"] == "malformed"), "{letters:?}");

    let processed: Vec<String> = subjects(&platform, "PhotoProcessed");
    let once: BTreeSet<&String> = processed.iter().collect();
    assert_eq!(once.len(), processed.len(), "no photo is decided twice");
    assert!(kept.iter().all(|image| once.contains(image)), "no photo is lost");
    for image in kept {
        assert!(platform.object(&format!("processed/{image}_large.webp")).is_file());
    }
    let gone: BTreeSet<String> = subjects(&platform, "PhotoDeleted").into_iter().collect();
    assert_eq!(gone, deleted.iter().cloned().collect());
    let items = platform.sparks.items();
    for image in deleted {
        assert!(!items.iter().any(|item| item["PK"] == image.as_str()), "{image} is back");
        for object in ["originals/{}.jpg", "processed/{}_large.webp", "processed/{}_medium.webp"] {
            let object = platform.object(&object.replace("{}", image));
            assert!(!object.exists(), "{} is back", object.display());
        }
    }
    assert_eq!(platform.item(&format!("LIMIT#{ADA}"), ADA).unwrap()["limit"], 500 + DELETED, "credited once each");
    assert_eq!(platform.sparks.json(["verify"])["clean"], true);
    platform.sparks.assert_crops();

    // Everybody known is in a photo, and everybody in a photo is known.
    let persons: BTreeSet<&str> =
        items.iter().filter(|item| item["entityType"] == "PERSON").map(|item| item["SK"].as_str().unwrap()).collect();
    let tagged = items.iter().filter_map(|item| item["entityType"].as_str()?.strip_prefix("TAGGING#"));
    assert_eq!(persons, tagged.collect());
    assert_eq!(persons.len(), known_persons(&platform.sparks.path("album"), DELETED), "one person for each face");
}

fn subjects(platform: &Platform, event_type: &str) -> Vec<String> {
    let events = platform.sparks.events_of(event_type);
    events.iter().map(|event| event["event_data"]["image_id"].as_str().unwrap().to_owned()).collect()
}
