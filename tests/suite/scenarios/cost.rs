//! `sparks cost`: calls to face services, counted in the log, and their price.

use serde_json::{Value, json};

use crate::sparks::Sparks;

fn way<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["ways"]
        .as_array()
        .unwrap()
        .iter()
        .find(|way| way["way"] == name)
        .unwrap_or_else(|| panic!("{name} in {report}"))
}

#[test]
fn calls_are_counted_from_the_log_and_priced_by_settings() {
    let sparks = Sparks::new();
    let album = sparks.synth(20, 4, &[]);
    let summary = sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let report = sparks.json(["cost"]);
    assert_eq!((&report["photos"], &report["work"][0]["analyzer"]), (&json!(20), &json!("synthetic")));
    assert_eq!((&report["work"][0]["faces"], &report["work"][0]["persons_founded"]), (&summary["faces"], &json!(4)));
    let faces = summary["faces"].as_f64().unwrap() / 20.0 * 1000.0;

    let calls = &way(&report, "rekognition")["calls_per_1000_photos"];
    assert_eq!(*calls, json!({ "DetectFaces": 1000.0, "SearchFacesByImage": faces, "IndexFaces": 200.0 }));
    let local = way(&report, "local");
    assert_eq!((&local["set"], &local["ratio"]), (&json!(true), &json!(1.0)));
    let usd = |report: &Value, name: &str| way(report, name)["usd_per_1000_photos"].as_f64().unwrap();
    assert!(usd(&report, "rekognition") > usd(&report, "local_and_rekognition"), "{report}");
    assert!(usd(&report, "local_and_rekognition") > usd(&report, "local"), "{report}");

    let mut command = sparks.command(["cost", "--json"]);
    command.env("SPARKS_FACES_ANALYZER", "rekognition").env("SPARKS_FACES_SECONDARY_ANALYZER", "off");
    let output = command.env("SPARKS_PRICES_REKOGNITION_CALL", "0.002").output().unwrap();
    let expensive: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(way(&expensive, "rekognition")["set"], true);
    assert!((usd(&expensive, "rekognition") - 0.002 * (1200.0 + faces)).abs() < 1e-9, "{expensive}");
    assert!(way(&expensive, "local")["ratio"].as_f64().unwrap() < 0.01, "{expensive}");

    let text = sparks.text(["cost"]);
    assert!(text.contains("20 photos") && text.contains("1000 DetectFaces") && text.contains("(configured)"), "{text}");
}

#[test]
fn an_empty_log_has_nothing_to_count() {
    let sparks = Sparks::new();
    std::fs::create_dir(sparks.path("nothing")).unwrap();
    sparks.json(["ingest", "nothing"]);
    assert!(sparks.text(["cost"]).contains("nothing to count"));
    assert_eq!(sparks.json(["cost"])["ways"], json!([]));
    assert_eq!(Sparks::new().run(["cost"]).status.code(), Some(2), "no data folder");
}
