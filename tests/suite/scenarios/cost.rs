//! What faces cost, counted in the log.

use serde_json::{Value, json};

use crate::sparks::Sparks;

fn way<'a>(said: &'a Value, name: &str) -> &'a Value {
    said["ways"].as_array().unwrap().iter().find(|way| way["way"] == name).unwrap_or_else(|| panic!("{name} in {said}"))
}

#[test]
fn calls_are_counted_in_the_log_and_prices_are_settings() {
    let sparks = Sparks::new();
    let album = sparks.synth(20, 4, &[]);
    let summary = sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let said = sparks.json(["cost"]);
    assert_eq!((&said["photos"], &said["work"][0]["analyzer"]), (&json!(20), &json!("synthetic")));
    assert_eq!((&said["work"][0]["faces"], &said["work"][0]["persons_founded"]), (&summary["faces"], &json!(4)));
    let faces = summary["faces"].as_f64().unwrap() / 20.0 * 1000.0;

    let calls = &way(&said, "rekognition")["calls_per_1000_photos"];
    assert_eq!(*calls, json!({ "DetectFaces": 1000.0, "SearchFacesByImage": faces, "IndexFaces": 200.0 }));
    let local = way(&said, "local");
    assert_eq!((&local["set"], &local["ratio"]), (&json!(true), &json!(1.0)));
    let usd = |said: &Value, name: &str| way(said, name)["usd_per_1000_photos"].as_f64().unwrap();
    assert!(usd(&said, "rekognition") > usd(&said, "local_and_rekognition"), "{said}");
    assert!(usd(&said, "local_and_rekognition") > usd(&said, "local"), "{said}");

    let mut command = sparks.command(["cost", "--json"]);
    command.env("SPARKS_FACES_ANALYZER", "rekognition").env("SPARKS_FACES_COMPANION", "off");
    let output = command.env("SPARKS_PRICES_REKOGNITION_CALL", "0.002").output().unwrap();
    let dear: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(way(&dear, "rekognition")["set"], true);
    assert!((usd(&dear, "rekognition") - 0.002 * (1200.0 + faces)).abs() < 1e-9, "{dear}");
    assert!(way(&dear, "local")["ratio"].as_f64().unwrap() < 0.01, "{dear}");

    let words = sparks.text(["cost"]);
    assert!(
        words.contains("20 photos") && words.contains("1000 DetectFaces") && words.contains("(set now)"),
        "{words}"
    );
}

#[test]
fn an_empty_log_says_that_there_is_nothing_to_count() {
    let sparks = Sparks::new();
    std::fs::create_dir(sparks.path("nothing")).unwrap();
    sparks.json(["ingest", "nothing"]);
    assert!(sparks.text(["cost"]).contains("nothing to count"));
    assert_eq!(sparks.json(["cost"])["ways"], json!([]));
    assert_eq!(Sparks::new().run(["cost"]).status.code(), Some(2), "no data folder");
}
