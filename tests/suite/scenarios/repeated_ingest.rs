//! Ingesting the same photos again changes nothing.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::sparks::{Sparks, root};

/// Returns the folder of camera photos if it exists, and the photos of the repository otherwise.
fn photos() -> PathBuf {
    let data = std::env::var_os("SPARKS_TEST_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let photos = data.join("photos");
    if photos.is_dir() {
        return photos;
    }
    eprintln!("{} does not exist: using tests/photos", photos.display());
    root().join("tests/photos")
}

fn objects(folder: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(objects(&entry.path()));
        } else {
            found.insert(entry.path(), entry.metadata().unwrap().modified().unwrap());
        }
    }
    found
}

#[test]
fn the_second_run_finds_duplicates_only() {
    let (sparks, photos) = (Sparks::new(), photos());
    let first = sparks.json(["ingest", photos.to_str().unwrap(), "--faces", "off"]);
    assert!(first["processed"].as_u64().unwrap() >= 4, "{first}");
    assert_eq!(first["processed"], first["photos"]);
    let (items, objects_before) = (sparks.text(["items"]), objects(&sparks.data().join("objects")));
    assert_eq!(objects_before.len() as u64, 3 * first["photos"].as_u64().unwrap(), "an original and two variants each");

    let second = sparks.json(["ingest", photos.to_str().unwrap(), "--faces", "off"]);
    assert_eq!(second["duplicates"], first["photos"]);
    assert_eq!(second["processed"], 0);
    assert_eq!(sparks.text(["items"]), items, "no row changed");
    assert_eq!(objects(&sparks.data().join("objects")), objects_before, "no object was written again");
    assert_eq!(sparks.events().len() as u64, first["photos"].as_u64().unwrap());
}

#[test]
fn a_copy_under_another_name_is_a_duplicate() {
    let sparks = Sparks::new();
    let folder = sparks.path("photos");
    fs::create_dir(&folder).unwrap();
    let photo = root().join("tests/photos/biden.jpg");
    for name in ["a.jpg", "b.jpg", "c.dat"] {
        fs::copy(&photo, folder.join(name)).unwrap();
    }
    fs::write(folder.join("notes.txt"), "not a photo").unwrap();
    fs::write(folder.join(".hidden.jpg"), "hidden").unwrap();
    let summary = sparks.json(["ingest", "photos", "--faces", "off"]);
    assert_eq!((&summary["photos"], &summary["processed"], &summary["duplicates"]), (&3.into(), &1.into(), &2.into()));
    assert_eq!(summary["ignored"], 1, "notes.txt is ignored");
}

#[test]
fn photos_are_listed_newest_first() {
    let sparks = Sparks::new();
    sparks.json(["ingest", root().join("tests/photos").to_str().unwrap(), "--faces", "off"]);
    let feed = sparks.json(["query", "photos"]);
    let feed: Vec<&str> = feed["images"].as_array().unwrap().iter().map(|i| i["imageId"].as_str().unwrap()).collect();
    let mut sorted = feed.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    assert!(feed.len() >= 4);
    assert_eq!(feed, sorted, "newest first");
}
