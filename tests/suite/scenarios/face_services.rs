//! Checks that apply to every face service.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread::sleep,
    time::Duration,
};

use serde_json::Value;
use sparks_tests::pinecone_server::PineconeServer;
use tokio::runtime::Runtime;

use crate::harness::{Platform, Worker, created, eventually, within};

/// A local Pinecone server with its own runtime.
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

    /// Returns the environment variables of a worker that uses this index.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("SPARKS_FACES_INDEX", "pinecone".into()),
            ("SPARKS_PINECONE_HOST", self.server.endpoint()),
            ("PINECONE_API_KEY", PineconeServer::KEY.into()),
        ]
    }

    /// Returns the number of calls of each operation since the last call of this method.
    pub fn take_calls(&self) -> BTreeMap<String, u64> {
        self.server.take_calls().into_iter().map(|(operation, calls)| (operation, calls as u64)).collect()
    }
}

/// Uploads the album, starts four workers, and waits until all messages are settled.
pub fn four_workers(platform: &Platform) -> Vec<Worker> {
    let images: Vec<String> = (0..platform.album_size()).map(|n| platform.upload(n)).collect();
    let messages: Vec<String> = images.iter().map(|image| created(image)).collect();
    platform.send(&messages);
    let workers: Vec<Worker> = (0..4).map(|_| platform.worker(&[])).collect();
    within(Duration::from_secs(240), "all messages are settled", &mut || platform.unsettled() == 0);
    workers
}

/// Asserts that each identity is one person, every tag is right, and the table matches the log.
pub fn check_outcome(platform: &Platform, identities: usize) {
    let processed = platform.sparks.events_of("PhotoProcessed");
    assert_eq!(processed.len(), platform.album_size());
    assert_eq!(persons(platform), identities);
    assert_eq!(wrong_tags(platform), 0);
    assert_eq!(platform.dead_letters().len(), 0);
    assert_eq!(platform.sparks.json(["verify"])["clean"], true);
    platform.sparks.assert_crops();
}

/// Returns the number of persons in the table.
pub fn persons(platform: &Platform) -> usize {
    platform.sparks.items().iter().filter(|item| item["entityType"] == "PERSON").count()
}

/// Returns the number of detected faces and of new persons.
pub fn faces_and_new_persons(platform: &Platform) -> (u64, u64) {
    let processed = platform.sparks.events_of("PhotoProcessed");
    let faces: Vec<&Value> =
        processed.iter().flat_map(|event| event["event_data"]["faces"].as_array().unwrap()).collect();
    let new_persons = faces.iter().filter(|face| face["verdict"].get("founded").is_some()).count();
    (faces.len() as u64, new_persons as u64)
}

/// Returns the number of photos with a wrong tag, if each person stands for the identity with which it occurs most often.
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
        let counts = together.iter().filter(|((known, _), _)| known == person);
        counts.max_by_key(|(_, times)| **times).map(|((_, identity), _)| *identity).unwrap()
    };
    let identities_of = |row: &Vec<String>| -> BTreeSet<u64> { row.iter().map(&stands_for).collect() };
    rows.iter().zip(&truth).filter(|(row, truth)| identities_of(row) != **truth || row.len() != truth.len()).count()
}

/// Returns the duration of outages: `SPARKS_TEST_OUTAGE_SECONDS`, or 4 s, in which a worker would poll twenty times.
fn outage_duration() -> Duration {
    let seconds = std::env::var("SPARKS_TEST_OUTAGE_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(4))
}

/// Asserts that during an outage of the service no message is received, and that all are settled after its end.
pub fn check_outage(platform: &Platform, worker: &Worker, images: &[String], end: impl FnOnce()) {
    eventually("the circuit breaker opens", || worker.metric("sparks_breaker_open") == 1.0);
    assert_eq!(worker.get("/readyz").0, 503);
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    sleep(outage_duration());
    assert_eq!(platform.dead_letters().len(), 0);
    let waiting: i64 = platform
        .sparks
        .database()
        .query_row("SELECT count(*) FROM messages WHERE receives = 0", [], |row| row.get(0))
        .unwrap();
    assert!(
        waiting as usize >= images.len() - 8,
        "messages were received during the outage: only {waiting} of {} were not",
        images.len()
    );
    end();
    within(Duration::from_secs(60), "all messages are settled", &mut || platform.unsettled() == 0);
    assert_eq!(platform.dead_letters().len(), 0);
    // The words that operators search for.
    for words in ["stopped receiving messages", "dependencies recovered"] {
        assert!(worker.log().contains(words), "the log does not contain `{words}`:\n{}", worker.log());
    }
}
