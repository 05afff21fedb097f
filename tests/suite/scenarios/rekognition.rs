//! Faces found and known by Rekognition.

use std::{collections::BTreeMap, fs, thread::sleep, time::Duration};

use serde_json::json;
use sparks_rekognition::{Throttle, TooMany, Trouble};
use sparks_tests::{proxy::Proxy, rekognition::RekognitionServer};

use crate::{
    platform::{Platform, created, delete, eventually, within},
    services::{check_outage, check_outcome, faces_and_founded, four_workers, persons},
};

/// A platform whose workers use this server, with a collection.
fn platform(server: &RekognitionServer, photos: usize, identities: usize, more: &[(&'static str, &str)]) -> Platform {
    let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let platform = Platform::new(photos, identities).with(server.settings().into_iter().chain(more).collect());
    let made = platform.command(["setup"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    server.take_calls();
    platform
}

fn count(calls: &BTreeMap<String, u64>, operation: &str) -> u64 {
    calls.get(operation).copied().unwrap_or_default()
}

#[test]
fn four_workers_make_one_person_of_each_stranger_whom_the_service_finds_late() {
    let server = RekognitionServer::start();
    server.set_delay(Duration::from_secs(2));
    let platform = platform(&server, 300, 40, &[]);
    let workers = four_workers(&platform);
    check_outcome(&platform, 40);
    let (calls, (faces, founded)) = (server.take_calls(), faces_and_founded(&platform));
    println!("300 photos, {faces} faces, {founded} persons: {calls:?}");
    assert_eq!(founded, 40);
    assert_eq!(count(&calls, "DetectFaces"), 300);
    assert!(count(&calls, "SearchFacesByImage") <= faces);
    assert_eq!(count(&calls, "IndexFaces"), founded);
    assert!(calls.values().sum::<u64>() <= 300 + faces + founded, "{calls:?}");
    let metered = |operation: &str| -> f64 {
        let name = format!("sparks_service_calls_total{{operation=\"{operation}\"}}");
        workers.iter().map(|worker| worker.metric(&name)).sum()
    };
    assert_eq!(metered("DetectFaces"), 300.0, "operators see what they pay for");

    // The same bytes again cost nothing, not even where the platform has made the row anew.
    (0..300).step_by(14).for_each(|n| platform.put_image(&Platform::image(n)));
    platform.send(&(0..300).step_by(7).map(|n| created(&Platform::image(n))).collect::<Vec<_>>());
    eventually("all are settled", || platform.unsettled() == 0);
    assert_eq!(server.take_calls(), BTreeMap::new());
}

#[test]
fn without_a_companion_the_service_compares_those_it_cannot_find_yet() {
    let server = RekognitionServer::start();
    server.set_delay(Duration::from_secs(2));
    let platform = platform(&server, 120, 25, &[("SPARKS_FACES_COMPANION", "off")]);
    let workers = four_workers(&platform);
    check_outcome(&platform, 25);
    let (calls, (faces, founded)) = (server.take_calls(), faces_and_founded(&platform));
    println!("120 photos, {faces} faces, {founded} persons: {calls:?}");
    assert!(count(&calls, "CompareFaces") > 0, "somebody was too new to be found: {calls:?}");
    assert!(calls.values().sum::<u64>() <= 120 + 2 * faces + founded + conflicts(&workers), "{calls:?}");
}

fn conflicts(workers: &[crate::platform::Worker]) -> u64 {
    workers.iter().map(|worker| worker.metric("sparks_conflicts_total") as u64).sum()
}

#[test]
fn a_kill_before_the_service_was_told_is_made_good_once() {
    let server = RekognitionServer::start();
    let proxy = server.runtime.block_on(Proxy::start(&server.endpoint()));
    let platform = platform(&server, 3, 1, &[("SPARKS_QUEUE_VISIBILITY_SECONDS", "2")]);
    platform.send(&[created(&platform.upload(0))]);
    // The commit goes through; what follows it never reaches the service, until the worker is killed.
    let is_lesson = |target: &str| target.ends_with(".IndexFaces");
    proxy.judge(move |target, _| is_lesson(target).then(|| (500, r#"{"__type":"InternalServerError"}"#.to_owned())));
    let worker = platform.worker(&[("SPARKS_AWS_ENDPOINTS_REKOGNITION", &proxy.endpoint())]);
    eventually("the service is told", || proxy.take_seen().iter().any(|target| is_lesson(target)));
    drop(worker);
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 1, "committed, and then killed");
    assert_eq!(server.faces(), []);

    let _worker = platform.worker(&[]);
    eventually("all are settled", || platform.unsettled() == 0);
    check_known_once(&platform, &server);
}

#[test]
fn a_kill_after_the_service_was_told_does_not_tell_it_again() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 3, 1, &[("SPARKS_QUEUE_VISIBILITY_SECONDS", "2")]);
    // A folder stands where the crop belongs: the service is told, and what comes after it cannot be done.
    let in_the_way = platform.object("persons/person1.jpg");
    fs::create_dir_all(in_the_way.join("in the way")).unwrap();
    platform.send(&[created(&platform.upload(0))]);
    let worker = platform.worker(&[]);
    eventually("the service was told", || count(&server.take_calls(), "IndexFaces") == 1);
    drop(worker);
    fs::remove_dir_all(&in_the_way).unwrap();

    let _worker = platform.worker(&[]);
    eventually("all are settled", || platform.unsettled() == 0);
    assert_eq!(count(&server.take_calls(), "IndexFaces"), 0);
    check_known_once(&platform, &server);
}

/// One photo was committed once, and its person is known by one face, by which they are recognised.
fn check_known_once(platform: &Platform, server: &RekognitionServer) {
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 1, "not committed again");
    assert_eq!(server.faces(), [("person1".to_owned(), 1)], "searchable, once");
    platform.sparks.assert_crops();
    platform.send(&[created(&platform.upload(1))]);
    eventually("all are settled", || platform.unsettled() == 0);
    assert_eq!(platform.persons_in(&Platform::image(1)), ["person1"]);
}

#[test]
fn whoever_is_forgotten_is_forgotten_by_the_service() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 6, 6, &[]);
    platform.send(&(0..6).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    platform.drain();
    let before = server.faces();
    assert_eq!(before.len(), persons(&platform));
    platform.put_limit(crate::platform::ADA, 10);
    platform.send(&(0..5).map(|n| delete(&Platform::image(n))).collect::<Vec<_>>());
    platform.drain();
    let known: Vec<String> = server.faces().into_iter().map(|(person, _)| person).collect();
    let rows = platform.sparks.json(["query", "persons"]);
    let rows = rows["persons"].as_array().unwrap().iter().map(|row| row["personId"].as_str().unwrap().to_owned());
    let mut rows: Vec<String> = rows.collect();
    rows.sort_by_key(|person| person.trim_start_matches("person").parse::<u32>().unwrap());
    assert_eq!(known, rows);
    assert!(known.len() < before.len(), "somebody is in no photo any more");
}

#[test]
fn photos_that_the_service_does_not_take_have_no_faces() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 1, 1, &[]);
    let tiny = image::RgbImage::from_pixel(79, 300, image::Rgb([9, 99, 200]));
    let empty = image::RgbImage::from_pixel(300, 300, image::Rgb([9, 99, 200]));
    for (n, picture) in [(1, tiny), (2, empty)] {
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        let image = Platform::image(n);
        platform.put(&format!("originals/{image}.jpg"), bytes.get_ref());
        platform.put_image(&image);
        platform.send(&[created(&image)]);
    }
    platform.drain();
    let events = platform.sparks.events_of("PhotoProcessed");
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event["event_data"]["faces"] == json!([])));
    assert!(events.iter().all(|event| event["event_data"]["analyzer"] == "rekognition"));
    assert_eq!(server.take_calls(), BTreeMap::from([("DetectFaces".to_owned(), 1)]), "the small one is not even sent");
}

#[test]
fn while_the_service_is_down_nobody_polls() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 40, 5, &[]);
    let images: Vec<String> = (0..40).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    server.behave(|options| options.trouble = Some(Trouble::Outage));
    platform.send(&images[..2].iter().map(|image| created(image)).collect::<Vec<_>>());
    check_outage(&platform, &worker, &images[2..], || server.behave(|options| options.trouble = None));
    check_outcome(&platform, 5);
}

#[test]
fn while_the_service_is_throttled_nothing_becomes_a_dead_letter() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 40, 5, &[]);
    let images: Vec<String> = (0..40).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    let throttle = Throttle { per_second: 0.001, answer: TooMany::ProvisionedThroughput };
    server.behave(|options| options.throttle = Some(throttle));
    platform.send(&images[..2].iter().map(|image| created(image)).collect::<Vec<_>>());
    check_outage(&platform, &worker, &images[2..], || server.behave(|options| options.throttle = None));
    check_outcome(&platform, 5);
}

#[test]
fn one_operation_that_fails_alone_costs_no_message() {
    let server = RekognitionServer::start();
    let proxy = server.runtime.block_on(Proxy::start(&server.endpoint()));
    let platform = platform(&server, 40, 5, &[]);
    let fails = |target: &str| target.ends_with(".SearchFacesByImage");
    proxy.judge(move |target, _| fails(target).then(|| (500, r#"{"__type":"InternalServerError"}"#.to_owned())));
    platform.send(&(0..40).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    let worker = platform.worker(&[("SPARKS_AWS_ENDPOINTS_REKOGNITION", &proxy.endpoint())]);
    sleep(Duration::from_secs(20));
    assert_eq!(platform.letters().len(), 0, "{}", worker.log());
    proxy.judge(|_, _| None);
    within(Duration::from_secs(90), "all are settled", &mut || platform.unsettled() == 0);
    check_outcome(&platform, 5);
}

#[test]
fn without_a_collection_nothing_is_lost_and_the_remedy_is_said() {
    let server = RekognitionServer::start();
    let platform = Platform::new(4, 2).with(server.settings());
    platform.send(&(0..4).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    let worker = platform.worker(&[]);
    eventually("it is noticed", || worker.get("/readyz").0 == 503);
    assert!(worker.get("/readyz").1.contains("sparks setup"), "{}", worker.get("/readyz").1);
    let doctor = platform.command(["doctor"]).output().unwrap();
    assert!(!doctor.status.success());
    let said = String::from_utf8(doctor.stdout).unwrap();
    assert!(said.contains("collection platform: it is not there -> `sparks setup` makes it"), "{said}");
    sleep(Duration::from_secs(2));
    assert!(platform.command(["setup"]).status().unwrap().success());
    eventually("all are settled", || platform.unsettled() == 0);
    check_outcome(&platform, 2);
}
