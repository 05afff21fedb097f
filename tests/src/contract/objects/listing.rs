//! What is in the bucket.

use std::sync::Arc;

use sparks_engine::{Listed, Objects};

use super::{put, put_new};
use crate::contract::{Checked, ensure, ensure_eq};

/// In an order that is nobody's. A slash sorts between a dot and a nought, whatever folders there are.
const KEYS: [&str; 13] = [
    "originals/b.jpg",
    "a0",
    "a/b/c",
    "originals/a/nested/deep.jpg",
    "a-b",
    "a/b",
    "z",
    "a.b",
    "originals/a.jpg",
    "a/bc",
    "originals",
    "ümläut/é",
    "originals/a/b.jpg",
];

async fn walk(objects: &dyn Objects, prefix: &str, page: usize) -> Checked<Vec<Listed>> {
    let mut found: Vec<Listed> = Vec::new();
    loop {
        let after = found.last().map(|listed| listed.key.clone());
        let more = objects.list(prefix, after.as_deref(), page).await?;
        ensure!(more.len() <= page, "a page of {page} has {} objects", more.len());
        if more.is_empty() {
            return Ok(found);
        }
        ensure!(found.len() < 1000, "there is no end of objects in pages of {page}");
        found.extend(more);
    }
}

fn keys(listed: &[Listed]) -> Vec<&str> {
    listed.iter().map(|listed| listed.key.as_str()).collect()
}

/// Keys that can stand beside each other in any bucket: some stores cannot hold an object called like a folder of others.
async fn fill(objects: &dyn Objects) -> Checked<Vec<&'static str>> {
    let mut kept: Vec<&str> = Vec::new();
    for key in KEYS {
        let below = |other: &str, key: &str| other.strip_prefix(key).is_some_and(|rest| rest.starts_with('/'));
        if KEYS.iter().any(|other| below(other, key)) {
            continue;
        }
        put_new(objects, key, key.as_bytes()).await?;
        kept.push(key);
    }
    kept.sort_unstable();
    Ok(kept)
}

pub(super) async fn objects_are_listed_by_key_in_pages_of_any_size(objects: Arc<dyn Objects>) -> Checked {
    ensure_eq!(objects.list("", None, 10).await?, vec![], "what is in an empty bucket");
    let all = fill(objects.as_ref()).await?;
    for prefix in
        ["", "a", "a/", "a/b", "a/b/", "originals/", "originals/a", "originals/a/", "o", "ü", "nothing/", "zz"]
    {
        let expected: Vec<_> = all.iter().copied().filter(|key| key.starts_with(prefix)).collect();
        for page in [1, 2, 3, 100] {
            let listed = walk(objects.as_ref(), prefix, page).await?;
            ensure_eq!(keys(&listed), expected, "what begins with {prefix:?} in pages of {page}");
        }
    }
    // After what is not there, before the prefix, and beyond it.
    for (prefix, after) in [("", "a/bb"), ("", "b"), ("originals/", "a"), ("originals/", "originals/aa"), ("a", "zzz")]
    {
        let expected: Vec<_> = all.iter().copied().filter(|key| key.starts_with(prefix) && *key > after).collect();
        let listed = objects.list(prefix, Some(after), 100).await?;
        ensure_eq!(keys(&listed), expected, "what begins with {prefix:?} after {after:?}");
    }
    Ok(())
}

pub(super) async fn a_listing_tells_what_is_there_now(objects: Arc<dyn Objects>) -> Checked {
    for (key, bytes) in [("p/a", 3), ("p/b", 0), ("p/c", 100_000)] {
        put_new(objects.as_ref(), key, &vec![7; bytes]).await?;
    }
    put(objects.as_ref(), "p/a", &[7; 50], sparks_engine::PutMode::Replace).await?;
    objects.delete("p/b").await?;
    let listed = objects.list("p/", None, 10).await?;
    let sizes: Vec<_> = listed.iter().map(|listed| (listed.key.as_str(), listed.bytes)).collect();
    ensure_eq!(sizes, vec![("p/a", 50), ("p/c", 100_000)], "the objects and their sizes");
    for Listed { key, modified, .. } in &listed {
        ensure!(modified.as_millis() > 1_600_000_000_000, "{key} was stored at {modified}");
    }
    Ok(())
}

pub(super) async fn a_check_leaves_nothing_behind(objects: Arc<dyn Objects>) -> Checked {
    objects.check().await?;
    put_new(objects.as_ref(), "check", b"somebody's").await?;
    objects.check().await?;
    let listed = objects.list("", None, 10).await?;
    ensure_eq!(keys(&listed), vec!["check"], "what is in the bucket after two checks");
    ensure_eq!(super::get(objects.as_ref(), "check").await?.bytes, b"somebody's", "an object that is called so");
    Ok(())
}
