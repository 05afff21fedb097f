//! A rolling deployment: a newer release has written an event that this one cannot read.

use std::{thread::sleep, time::Duration};

use crate::harness::{Platform, created, eventually};

#[test]
fn an_event_of_a_newer_release_is_an_outage_and_no_dead_letter() {
    let platform = Platform::new(6, 3);
    let images: Vec<String> = (0..6).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    platform.send(&images[..2].iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("the first photos are processed", || platform.unsettled() == 0);

    let database = platform.sparks.database();
    database
        .execute_batch(
            "BEGIN IMMEDIATE;
             INSERT INTO log (seq, event_id, actor, when_occurred, event_type, event_data, identity)
             SELECT seq + 1, '11111111-2222-5333-8444-555555555555', 'sparks/99.0.0', '2030-01-01T00:00:00.000Z',
                    'PersonFramed', '{\"v\":1}', 1 FROM heads WHERE lane = 'EVENTS';
             UPDATE heads SET seq = seq + 1 WHERE lane = 'EVENTS';
             UPDATE heads SET seq = (SELECT max(seq) FROM log) WHERE lane = 'IDENTITY';
             COMMIT;",
        )
        .unwrap();
    platform.send(&images[2..].iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("the worker is not ready", || worker.get("/readyz").0 == 503);
    let (_, reason) = worker.get("/readyz");
    assert!(reason.contains("PersonFramed") && reason.contains("upgrade"), "{reason}");
    assert_eq!(worker.get("/healthz").0, 200, "healthy, but not ready");
    sleep(Duration::from_secs(3));
    assert_eq!(platform.unsettled(), 4, "no message is settled");
    assert_eq!(platform.dead_letters().len(), 0);
    let attempts = "SELECT max(receives) FROM messages";
    let attempts: i64 = database.query_row(attempts, [], |row| row.get(0)).unwrap();
    assert!(attempts <= 1, "the outage counts no attempts: {attempts}");

    // As if the worker were upgraded: an event that it can read.
    database
        .execute_batch(
            "DROP TRIGGER log_is_append_only_update;
             UPDATE log SET event_type = 'NumbersReserved', event_data = '{\"v\":1,\"identity_seq\":0,\"up_to\":1}'
             WHERE event_type = 'PersonFramed';",
        )
        .unwrap();
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_eq!((platform.sparks.events_of("PhotoProcessed").len(), platform.dead_letters().len()), (6, 0));
    assert_eq!(platform.sparks.json(["verify"])["clean"], true);
}
