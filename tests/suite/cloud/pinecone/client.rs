//! Pinecone's own client against the index that stands in for Pinecone, and beside ours: both speak of the same things.

use std::{path::Path, process::Command};

use serde_json::{Value, json};
use sparks_engine::Collection;
use sparks_tests::{pinecone::PineconeServer, samples::person, venv::interpreter};

use super::{DIMENSIONS, MODEL, empty, lesson, named, nearest, signature, who};

/// The client, and the version that the tests were written against.
const CLIENT: &str = "pinecone==10.2.0";

/// Lets the other client do what the script calls so.
async fn client(server: &PineconeServer, args: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/cloud/pinecone/client.py");
    let (endpoint, args): (_, Vec<String>) = (server.endpoint(), args.iter().map(ToString::to_string).collect());
    let ask = move || {
        let mut command = Command::new(interpreter("pinecone", CLIENT));
        command.arg(script).arg(endpoint).args(args).env("PINECONE_API_KEY", PineconeServer::KEY);
        command.output().unwrap()
    };
    let output = tokio::task::spawn_blocking(ask).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_gets_along_with_the_index() {
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
    let told = ["dimension", "metric", "total", "kind"].map(|name| stats[name].clone());
    assert_eq!(told, [json!(DIMENSIONS), json!("cosine"), json!(248), json!("dense")]);
    assert_eq!(seen["emptied"], 0);
    let errors = seen["errors"].as_object().unwrap();
    let dimension = format!("Vector dimension 3 does not match the dimension of the index {DIMENSIONS}");
    for (what, status, words) in [
        ("dimension", json!(400), dimension.as_str()),
        ("namespace", json!(404), "Namespace not found"),
        ("key", json!(401), "Unauthorized"),
        // The client itself refuses these, in the words of the service.
        ("metadata", Value::Null, "Metadata value must be a string, number, boolean or list of strings, got '{"),
    ] {
        assert_eq!(errors[what]["status"], status, "{what}: {errors:?}");
        assert!(errors[what]["words"].as_str().unwrap().contains(words), "{errors:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_clients_see_the_same() {
    let (server, index) = empty().await;
    let lessons = [lesson(1, 1, MODEL, 0.0), lesson(1, 2, MODEL, 0.4), lesson(2, 3, MODEL, 0.8)];
    index.learn(&lessons, false).await.unwrap();
    let probe = json!(signature(0.1).to_unit()).to_string();
    let seen = client(&server, &["look", "sparks:synthetic-1", &probe]).await;
    let ours = nearest(&index, MODEL, 0.1, 9).await;
    let theirs = seen["matches"].as_array().unwrap();
    assert_eq!(theirs.len(), 3);
    for (number, similarity) in &ours {
        let name = json!(format!("person{number}"));
        let theirs = theirs.iter().find(|found| found["metadata"]["person"] == name).unwrap();
        assert!((theirs["score"].as_f64().unwrap() - f64::from(*similarity)).abs() < 1e-4, "{theirs}");
    }
    let (_, face) = named(&lessons[0]);
    assert_eq!(theirs[0]["id"], format!("person1#{face}"));
    let metadata = json!({ "person": "person1", "image": face.image, "face": 0 });
    assert_eq!(theirs[0]["metadata"], metadata);
    let length: f64 = seen["values"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap().powi(2)).sum();
    assert!((length - 1.0).abs() < 1e-5, "{length}");
    // What the other client copies is known to ours, and what ours forgets is gone for the other.
    client(&server, &["copy", "sparks:synthetic-1", "person1#", "person7#"]).await;
    assert_eq!(who(&nearest(&index, MODEL, 0.0, 9).await), [1, 7, 2]);
    index.forget(&[person(1), person(7)]).await.unwrap();
    let seen = client(&server, &["look", "sparks:synthetic-1", &probe]).await;
    assert_eq!(seen["matches"].as_array().unwrap().len(), 1);
}
