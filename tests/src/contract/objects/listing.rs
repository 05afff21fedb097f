//! Listings and the health check of a bucket.

use std::sync::Arc;

use sparks_engine::{ObjectEntry, Objects};

use super::{put, put_new};
use crate::contract::{CheckResult, ensure, ensure_eq};

/// Keys in no order. A slash sorts between `.` and `0`; a listing by folders would order them differently.
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

async fn list_all(objects: &dyn Objects, prefix: &str, page: usize) -> CheckResult<Vec<ObjectEntry>> {
    let mut found: Vec<ObjectEntry> = Vec::new();
    loop {
        let after = found.last().map(|listed| listed.key.clone());
        let more = objects.list(prefix, after.as_deref(), page).await?;
        ensure!(more.len() <= page, "a page of {page} holds {} objects", more.len());
        if more.is_empty() {
            return Ok(found);
        }
        ensure!(found.len() < 1000, "listing with pages of {page} does not end");
        found.extend(more);
    }
}

fn keys(listed: &[ObjectEntry]) -> Vec<&str> {
    listed.iter().map(|listed| listed.key.as_str()).collect()
}

/// Puts the keys that every bucket can hold together: a file system cannot hold an object with the name of a folder.
async fn fill(objects: &dyn Objects) -> CheckResult<Vec<&'static str>> {
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

pub(super) async fn objects_are_listed_in_key_order_in_any_page_size(objects: Arc<dyn Objects>) -> CheckResult {
    ensure_eq!(objects.list("", None, 10).await?, vec![], "listing of an empty bucket");
    let all = fill(objects.as_ref()).await?;
    for prefix in
        ["", "a", "a/", "a/b", "a/b/", "originals/", "originals/a", "originals/a/", "o", "ü", "nothing/", "zz"]
    {
        let expected: Vec<_> = all.iter().copied().filter(|key| key.starts_with(prefix)).collect();
        for page in [1, 2, 3, 100] {
            let listed = list_all(objects.as_ref(), prefix, page).await?;
            ensure_eq!(keys(&listed), expected, "listing of prefix {prefix:?} in pages of {page}");
        }
    }
    // Start after a missing key, before the prefix, and after it.
    for (prefix, after) in [("", "a/bb"), ("", "b"), ("originals/", "a"), ("originals/", "originals/aa"), ("a", "zzz")]
    {
        let expected: Vec<_> = all.iter().copied().filter(|key| key.starts_with(prefix) && *key > after).collect();
        let listed = objects.list(prefix, Some(after), 100).await?;
        ensure_eq!(keys(&listed), expected, "listing of prefix {prefix:?} after {after:?}");
    }
    Ok(())
}

pub(super) async fn listings_hold_current_sizes_and_no_deleted_objects(objects: Arc<dyn Objects>) -> CheckResult {
    for (key, bytes) in [("p/a", 3), ("p/b", 0), ("p/c", 100_000)] {
        put_new(objects.as_ref(), key, &vec![7; bytes]).await?;
    }
    put(objects.as_ref(), "p/a", &[7; 50], sparks_engine::PutMode::Replace).await?;
    objects.delete("p/b").await?;
    let listed = objects.list("p/", None, 10).await?;
    let sizes: Vec<_> = listed.iter().map(|listed| (listed.key.as_str(), listed.bytes)).collect();
    ensure_eq!(sizes, vec![("p/a", 50), ("p/c", 100_000)], "the objects and their sizes");
    for ObjectEntry { key, modified, .. } in &listed {
        ensure!(modified.as_millis() > 1_600_000_000_000, "{key} has the modification time {modified}");
    }
    Ok(())
}

pub(super) async fn check_changes_no_object(objects: Arc<dyn Objects>) -> CheckResult {
    objects.check().await?;
    put_new(objects.as_ref(), "check", b"data").await?;
    objects.check().await?;
    let listed = objects.list("", None, 10).await?;
    ensure_eq!(keys(&listed), vec!["check"], "listing after two checks");
    ensure_eq!(
        super::get(objects.as_ref(), "check").await?.bytes,
        b"data",
        "the object with the key `check` after checks"
    );
    Ok(())
}
