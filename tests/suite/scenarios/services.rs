//! Services that know faces: what holds for each of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread::sleep,
    time::Duration,
};

use serde_json::Value;
use sparks_tests::pinecone::PineconeServer;
use tokio::runtime::Runtime;

use crate::platform::{Platform, Worker, created, eventually, within};

/// A Pinecone index with threads of its own.
pub struct Pinecone {
    pub server: PineconeServer,
    _runtime: Runtime,
}

impl Pinecone {
    pub fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(PineconeServer::start(sparks_faces::DIMENSIONS));
        Self { server, _runtime: runtime }
    }

    /// Settings of a worker that knows persons by this index.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("SPARKS_FACES_INDEX", "pinecone".into()),
            ("SPARKS_PINECONE_HOST", self.server.endpoint()),
            ("PINECONE_API_KEY", PineconeServer::KEY.into()),
        ]
    }

    /// How often each operation was called since the last time.
    pub fn take_calls(&self) -> BTreeMap<String, u64> {
        self.server.take_calls().into_iter().map(|(operation, calls)| (operation, calls as u64)).collect()
    }
}

/// Uploads all pictures, works them off with four workers, and waits until all are settled.
pub fn four_workers(platform: &Platform) -> Vec<Worker> {
    let images: Vec<String> = (0..platform.pictures()).map(|n| platform.upload(n)).collect();
    let messages: Vec<String> = images.iter().map(|image| created(image)).collect();
    platform.send(&messages);
    let workers: Vec<Worker> = (0..4).map(|_| platform.worker(&[])).collect();
    within(Duration::from_secs(240), "all are settled", &mut || platform.unsettled() == 0);
    workers
}

/// Everybody is one person, every tag is right, and the log agrees with the table.
pub fn check_outcome(platform: &Platform, identities: usize) {
    let processed = platform.sparks.events_of("PhotoProcessed");
    assert_eq!(processed.len(), platform.pictures());
    assert_eq!(persons(platform), identities);
    assert_eq!(wrong_tags(platform), 0);
    assert_eq!(platform.letters().len(), 0);
    assert_eq!(platform.sparks.json(["verify"])["clean"], true);
    platform.sparks.assert_crops();
}

/// How many persons the table has.
pub fn persons(platform: &Platform) -> usize {
    platform.sparks.items().iter().filter(|item| item["entityType"] == "PERSON").count()
}

/// How many faces were found, and how many persons founded.
pub fn faces_and_founded(platform: &Platform) -> (u64, u64) {
    let processed = platform.sparks.events_of("PhotoProcessed");
    let faces: Vec<&Value> =
        processed.iter().flat_map(|event| event["event_data"]["faces"].as_array().unwrap()).collect();
    let founded = faces.iter().filter(|face| face["verdict"].get("founded").is_some()).count();
    (faces.len() as u64, founded as u64)
}

/// Photos whose persons are not who they should be, if each person is who they were first.
fn wrong_tags(platform: &Platform) -> usize {
    let truth: Vec<BTreeSet<u64>> = platform.truth().into_values().collect();
    let mut together: BTreeMap<(String, u64), usize> = BTreeMap::new();
    let rows: Vec<Vec<String>> = (0..truth.len()).map(|n| platform.persons_in(&Platform::image(n))).collect();
    for (row, truth) in rows.iter().zip(&truth) {
        for (person, identity) in row.iter().flat_map(|person| truth.iter().map(move |identity| (person, identity))) {
            *together.entry((person.clone(), *identity)).or_default() += 1;
        }
    }
    let stands_for = |person: &String| {
        let theirs = together.iter().filter(|((known, _), _)| known == person);
        theirs.max_by_key(|(_, times)| **times).map(|((_, identity), _)| *identity).unwrap()
    };
    let named = |row: &Vec<String>| -> BTreeSet<u64> { row.iter().map(&stands_for).collect() };
    rows.iter().zip(&truth).filter(|(row, truth)| named(row) != **truth || row.len() != truth.len()).count()
}

/// How long an outage lasts: long enough to tell, unless somebody wants it longer.
fn outage() -> Duration {
    let seconds = std::env::var("SPARKS_TEST_OUTAGE_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(12))
}

/// For a while the service answers nothing useful: nobody polls, and nothing is lost.
pub fn check_outage(platform: &Platform, worker: &Worker, images: &[String], end: impl FnOnce()) {
    eventually("the outage is noticed", || worker.metric("sparks_breaker_open") == 1.0);
    assert_eq!(worker.get("/readyz").0, 503);
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    sleep(outage());
    assert_eq!(platform.letters().len(), 0);
    let waiting: i64 = platform
        .sparks
        .database()
        .query_row("SELECT count(*) FROM messages WHERE receives = 0", [], |row| row.get(0))
        .unwrap();
    assert!(waiting as usize >= images.len() - 8, "nobody polls: {waiting} of {} were never received", images.len());
    end();
    within(Duration::from_secs(60), "everything is settled", &mut || platform.unsettled() == 0);
    assert_eq!(platform.letters().len(), 0);
}
