//! Workers with Rekognition as face analyzer and face index.

use std::{collections::BTreeMap, fs, thread::sleep, time::Duration};

use serde_json::json;
use sparks_rekognition::{InjectedFailure, Throttle, ThrottleError};
use sparks_tests::{album::photo, proxy::Proxy, rekognition_server::RekognitionServer};

use crate::{
    face_services::{check_outage, check_outcome, faces_and_new_persons, four_workers, persons},
    harness::{Platform, created, delete, eventually, within},
};

/// Creates a platform whose workers use this server, and the collection.
fn platform(server: &RekognitionServer, photos: usize, identities: usize, more: &[(&'static str, &str)]) -> Platform {
    let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let platform = Platform::new(photos, identities).with(server.settings().into_iter().chain(more).collect());
    let setup = platform.command(["setup"]).output().unwrap();
    assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
    server.take_calls();
    platform
}

fn count(calls: &BTreeMap<String, u64>, operation: &str) -> u64 {
    calls.get(operation).copied().unwrap_or_default()
}

#[test]
fn four_workers_create_one_person_per_identity_with_a_lagging_service() {
    check_four_workers(90, 15);
}

#[test]
#[ignore = "takes two minutes; run by the scheduled workflow"]
fn four_workers_create_one_person_per_identity_of_300_photos() {
    check_four_workers(300, 40);
}

fn check_four_workers(photos: usize, identities: usize) {
    let server = RekognitionServer::start();
    server.set_delay(Duration::from_secs(2));
    let platform = platform(&server, photos, identities, &[]);
    let workers = four_workers(&platform);
    check_outcome(&platform, identities);
    let (calls, (faces, new_persons)) = (server.take_calls(), faces_and_new_persons(&platform));
    println!("{photos} photos, {faces} faces, {new_persons} persons: {calls:?}");
    assert_eq!(new_persons, identities as u64);
    assert_eq!(count(&calls, "DetectFaces"), photos as u64);
    assert!(count(&calls, "SearchFacesByImage") <= faces);
    assert_eq!(count(&calls, "IndexFaces"), new_persons);
    assert!(calls.values().sum::<u64>() <= photos as u64 + faces + new_persons, "{calls:?}");
    let metered = |operation: &str| -> f64 {
        let name = format!("sparks_service_calls_total{{operation=\"{operation}\"}}");
        workers.iter().map(|worker| worker.metric(&name)).sum()
    };
    assert_eq!(metered("DetectFaces"), photos as f64, "the metric counts paid calls");

    // Repeated messages need no call, even if the platform has replaced the row. Those sent within seconds of a commit list faces, which
    // is free of charge: they may find a template too many, left by a failure.
    sleep(Duration::from_secs(6));
    (0..photos).step_by(14).for_each(|n| platform.put_image(&Platform::image(n)));
    platform.send(&(0..photos).step_by(7).map(|n| created(&Platform::image(n))).collect::<Vec<_>>());
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_eq!(server.take_calls(), BTreeMap::new());
}

#[test]
fn without_a_secondary_analyzer_recent_persons_are_compared() {
    let server = RekognitionServer::start();
    server.set_delay(Duration::from_secs(2));
    let platform = platform(&server, 60, 12, &[("SPARKS_FACES_SECONDARY_ANALYZER", "off")]);
    let workers = four_workers(&platform);
    check_outcome(&platform, 12);
    let (calls, (faces, new_persons)) = (server.take_calls(), faces_and_new_persons(&platform));
    println!("60 photos, {faces} faces, {new_persons} persons: {calls:?}");
    assert!(count(&calls, "CompareFaces") > 0, "no person was too recent to be searchable: {calls:?}");
    assert!(calls.values().sum::<u64>() <= 60 + 2 * faces + new_persons + conflicts(&workers), "{calls:?}");
}

fn conflicts(workers: &[crate::harness::Worker]) -> u64 {
    workers.iter().map(|worker| worker.metric("sparks_conflicts_total") as u64).sum()
}

#[test]
fn a_kill_before_enrollment_enrolls_once() {
    let server = RekognitionServer::start();
    let proxy = server.runtime.block_on(Proxy::start(&server.endpoint()));
    let platform = platform(&server, 3, 1, &[("SPARKS_QUEUE_VISIBILITY_TIMEOUT_SECONDS", "2")]);
    platform.send(&[created(&platform.upload(0))]);
    // The commit succeeds; enrollment fails until the worker is killed.
    let is_enrollment = |target: &str| target.ends_with(".IndexFaces");
    proxy.intercept(move |target, _| {
        is_enrollment(target).then(|| (500, r#"{"__type":"InternalServerError"}"#.to_owned()))
    });
    let worker = platform.worker(&[("SPARKS_AWS_ENDPOINTS_REKOGNITION", &proxy.endpoint())]);
    eventually("enrollment is tried", || proxy.take_requests().iter().any(|target| is_enrollment(target)));
    drop(worker);
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 1, "committed before the kill");
    assert_eq!(server.enrolled_faces(), []);

    let _worker = platform.worker(&[]);
    eventually("all messages are settled", || platform.unsettled() == 0);
    check_enrolled_once(&platform, &server);
}

#[test]
fn a_kill_after_enrollment_does_not_enroll_again() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 3, 1, &[("SPARKS_QUEUE_VISIBILITY_TIMEOUT_SECONDS", "2")]);
    // A folder has the name of the crop: enrollment succeeds, and storing the crop after it fails.
    let obstacle = platform.object("persons/person1.jpg");
    fs::create_dir_all(obstacle.join("folder")).unwrap();
    platform.send(&[created(&platform.upload(0))]);
    let worker = platform.worker(&[]);
    eventually("the person is enrolled", || count(&server.take_calls(), "IndexFaces") == 1);
    drop(worker);
    fs::remove_dir_all(&obstacle).unwrap();

    let _worker = platform.worker(&[]);
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_eq!(count(&server.take_calls(), "IndexFaces"), 0);
    check_enrolled_once(&platform, &server);
}

/// The next worker repeats the enrollment before the service can find the face.
#[test]
fn a_kill_before_the_face_is_searchable_enrolls_once() {
    let server = RekognitionServer::start();
    server.set_delay(Duration::from_secs(3600));
    let platform = platform(&server, 3, 1, &[("SPARKS_QUEUE_VISIBILITY_TIMEOUT_SECONDS", "2")]);
    let obstacle = platform.object("persons/person1.jpg");
    fs::create_dir_all(obstacle.join("folder")).unwrap();
    platform.send(&[created(&platform.upload(0))]);
    let worker = platform.worker(&[]);
    eventually("the person is enrolled", || count(&server.take_calls(), "IndexFaces") == 1);
    drop(worker);
    fs::remove_dir_all(&obstacle).unwrap();

    let _worker = platform.worker(&[]);
    eventually("all messages are settled", || platform.unsettled() == 0);
    server.set_delay(Duration::ZERO);
    check_enrolled_once(&platform, &server);
}

/// Each of two merged persons has a face in the collection. That of the merged one goes with its photo.
#[test]
fn the_face_of_a_merged_person_is_removed_with_its_photo() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 1, 1, &[]);
    let upload = |n: usize, identity: usize| {
        let (image, photo) = (Platform::image(n), photo(n as u64, &[identity]));
        platform.put(&format!("originals/{image}.jpg"), &photo.jpeg);
        platform.put_image(&image);
        platform.send(&[created(&image)]);
        platform.drain();
    };
    for (n, identity) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
        upload(n, identity);
    }
    let faces = |persons: &[&str]| persons.iter().map(|person| ((*person).to_owned(), 1)).collect::<Vec<_>>();
    assert_eq!(server.enrolled_faces(), faces(&["person1", "person2"]));
    let merge = platform.command(["persons", "merge", "person2", "person1"]).output().unwrap();
    assert!(merge.status.success(), "{}", String::from_utf8_lossy(&merge.stderr));
    platform.put_limit(crate::harness::ADA, 10);
    platform.send(&[delete(&Platform::image(4))]);
    platform.drain();
    assert_eq!(server.enrolled_faces(), faces(&["person1", "person2"]), "another photo of person2 is deleted");
    platform.send(&[delete(&Platform::image(2))]);
    platform.drain();
    assert_eq!(server.enrolled_faces(), faces(&["person1"]), "the photo of the face of person2 is deleted");
    assert_eq!(platform.dead_letters().len(), 0);
}

/// Asserts that one photo was committed once, that one face of its person is enrolled, and that the next photo matches it.
fn check_enrolled_once(platform: &Platform, server: &RekognitionServer) {
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 1, "not committed again");
    assert_eq!(server.enrolled_faces(), [("person1".to_owned(), 1)], "one enrolled face");
    platform.sparks.assert_crops();
    platform.send(&[created(&platform.upload(1))]);
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_eq!(platform.persons_in(&Platform::image(1)), ["person1"]);
}

#[test]
fn forgotten_persons_are_removed_from_the_collection() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 6, 6, &[]);
    platform.send(&(0..6).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    platform.drain();
    let before = server.enrolled_faces();
    assert_eq!(before.len(), persons(&platform));
    platform.put_limit(crate::harness::ADA, 10);
    platform.send(&(0..5).map(|n| delete(&Platform::image(n))).collect::<Vec<_>>());
    platform.drain();
    let known: Vec<String> = server.enrolled_faces().into_iter().map(|(person, _)| person).collect();
    let rows = platform.sparks.json(["query", "persons"]);
    let rows = rows["persons"].as_array().unwrap().iter().map(|row| row["personId"].as_str().unwrap().to_owned());
    let mut rows: Vec<String> = rows.collect();
    rows.sort_by_key(|person| person.trim_start_matches("person").parse::<u32>().unwrap());
    assert_eq!(known, rows);
    assert!(known.len() < before.len(), "no person was forgotten");
}

#[test]
fn photos_too_small_for_the_service_have_no_faces() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 1, 1, &[]);
    let tiny = image::RgbImage::from_pixel(79, 300, image::Rgb([9, 99, 200]));
    let empty = image::RgbImage::from_pixel(300, 300, image::Rgb([9, 99, 200]));
    for (n, pixels) in [(1, tiny), (2, empty)] {
        let mut bytes = std::io::Cursor::new(Vec::new());
        pixels.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
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
    assert_eq!(server.take_calls(), BTreeMap::from([("DetectFaces".to_owned(), 1)]), "the small one is not sent");
}

#[test]
fn no_message_is_received_while_the_service_is_down() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 24, 5, &[]);
    let images: Vec<String> = (0..24).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    server.configure(|options| options.injected_failure = Some(InjectedFailure::Outage));
    platform.send(&images[..2].iter().map(|image| created(image)).collect::<Vec<_>>());
    check_outage(&platform, &worker, &images[2..], || server.configure(|options| options.injected_failure = None));
    check_outcome(&platform, 5);
}

#[test]
fn no_message_becomes_a_dead_letter_while_the_service_throttles() {
    let server = RekognitionServer::start();
    let platform = platform(&server, 24, 5, &[]);
    let images: Vec<String> = (0..24).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    let throttle = Throttle { per_second: 0.001, error: ThrottleError::ProvisionedThroughput };
    server.configure(|options| options.throttle = Some(throttle));
    platform.send(&images[..2].iter().map(|image| created(image)).collect::<Vec<_>>());
    check_outage(&platform, &worker, &images[2..], || server.configure(|options| options.throttle = None));
    assert!(worker.log().contains("throttled"), "{}", worker.log());
    check_outcome(&platform, 5);
}

#[test]
fn no_message_becomes_a_dead_letter_while_one_operation_fails() {
    let server = RekognitionServer::start();
    let proxy = server.runtime.block_on(Proxy::start(&server.endpoint()));
    let platform = platform(&server, 24, 5, &[]);
    let fails = |target: &str| target.ends_with(".SearchFacesByImage");
    proxy.intercept(move |target, _| fails(target).then(|| (500, r#"{"__type":"InternalServerError"}"#.to_owned())));
    platform.send(&(0..24).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    let worker = platform.worker(&[("SPARKS_AWS_ENDPOINTS_REKOGNITION", &proxy.endpoint())]);
    sleep(Duration::from_secs(8));
    assert_eq!(platform.dead_letters().len(), 0, "{}", worker.log());
    proxy.intercept(|_, _| None);
    within(Duration::from_secs(90), "all messages are settled", &mut || platform.unsettled() == 0);
    check_outcome(&platform, 5);
}

#[test]
fn a_missing_collection_loses_nothing_and_names_the_remedy() {
    let server = RekognitionServer::start();
    let platform = Platform::new(4, 2).with(server.settings());
    platform.send(&(0..4).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    let worker = platform.worker(&[]);
    eventually("the worker is not ready", || worker.get("/readyz").0 == 503);
    assert!(worker.get("/readyz").1.contains("sparks setup"), "{}", worker.get("/readyz").1);
    let doctor = platform.command(["doctor"]).output().unwrap();
    assert!(!doctor.status.success());
    let text = String::from_utf8(doctor.stdout).unwrap();
    assert!(text.contains("collection platform: does not exist -> create it with `sparks setup`"), "{text}");
    sleep(Duration::from_secs(2));
    assert!(platform.command(["setup"]).status().unwrap().success());
    eventually("all messages are settled", || platform.unsettled() == 0);
    check_outcome(&platform, 2);
}
