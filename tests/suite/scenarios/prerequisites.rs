//! Messages that arrive before the row or object they need.

use std::time::Duration;

use serde_json::json;

use crate::harness::{ADA, Platform, created, eventually, within};

#[test]
fn a_message_before_its_row_is_processed_once_the_row_exists() {
    let platform = Platform::new(1, 1);
    let image = Platform::image(0);
    platform.put(&format!("originals/{image}.jpg"), &platform.photo(0));
    let worker = platform.worker(&[]);
    platform.send(&[created(&image)]);
    eventually("the message is deferred several times", || {
        worker.metric("sparks_retries_total{class=\"not_yet\"}") >= 3.0
    });
    assert_eq!(worker.metric("sparks_stage_seconds_count{stage=\"fetch\"}"), 0.0, "the original was not fetched");
    assert_eq!(worker.metric("sparks_stage_seconds_count{stage=\"render\"}"), 0.0, "nothing was rendered");

    platform.put_image(&image);
    within(Duration::from_secs(10), "the photo is processed", &mut || platform.sparks.count("log") > 0);
    eventually("the message is settled", || platform.unsettled() == 0);
    assert_eq!(platform.persons_in(&image), ["person1"]);
    assert_eq!(platform.dead_letters().len(), 0);
    assert!(worker.log().contains("no-image-row"));
}

#[test]
fn a_missing_row_or_object_is_a_dead_letter_after_the_timeout() {
    let platform = Platform::new(1, 1);
    let [no_row, no_object] = [Platform::image(1), Platform::image(2)];
    platform.put(&format!("originals/{no_row}.jpg"), &platform.photo(0));
    platform.put_image(&no_object);
    let profile = json!({
        "bucketName": crate::harness::BUCKET, "objectKey": format!("profiles/{ADA}/me.jpg"),
        "isProfilePicture": true, "userEmail": ADA,
    });
    let _worker = platform.worker(&[("SPARKS_QUEUE_PREREQUISITE_TIMEOUT_SECONDS", "3")]);
    platform.send(&[created(&no_row), created(&no_object), profile.to_string()]);
    eventually("all are dead letters", || platform.sparks.count("dead_letters") == 3);
    let dead_letters = platform.dead_letters();
    let mut causes: Vec<_> = dead_letters.iter().map(|letter| letter["cause"].as_str().unwrap()).collect();
    causes.sort_unstable();
    assert_eq!(causes, ["no-image-row", "no-object", "no-user-row"]);
    let reason =
        |cause: &str| dead_letters.iter().find(|letter| letter["cause"] == cause).unwrap()["reason"].to_string();
    assert!(reason("no-image-row").contains(&no_row), "{}", reason("no-image-row"));
    assert!(reason("no-object").contains(&no_object));
    assert!(reason("no-user-row").contains(ADA));
    assert_eq!(platform.sparks.events().len(), 0);
}

/// A deferred message is queued behind newer messages.
#[test]
fn thousands_of_deferred_messages_do_not_delay_new_ones() {
    let platform = Platform::new(20, 3);
    let waiting: Vec<String> = (1000..4000).map(|n| created(&Platform::image(n))).collect();
    platform.send(&waiting);
    let worker = platform.worker(&[]);
    eventually("all are deferred", || worker.metric("sparks_retries_total{class=\"not_yet\"}") >= 3000.0);
    let images: Vec<String> = (0..20).map(|n| platform.upload(n)).collect();
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("new photos are processed", || platform.sparks.events_of("PhotoProcessed").len() == 20);
    assert_eq!(platform.unsettled(), 3000, "the deferred ones remain");
    assert_eq!(platform.dead_letters().len(), 0);
}

/// The platform replaces whole rows, which removes the worker's attributes until the message is delivered again.
#[test]
fn redelivery_restores_attributes_that_the_platform_overwrote() {
    let platform = Platform::new(1, 1);
    let image = platform.upload(0);
    platform.send(&[created(&image)]);
    platform.drain();
    let whole = platform.image_row(&image).unwrap();
    platform.put_image(&image);
    assert_eq!(platform.image_row(&image).unwrap()["images"], json!(null));

    platform.send(&[created(&image)]);
    platform.drain();
    assert_eq!(platform.image_row(&image).unwrap(), whole);
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 1);
}
