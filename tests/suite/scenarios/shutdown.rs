//! Shutdown of a worker, and its health endpoints, metrics and logs.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Platform, Worker, created, eventually};

/// Starts a worker with more messages than it can process in a second.
fn under_load(settings: &[(&str, &str)]) -> (Platform, Worker) {
    let platform = Platform::new(60, 8);
    let messages: Vec<String> = (0..60).map(|n| created(&platform.upload(n))).collect();
    platform.send(&messages);
    let worker = platform.worker(settings);
    eventually("processing has begun", || platform.sparks.count("log") > 0);
    (platform, worker)
}

#[test]
fn sigterm_finishes_messages_in_flight_and_leaves_the_rest() {
    let (platform, mut worker) = under_load(&[]);
    worker.signal("TERM");
    let signalled = Instant::now();
    assert_eq!(worker.wait_for_exit(Duration::from_secs(25)), Some(0), "{}", worker.log());
    println!("stopped after {:?}", signalled.elapsed());
    let left = platform.unsettled();
    assert!(left > 0, "the load is too small");
    let leased = "SELECT count(*) FROM messages WHERE owner IS NOT NULL";
    assert_eq!(platform.sparks.database().query_row(leased, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    let receives = "SELECT max(receives) FROM messages";
    assert_eq!(platform.sparks.database().query_row(receives, [], |row| row.get::<_, i64>(0)).unwrap(), 0);

    // Another worker receives the rest at once, not after a visibility timeout.
    let started = Instant::now();
    platform.drain();
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 60);
}

#[test]
fn without_a_grace_period_messages_are_released_at_once() {
    let (platform, mut worker) = under_load(&[("SPARKS_RUN_GRACE_SECONDS", "0")]);
    worker.signal("INT");
    assert_eq!(worker.wait_for_exit(Duration::from_secs(10)), Some(0), "{}", worker.log());
    let leased = "SELECT count(*) FROM messages WHERE owner IS NOT NULL";
    assert_eq!(platform.sparks.database().query_row(leased, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    platform.drain();
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 60);
    assert_eq!(platform.dead_letters().len(), 0);
}

#[test]
fn health_metrics_and_logs_report_each_photo() {
    let platform = Platform::new(3, 2);
    let worker = platform.worker(&[]);
    let images: Vec<String> = (0..3).map(|n| platform.upload(n)).collect();
    platform.send(&images.iter().map(|image| created(image)).chain(["{".to_owned()]).collect::<Vec<_>>());
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_eq!((worker.get("/healthz").0, worker.get("/readyz").0, worker.get("/nothing").0), (200, 200, 404));
    assert_eq!(worker.metric("sparks_photos_total{outcome=\"committed\"}"), 3.0);
    assert_eq!(worker.metric("sparks_stage_seconds_count{stage=\"analyze\"}"), 3.0);
    // Gauges are updated every second.
    eventually("the gauges count the dead letter and the persons", || {
        worker.metric("sparks_dead_letters") == 1.0
            && worker.metric("sparks_gallery_persons") >= 1.0
            && worker.metric("sparks_queue_messages{state=\"waiting\"}") == 0.0
    });

    for image in images {
        let line = worker
            .log()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .find(|line| line["image"] == image.as_str() && line["event_type"] == "PhotoProcessed");
        let line = line.expect("a log line about the photo");
        assert!(line["message_id"].is_string() && line["event"].is_string(), "{line}");
    }
}
