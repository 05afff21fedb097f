//! What the platform has yet to make is waited for.

use std::time::Duration;

use serde_json::json;

use crate::platform::{ADA, Platform, created, eventually, within};

#[test]
fn an_event_before_its_row_is_worked_off_when_the_row_appears() {
    let platform = Platform::new(1, 1);
    let image = Platform::image(0);
    platform.put(&format!("originals/{image}.jpg"), &platform.picture(0));
    let worker = platform.worker(&[]);
    platform.send(&[created(&image)]);
    eventually("it has been looked at several times", || {
        worker.metric("sparks_retries_total{class=\"not_yet\"}") >= 3.0
    });
    assert_eq!(worker.metric("sparks_stage_seconds_count{stage=\"fetch\"}"), 0.0, "nothing was read");
    assert_eq!(worker.metric("sparks_stage_seconds_count{stage=\"render\"}"), 0.0, "nothing was decoded");

    platform.put_image(&image);
    within(Duration::from_secs(10), "the photo is processed", &mut || !platform.sparks.events().is_empty());
    eventually("the message is settled", || platform.unsettled() == 0);
    assert_eq!(platform.persons_in(&image), ["person1"]);
    assert_eq!(platform.letters().len(), 0);
    assert!(worker.log().contains("no-image-row"));
}

#[test]
fn what_never_comes_is_a_letter_with_that_reason() {
    let platform = Platform::new(1, 1);
    let [no_row, no_object] = [Platform::image(1), Platform::image(2)];
    platform.put(&format!("originals/{no_row}.jpg"), &platform.picture(0));
    platform.put_image(&no_object);
    let profile = json!({
        "bucketName": crate::platform::BUCKET, "objectKey": format!("profiles/{ADA}/me.jpg"),
        "isProfilePicture": true, "userEmail": ADA,
    });
    let _worker = platform.worker(&[("SPARKS_QUEUE_WAIT_SECONDS", "3")]);
    platform.send(&[created(&no_row), created(&no_object), profile.to_string()]);
    eventually("all are given up", || platform.letters().len() == 3);
    let letters = platform.letters();
    let mut causes: Vec<_> = letters.iter().map(|letter| letter["cause"].as_str().unwrap()).collect();
    causes.sort_unstable();
    assert_eq!(causes, ["no-image-row", "no-object", "no-user-row"]);
    let named = |cause: &str| letters.iter().find(|letter| letter["cause"] == cause).unwrap()["reason"].to_string();
    assert!(named("no-image-row").contains(&no_row), "{}", named("no-image-row"));
    assert!(named("no-object").contains(&no_object));
    assert!(named("no-user-row").contains(ADA));
    assert_eq!(platform.sparks.events().len(), 0);
}

/// Whatever waits stands in line again, behind new work.
#[test]
fn thousands_that_wait_hold_up_nobody() {
    let platform = Platform::new(20, 3);
    let waiting: Vec<String> = (1000..4000).map(|n| created(&Platform::image(n))).collect();
    platform.send(&waiting);
    let worker = platform.worker(&[]);
    eventually("all have been looked at", || worker.metric("sparks_retries_total{class=\"not_yet\"}") >= 3000.0);
    let images: Vec<String> = (0..20).map(|n| platform.upload(n)).collect();
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("new photos are processed", || platform.sparks.events_of("PhotoProcessed").len() == 20);
    assert_eq!(platform.unsettled(), 3000, "all of which wait");
    assert_eq!(platform.letters().len(), 0);
}

/// The platform writes its rows whole: what was ours in them is gone until the message comes again.
#[test]
fn a_redelivery_puts_back_what_the_platform_overwrote() {
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
