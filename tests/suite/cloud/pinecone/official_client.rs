//! Pinecone's official client on the local server, alone and beside the adapter: both see the same vectors.

use std::{path::Path, process::Command};

use serde_json::{Value, json};
use sparks_engine::FaceCollection;
use sparks_tests::{pinecone_server::PineconeServer, samples::person, venv::interpreter};

use super::{DIMENSIONS, MODEL, empty_index, enrollment, face_of, nearest, numbers, signature};

/// The Python package of the client and the version that the tests were written against.
const CLIENT: &str = "pinecone==10.2.0";

/// Runs an action of the script with the official client.
async fn client(server: &PineconeServer, args: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/cloud/pinecone/official_client.py");
    let (endpoint, args): (_, Vec<String>) = (server.endpoint(), args.iter().map(ToString::to_string).collect());
    let run = move || {
        let mut command = Command::new(interpreter("pinecone", CLIENT));
        command.arg(script).arg(endpoint).args(args).env("PINECONE_API_KEY", PineconeServer::KEY);
        command.output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_works_with_the_local_server() {
    let server = PineconeServer::start(DIMENSIONS).await;
    let seen = client(&server, &["tour"]).await;
    assert_eq!(seen["upserted"], 250);
    assert_eq!(seen["matches"], json!([["a#001", 1.0, { "n": 1, "kind": "x" }]]));
    assert_eq!(seen["values"].as_array().unwrap().len(), DIMENSIONS);
    assert_eq!(seen["by_id"], json!("a#001"));
    assert_eq!(seen["fetched"], json!({ "a#001": { "n": 1, "kind": "x" }, "a#002": { "n": 2, "kind": "x" } }));
    assert_eq!(seen["pages"], json!([100, 100, 50]));
    assert_eq!(seen["page"], json!([30, true]));
    assert_eq!(seen["updated"], json!({ "n": 1, "kind": "y" }));
    assert_eq!(seen["left"], 248);
    let stats = &seen["stats"];
    assert_eq!(stats["namespaces"], json!({ "n s": 248 }), "{stats}");
    let values = ["dimension", "metric", "total", "kind"].map(|name| stats[name].clone());
    assert_eq!(values, [json!(DIMENSIONS), json!("cosine"), json!(248), json!("dense")]);
    assert_eq!(seen["emptied"], 0);
    let errors = seen["errors"].as_object().unwrap();
    let dimension = format!("Vector dimension 3 does not match the dimension of the index {DIMENSIONS}");
    for (case, status, message) in [
        ("dimension", json!(400), dimension.as_str()),
        ("namespace", json!(404), "Namespace not found"),
        ("key", json!(401), "Unauthorized"),
        // The client refuses these itself, with the message of the service.
        ("metadata", Value::Null, "Metadata value must be a string, number, boolean or list of strings, got '{"),
    ] {
        assert_eq!(errors[case]["status"], status, "{case}: {errors:?}");
        assert!(errors[case]["message"].as_str().unwrap().contains(message), "{errors:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adapter_and_official_client_see_the_same_vectors() {
    let (server, index) = empty_index().await;
    let enrollments = [enrollment(1, 1, MODEL, 0.0), enrollment(1, 2, MODEL, 0.4), enrollment(2, 3, MODEL, 0.8)];
    index.enroll(&enrollments, false).await.unwrap();
    let probe = json!(signature(0.1).to_unit()).to_string();
    let seen = client(&server, &["query", "sparks:synthetic-1", &probe]).await;
    let own = nearest(&index, MODEL, 0.1, 9).await;
    let official = seen["matches"].as_array().unwrap();
    assert_eq!(official.len(), 3);
    for (number, similarity) in &own {
        let name = json!(format!("person{number}"));
        let official = official.iter().find(|found| found["metadata"]["person"] == name).unwrap();
        assert!((official["score"].as_f64().unwrap() - f64::from(*similarity)).abs() < 1e-4, "{official}");
    }
    let (_, face) = face_of(&enrollments[0]);
    assert_eq!(official[0]["id"], format!("person1#{face}"));
    let metadata = json!({ "person": "person1", "image": face.image, "face": 0 });
    assert_eq!(official[0]["metadata"], metadata);
    let length: f64 = seen["values"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap().powi(2)).sum();
    assert!((length - 1.0).abs() < 1e-5, "{length}");
    // The adapter finds vectors that the official client upserts, and that client does not find vectors that the adapter removes.
    client(&server, &["copy", "sparks:synthetic-1", "person1#", "person7#"]).await;
    assert_eq!(numbers(&nearest(&index, MODEL, 0.0, 9).await), [1, 7, 2]);
    index.remove_persons(&[person(1), person(7)]).await.unwrap();
    let seen = client(&server, &["query", "sparks:synthetic-1", &probe]).await;
    assert_eq!(seen["matches"].as_array().unwrap().len(), 1);
}
