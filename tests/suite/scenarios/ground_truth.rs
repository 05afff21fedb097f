//! The ground truth of a synthetic album, and its comparison with the table.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

use crate::sparks::Sparks;

/// Returns the identities in each file.
pub fn truth(album: &Path) -> BTreeMap<String, BTreeSet<u64>> {
    let truth: Vec<Value> = serde_json::from_str(&fs::read_to_string(album.join("truth.json")).unwrap()).unwrap();
    let identities =
        |photo: &Value| photo["identities"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    truth.iter().map(|photo| (photo["file"].as_str().unwrap().to_owned(), identities(photo))).collect()
}

/// Returns the persons that TAGGING rows name for each file.
pub fn tags(sparks: &Sparks) -> BTreeMap<String, BTreeSet<String>> {
    let mut by_image: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for item in sparks.items() {
        if item["entityType"].as_str().unwrap().starts_with("TAGGING#") {
            let person = item["SK"].as_str().unwrap().trim_start_matches("PERSON#").to_owned();
            by_image.entry(item["PK"].as_str().unwrap().to_owned()).or_default().insert(person);
        }
    }
    let processed = sparks.events_of("PhotoProcessed");
    let name = |event: &Value| event["event_data"]["source"]["file_name"].as_str().unwrap().to_owned();
    let persons = |event: &Value| by_image.get(event["event_data"]["image_id"].as_str().unwrap()).cloned();
    processed.iter().map(|event| (name(event), persons(event).unwrap_or_default())).collect()
}

/// Returns the number of wrong tags, if each person stands for the identity with which it occurs most often.
pub fn wrong_tags(album: &Path, sparks: &Sparks) -> usize {
    let (truth, tags) = (truth(album), tags(sparks));
    assert_eq!(truth.keys().collect::<Vec<_>>(), tags.keys().collect::<Vec<_>>(), "every file was processed");
    let mut together: BTreeMap<(String, u64), usize> = BTreeMap::new();
    for (file, persons) in &tags {
        for person in persons {
            for identity in &truth[file] {
                *together.entry((person.clone(), *identity)).or_default() += 1;
            }
        }
    }
    let mut stands_for: BTreeMap<String, (u64, usize)> = BTreeMap::new();
    for ((person, identity), times) in together {
        let best = stands_for.entry(person).or_insert((identity, times));
        if times > best.1 {
            *best = (identity, times);
        }
    }
    let identities_of =
        |persons: &BTreeSet<String>| -> BTreeSet<u64> { persons.iter().map(|person| stands_for[person].0).collect() };
    tags.iter()
        .map(|(file, persons)| {
            identities_of(persons).symmetric_difference(&truth[file]).count() + persons.len()
                - identities_of(persons).len()
        })
        .sum()
}

/// Returns the number of identities in the album without its first `skipped` files.
pub fn identity_count(album: &Path, skipped: usize) -> usize {
    truth(album).into_values().skip(skipped).flatten().collect::<BTreeSet<u64>>().len()
}
