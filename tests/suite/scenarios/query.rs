//! `sparks query`, in the shapes of the platform's API.

use serde_json::{Value, json};

use crate::sparks::Sparks;

fn album() -> Sparks {
    let sparks = Sparks::new();
    let album = sparks.synth(7, 3, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--uploader", "ann@example.com"]);
    sparks
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn responses_have_the_shapes_of_the_api() {
    let sparks = album();
    let persons = sparks.json(["query", "persons"]);
    assert_eq!(keys(&persons), ["lastEvaluatedKey", "persons"]);
    let person = &persons["persons"][0];
    assert_eq!(keys(person), ["createdAt", "displayName", "personId", "s3Key"]);
    assert_eq!(person["personId"], "person1");
    assert!(person["createdAt"].is_u64());
    assert_eq!(&sparks.json(["query", "person", "person1"]), person);

    let photos = sparks.json(["query", "photos"]);
    assert_eq!(keys(&photos), ["images", "lastEvaluatedKey"]);
    let photo = &photos["images"][0];
    let id = photo["imageId"].as_str().unwrap();
    assert_eq!(photo["uploadedBy"], "ann@example.com");
    assert_eq!(photo["s3Key"], format!("originals/{id}.jpg"));
    assert_eq!(photo["images"]["large"], format!("processed/{id}_large.webp"));
    assert_eq!(photo["images"]["medium"], format!("processed/{id}_medium.webp"));
    assert_eq!(photo["tags"], json!([]));
    assert!(!photo["persons"].as_array().unwrap().is_empty());
    assert_eq!(&sparks.json(["query", "photo", id]), photo);

    let of = sparks.json(["query", "photos-of", "person1"]);
    assert!(of["images"].as_array().unwrap().iter().all(|tagging| tagging["images"]["large"].is_string()));
    assert_eq!(sparks.json(["query", "photos", "--by", "unknown@example.com"])["images"], json!([]));
    assert_eq!(sparks.json(["query", "users"]), json!({ "users": [], "lastEvaluatedKey": null }));
}

#[test]
fn pages_together_are_the_whole_list() {
    let sparks = album();
    for query in [
        &["query", "photos"][..],
        &["query", "photos", "--by", "ann@example.com"],
        &["query", "photos-of", "person1"],
        &["query", "persons"],
    ] {
        let list = |page: &Value| page.get("images").or(page.get("persons")).unwrap().as_array().unwrap().clone();
        let whole = list(&sparks.json(query));
        assert!(whole.len() >= 2, "{query:?}");
        let (mut paged, mut token) = (Vec::new(), None::<String>);
        loop {
            let after = token.iter().flat_map(|token| ["--after", token]);
            let page = sparks.json(query.iter().copied().chain(["--limit", "2"]).chain(after));
            paged.extend(list(&page));
            token = page["lastEvaluatedKey"].as_str().map(str::to_owned);
            if token.is_none() {
                break;
            }
        }
        assert_eq!(paged, whole, "{query:?}");
    }
}

#[test]
fn missing_persons_and_invalid_arguments_are_errors() {
    let sparks = album();
    let missing = sparks.run(["query", "person", "person99"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("person person99"));
    for wrong in
        [&["query", "person", "Bob"][..], &["query", "photo", "../x"], &["query", "photos", "--after", "nonsense"]]
    {
        assert_eq!(sparks.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
