//! Workers with a Pinecone index.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use sparks_tests::album::photo_with_noise;

use crate::{
    face_services::{Pinecone, check_outage, check_outcome, faces_and_new_persons, four_workers},
    harness::{ADA, Platform, created, delete, eventually},
};

fn count(calls: &BTreeMap<String, u64>, operation: &str) -> u64 {
    calls.get(operation).copied().unwrap_or_default()
}

#[test]
fn four_workers_create_one_person_per_identity_with_a_lagging_index() {
    check_four_workers(90, 15);
}

#[test]
#[ignore = "takes two minutes; run by the scheduled workflow"]
fn four_workers_create_one_person_per_identity_of_300_photos() {
    check_four_workers(300, 40);
}

fn check_four_workers(photos: usize, identities: usize) {
    let pinecone = Pinecone::start();
    let lag = Duration::from_secs(2);
    pinecone.server.set_lag(lag);
    let platform = Platform::new(photos, identities).with(pinecone.settings());
    let _workers = four_workers(&platform);
    check_outcome(&platform, identities);
    let (calls, (faces, new_persons)) = (pinecone.take_calls(), faces_and_new_persons(&platform));
    println!("{photos} photos, {faces} faces, {new_persons} persons: {calls:?}");
    assert_eq!(new_persons, identities as u64);
    assert!(count(&calls, "query") <= faces);
    assert!(calls.values().sum::<u64>() <= photos as u64 + faces + new_persons, "{calls:?}");

    // Repeated messages only read whether all templates are enrolled, once the index shows them.
    std::thread::sleep(lag);
    platform.send(&(0..photos).step_by(7).map(|n| created(&Platform::image(n))).collect::<Vec<_>>());
    eventually("all messages are settled", || platform.unsettled() == 0);
    let calls = pinecone.take_calls();
    assert!(calls.keys().all(|operation| operation == "fetch"), "{calls:?}");
    assert!(count(&calls, "fetch") <= photos.div_ceil(7) as u64, "{calls:?}");
}

#[test]
fn a_kill_between_commit_and_enrollment_enrolls_once() {
    let pinecone = Pinecone::start();
    let more = vec![("SPARKS_QUEUE_VISIBILITY_TIMEOUT_SECONDS", "2".to_owned())];
    let platform = Platform::new(3, 1).with(pinecone.settings().into_iter().chain(more).collect());
    platform.send(&[created(&platform.upload(0))]);
    // Responses take so long that the kill happens between the commit and the upsert.
    pinecone.server.set_latency(Duration::from_millis(1500));
    let worker = platform.worker(&[]);
    eventually("the photo is committed", || !platform.sparks.events_of("PhotoProcessed").is_empty());
    drop(worker);
    pinecone.server.set_latency(Duration::ZERO);

    let _worker = platform.worker(&[]);
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 1, "not committed again");
    let namespaces = pinecone.server.namespaces();
    assert_eq!(namespaces.len(), 1, "{namespaces:?}");
    assert_eq!(pinecone.server.ids(&namespaces[0]), [format!("person1#{}#0", Platform::image(0))], "searchable, once");

    platform.send(&[created(&platform.upload(1))]);
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_eq!(platform.persons_in(&Platform::image(1)), ["person1"]);
}

/// A face that differs from the templates of a known person becomes another one.
#[test]
fn a_kill_before_a_further_template_is_enrolled_enrolls_it() {
    let pinecone = Pinecone::start();
    let more = vec![("SPARKS_QUEUE_VISIBILITY_TIMEOUT_SECONDS", "2".to_owned())];
    let platform = Platform::new(1, 1).with(pinecone.settings().into_iter().chain(more).collect());
    let send = |n: usize| {
        let image = Platform::image(n);
        platform.put(&format!("originals/{image}.jpg"), &photo_with_noise(n as u64, 3, 0.5).jpeg);
        platform.put_image(&image);
        platform.send(&[created(&image)]);
    };
    send(1);
    platform.drain();
    send(2);
    // Responses take so long that the kill happens between the commit and the upsert.
    pinecone.server.set_latency(Duration::from_millis(1500));
    let worker = platform.worker(&[]);
    eventually("the photo is committed", || platform.sparks.events_of("PhotoProcessed").len() == 2);
    drop(worker);
    pinecone.server.set_latency(Duration::ZERO);
    let event = &platform.sparks.events_of("PhotoProcessed")[1]["event_data"];
    assert_eq!(
        (&event["faces"][0]["template"], &event["faces"][0]["verdict"]["matched"]),
        (&json!(true), &json!("person1"))
    );
    let namespace = pinecone.server.namespaces().remove(0);
    assert_eq!(pinecone.server.ids(&namespace).len(), 1, "the second template is not enrolled");

    pinecone.take_calls();
    let _worker = platform.worker(&[]);
    eventually("all messages are settled", || platform.unsettled() == 0);
    let expected = [1, 2].map(|n| format!("person1#{}#0", Platform::image(n)));
    assert_eq!(pinecone.server.ids(&namespace), expected);
    platform.send(&[created(&Platform::image(2))]);
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_eq!(count(&pinecone.take_calls(), "upsert"), 1, "a repeat writes nothing again");
}

#[test]
fn deleting_photos_removes_their_vectors() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(8, 3).with(pinecone.settings());
    platform.send(&(0..8).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    platform.drain();
    platform.put_limit(ADA, 10);
    platform.send(&(0..7).map(|n| delete(&Platform::image(n))).collect::<Vec<_>>());
    platform.drain();
    let namespace = pinecone.server.namespaces().remove(0);
    let (kept, left) = (pinecone.server.ids(&namespace), Platform::image(7));
    assert!(!kept.is_empty() && kept.iter().all(|id| id.contains(&left)), "{kept:?}");
    platform.send(&[delete(&left)]);
    platform.drain();
    assert_eq!(pinecone.server.ids(&namespace), [""; 0]);
}

#[test]
fn persons_known_before_the_index_are_matched() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(30, 6);
    platform.send(&(0..15).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    platform.drain();
    let platform = platform.with(pinecone.settings());
    platform.send(&(15..30).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    platform.drain();
    check_outcome(&platform, 6);
}

#[test]
fn no_message_is_received_while_the_index_is_down() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(24, 5).with(pinecone.settings());
    let images: Vec<String> = (0..24).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    pinecone.server.set_down(true);
    platform.send(&images[..2].iter().map(|image| created(image)).collect::<Vec<_>>());
    check_outage(&platform, &worker, &images[2..], || pinecone.server.set_down(false));
    check_outcome(&platform, 5);
}

#[test]
fn no_message_becomes_a_dead_letter_while_the_index_throttles() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(24, 5).with(pinecone.settings());
    let images: Vec<String> = (0..24).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    pinecone.server.throttle(usize::MAX, Some("1"));
    platform.send(&images[..2].iter().map(|image| created(image)).collect::<Vec<_>>());
    check_outage(&platform, &worker, &images[2..], || pinecone.server.throttle(0, None));
    assert!(worker.log().contains("throttled"), "{}", worker.log());
    check_outcome(&platform, 5);
}

#[test]
fn the_api_key_is_never_logged_and_a_missing_one_is_reported() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(4, 2).with(pinecone.settings());
    platform.send(&(0..4).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    let mut verbose = platform.command(["run", "--drain", "--listen", "127.0.0.1:0"]);
    let output = verbose.env("SPARKS_LOG", "trace").output().unwrap();
    assert!(output.status.success());
    let key = sparks_tests::pinecone_server::PineconeServer::KEY;
    assert!(!String::from_utf8_lossy(&output.stderr).contains(key) && output.stderr.len() > 1000);
    let shown = platform.command(["config", "show"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&shown.stdout).contains(key));

    let without = platform.command(["run", "--drain"]).env_remove("PINECONE_API_KEY").output().unwrap();
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&without.stderr).contains("set PINECONE_API_KEY"));
}

#[test]
fn invalid_pairs_of_analyzer_and_index_are_refused() {
    let platform = Platform::new(1, 1);
    for (analyzer, index, reason) in [
        ("rekognition", "gallery", "Rekognition returns no embeddings"),
        ("rekognition", "pinecone", "Rekognition returns no embeddings"),
        ("off", "pinecone", "faces.analyzer is \"off\""),
        ("off", "rekognition", "faces.analyzer is \"off\""),
        ("local", "pinecone", "pinecone.host is empty"),
    ] {
        let mut command = platform.command(["run", "--drain"]);
        let output = command.env("SPARKS_FACES_ANALYZER", analyzer).env("SPARKS_FACES_INDEX", index).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{analyzer} {index}: {text}");
        assert!(text.contains(reason), "{analyzer} {index}: {text}");
    }
}
