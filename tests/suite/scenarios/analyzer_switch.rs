//! Switching from Rekognition to a local analyzer and back without losing persons.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Output},
    sync::Arc,
};

use serde_json::{Value, json};
use sparks_faces::SyntheticEngine;
use sparks_rekognition::{Model, Options, Server, Service};
use sparks_tests::worker::image_processor;
use tokio::runtime::Runtime;

use crate::{ground_truth::wrong_tags, sparks::Sparks};

/// A Rekognition server that detects synthetic faces.
struct Rekognition {
    server: Server,
    counted: RefCell<BTreeMap<String, u64>>,
    _runtime: Runtime,
}

impl Rekognition {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let model = Model::new("1.0", 0.6).unwrap();
        let service = Service::new(Arc::new(SyntheticEngine), Arc::new(image_processor()), model, Options::default());
        let server = runtime.block_on(Server::bind("127.0.0.1:0", Arc::new(service))).unwrap();
        Self { server, counted: RefCell::default(), _runtime: runtime }
    }

    fn create_collection(&self, name: &str) {
        let body = json!({ "CollectionId": name }).to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-amz-json-1.1\r\nconnection: close\r\n\
             x-amz-target: RekognitionService.CreateCollection\r\nx-amz-date: 20260101T000000Z\r\n\
             authorization: AWS4-HMAC-SHA256 Credential=A/20260101/eu-central-1/rekognition/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature=00\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(self.server.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }

    /// Returns the number of calls of each operation since the last call of this method.
    fn calls(&self) -> BTreeMap<String, u64> {
        let calls = self.server.service().calls();
        let before = self.counted.replace(calls.clone());
        let since =
            |(name, count): (String, u64)| (name.clone(), count - before.get(&name).copied().unwrap_or_default());
        calls.into_iter().map(since).filter(|(_, count)| *count > 0).collect()
    }

    /// Returns a command that uses this service.
    fn command(&self, sparks: &Sparks, collection: &str, args: &[&str]) -> Command {
        let mut command = sparks.command(args);
        command
            .env("SPARKS_AWS_REGION", "eu-central-1")
            .env("SPARKS_AWS_ENDPOINTS_REKOGNITION", format!("http://{}", self.server.address()))
            .env("SPARKS_REKOGNITION_COLLECTION", collection)
            .env("SPARKS_REKOGNITION_CALLS_PER_SECOND", "10000")
            .env("SPARKS_FACES_ANALYZER", "rekognition")
            .env("SPARKS_FACES_SECONDARY_ANALYZER", "synthetic")
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret");
        command
    }

    fn json(&self, sparks: &Sparks, collection: &str, args: &[&str]) -> Value {
        let output: Output = self.command(sparks, collection, args).arg("--json").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn analyzers(sparks: &Sparks) -> Vec<String> {
    let events = sparks.events_of("PhotoProcessed");
    events.iter().map(|event| event["event_data"]["analyzer"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn switching_to_a_local_analyzer_and_back_keeps_all_names() {
    let (sparks, rekognition) = (Sparks::new(), Rekognition::start());
    rekognition.create_collection("first");
    let album = sparks.synth(16, 4, &[]);
    let folder = album.to_str().unwrap();
    let summary = rekognition.json(&sparks, "first", &["ingest", folder, "--jobs", "1"]);
    assert_eq!((&summary["processed"], &summary["persons_new"]), (&json!(16), &json!(4)), "{summary}");
    let faces = summary["faces"].as_u64().unwrap();
    let rename = "UPDATE items SET item = json_set(item, '$.displayName', 'Ann') WHERE PK = 'PERSON#person1'";
    assert_eq!(sparks.database().execute(rename, []).unwrap(), 1);
    assert_eq!(rekognition.json(&sparks, "first", &["cost"])["work"][0]["analyzer"], "rekognition");
    rekognition.calls();

    // To the other analyzer: needs no call to the service.
    let to_local = ["redecide", "--faces", "synthetic"];
    let report = rekognition.json(&sparks, "first", &to_local);
    assert_eq!((&report["agreement"], &report["differences"]), (&json!(1.0), &json!([])), "{report}");
    let done = rekognition.json(&sparks, "first", &[&to_local[..], &["--apply"]].concat());
    assert_eq!(done["photos_changed"], 16, "{done}");
    assert_eq!(rekognition.calls(), BTreeMap::new());
    assert!(analyzers(&sparks)[16..].iter().all(|analyzer| analyzer == "synthetic"));
    assert_eq!((sparks.json(["verify"])["clean"].clone(), wrong_tags(&album, &sparks)), (json!(true), 0));

    // Back to an empty collection: a dry run costs calls and enrolls no face.
    rekognition.create_collection("second");
    rekognition.calls();
    let to_service = ["redecide", "--faces", "rekognition"];
    let report = rekognition.json(&sparks, "second", &to_service);
    assert_eq!(report["agreement"], 1.0, "{report}");
    let count = |calls: &BTreeMap<String, u64>, name: &str| calls.get(name).copied().unwrap_or_default();
    let calls = rekognition.calls();
    assert_eq!([count(&calls, "DetectFaces"), count(&calls, "SearchFacesByImage")], [16, faces], "{calls:?}");
    assert_eq!(calls.len(), 2, "{calls:?}");
    let unconfirmed =
        rekognition.command(&sparks, "second", &[&to_service[..], &["--apply"]].concat()).output().unwrap();
    assert_eq!(unconfirmed.status.code(), Some(2), "{}", String::from_utf8_lossy(&unconfirmed.stderr));
    assert_eq!(rekognition.calls(), BTreeMap::new());
    rekognition.json(&sparks, "second", &[&to_service[..], &["--apply", "--yes"]].concat());
    assert_eq!(count(&rekognition.calls(), "IndexFaces"), 4, "each person once");
    assert_eq!(
        rekognition.json(&sparks, "second", &[&to_service[..], &["--apply", "--yes"]].concat())["photos_changed"],
        0
    );
    assert_eq!(count(&rekognition.calls(), "IndexFaces"), 0);
    assert_eq!((sparks.json(["verify"])["clean"].clone(), wrong_tags(&album, &sparks)), (json!(true), 0));
    assert_eq!(sparks.json(["query", "person", "person1"])["displayName"], "Ann");

    // Later photos match the existing persons.
    std::fs::rename(&album, sparks.path("before")).unwrap();
    let more = sparks.synth(24, 4, &[]);
    let summary = rekognition.json(&sparks, "second", &["ingest", more.to_str().unwrap(), "--jobs", "1"]);
    assert_eq!((&summary["persons_new"], &summary["processed"]), (&json!(0), &json!(8)), "{summary}");
}
