//! The contract of the [`Objects`] port.

mod listing;
mod outage;

use std::{future::Future, sync::Arc};

use sparks_engine::{Clock, Content, Object, Objects, ObjectsError, PutMode, SystemClock, sha256};
use tokio::task::JoinSet;

use super::{CheckResult, Report, checks, ensure, ensure_eq, run};
pub use outage::{OutageFixture, outage};

/// Runs the suite. `make` returns an empty bucket.
pub async fn objects<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = Arc<dyn Objects>>,
{
    use super::objects as suite;
    let checks = checks![suite::{
        get_returns_what_was_put,
        a_missing_object_is_not_found,
        put_replaces_an_object,
        put_if_absent_keeps_an_existing_object,
        put_if_version_replaces_only_that_version,
        one_of_many_concurrent_puts_if_version_writes,
        head_describes_the_current_object,
        one_of_many_concurrent_puts_if_absent_writes,
        put_is_atomic_for_readers,
        get_rejects_objects_above_the_size_limit,
        delete_is_idempotent_and_removes_one_object,
        delete_version_deletes_only_that_version,
        versions_depend_on_the_content_alone,
        keys_that_leave_the_bucket_are_rejected,
        key_prefixes_are_not_objects,
        keys_are_not_normalized,
    }, listing::{
        objects_are_listed_in_key_order_in_any_page_size,
        listings_hold_current_sizes_and_no_deleted_objects,
        check_changes_no_object,
    }];
    run(checks, make).await
}

const UNLIMITED: u64 = 1 << 30;

async fn put(objects: &dyn Objects, key: &str, body: &[u8], mode: PutMode) -> Result<bool, ObjectsError> {
    objects.put(key, body.to_vec(), Content::image("image/webp"), mode).await
}

async fn put_new(objects: &dyn Objects, key: &str, body: &[u8]) -> CheckResult {
    ensure!(put(objects, key, body, PutMode::Replace).await?, "put of {key} reports that nothing was written");
    Ok(())
}

async fn get(objects: &dyn Objects, key: &str) -> CheckResult<Object> {
    Ok(objects.get(key, UNLIMITED).await?)
}

async fn ensure_absent(objects: &dyn Objects, key: &str) -> CheckResult {
    let got = objects.get(key, UNLIMITED).await;
    ensure!(
        matches!(&got, Err(ObjectsError::NotFound(missing)) if missing == key),
        "get of the missing {key:?} returns {got:?}"
    );
    ensure_eq!(objects.head(key).await?, None, "size of the missing {key:?}");
    Ok(())
}

async fn get_returns_what_was_put(objects: Arc<dyn Objects>) -> CheckResult {
    let all: Vec<u8> = (0..=255).collect();
    let bodies = [("originals/a.jpg", all.clone()), ("a", vec![]), ("p/q/r/ümläut b+c%20.webp", all.repeat(5000))];
    for (key, body) in &bodies {
        put_new(objects.as_ref(), key, body).await?;
    }
    for (key, body) in &bodies {
        ensure!(get(objects.as_ref(), key).await?.bytes == *body, "{key:?} is not what was put");
        ensure_eq!(objects.head(key).await?.map(|info| info.bytes), Some(body.len() as u64), "the size of {key:?}");
    }
    Ok(())
}

async fn a_missing_object_is_not_found(objects: Arc<dyn Objects>) -> CheckResult {
    put_new(objects.as_ref(), "a/b", b"1").await?;
    for key in ["a/c", "b", "A/b", "c/d/e"] {
        ensure_absent(objects.as_ref(), key).await?;
    }
    Ok(())
}

async fn put_replaces_an_object(objects: Arc<dyn Objects>) -> CheckResult {
    for body in [&b"first and longer"[..], b"second", b""] {
        put_new(objects.as_ref(), "k", body).await?;
        ensure_eq!(get(objects.as_ref(), "k").await?.bytes, body, "the object after a put");
    }
    Ok(())
}

async fn put_if_absent_keeps_an_existing_object(objects: Arc<dyn Objects>) -> CheckResult {
    let first = put(objects.as_ref(), "k", b"first", PutMode::IfAbsent).await?;
    let second = put(objects.as_ref(), "k", b"second", PutMode::IfAbsent).await?;
    ensure_eq!((first, second), (true, false), "whether the first and the second put wrote");
    ensure_eq!(get(objects.as_ref(), "k").await?.bytes, b"first", "the object after the second put");
    objects.delete("k").await?;
    ensure!(put(objects.as_ref(), "k", b"third", PutMode::IfAbsent).await?, "a put after a delete wrote nothing");
    Ok(())
}

async fn put_if_version_replaces_only_that_version(objects: Arc<dyn Objects>) -> CheckResult {
    put_new(objects.as_ref(), "k", b"first").await?;
    let first = get(objects.as_ref(), "k").await?.version;
    for (body, wrote) in [(&b"second"[..], true), (b"third", false)] {
        let put = put(objects.as_ref(), "k", body, PutMode::IfVersion(first.clone())).await?;
        ensure_eq!(put, wrote, "whether a put of {body:?} over the first version wrote");
        ensure_eq!(get(objects.as_ref(), "k").await?.bytes, b"second", "the object after it");
    }
    objects.delete("k").await?;
    let put = put(objects.as_ref(), "k", b"fourth", PutMode::IfVersion(first)).await?;
    ensure!(!put, "a put over a version of a deleted object wrote");
    ensure_absent(objects.as_ref(), "k").await
}

async fn one_of_many_concurrent_puts_if_version_writes(objects: Arc<dyn Objects>) -> CheckResult {
    put_new(objects.as_ref(), "k", b"first").await?;
    let version = get(objects.as_ref(), "k").await?.version;
    let mut tasks = JoinSet::new();
    for n in 0..8_u8 {
        let (objects, mode) = (Arc::clone(&objects), PutMode::IfVersion(version.clone()));
        tasks.spawn(async move { put(objects.as_ref(), "k", &[n; 100], mode).await });
    }
    let mut writers = 0;
    for wrote in tasks.join_all().await {
        writers += usize::from(wrote?);
    }
    ensure_eq!(writers, 1, "the number of eight concurrent puts that report that they wrote");
    Ok(())
}

async fn head_describes_the_current_object(objects: Arc<dyn Objects>) -> CheckResult {
    for body in [&b"first"[..], b"other"] {
        put_new(objects.as_ref(), "k", body).await?;
        let Some(info) = objects.head("k").await? else { return Err("the object does not exist".into()) };
        ensure_eq!(info.version, get(objects.as_ref(), "k").await?.version, "the version");
        ensure_eq!(info.sha256, Some(sha256(body)), "the digest of what was put");
        // S3 has a resolution of seconds, and clocks differ.
        let age = SystemClock.now().as_millis() - info.modified.as_millis();
        ensure!((-5000..60_000).contains(&age), "an object that was just stored has an age of {age} ms");
    }
    Ok(())
}

async fn one_of_many_concurrent_puts_if_absent_writes(objects: Arc<dyn Objects>) -> CheckResult {
    for round in 0..10 {
        let key = format!("round/{round}");
        let mut tasks = JoinSet::new();
        for n in 0..8_u8 {
            let (objects, key) = (Arc::clone(&objects), key.clone());
            tasks.spawn(async move { (n, put(objects.as_ref(), &key, &[n; 100], PutMode::IfAbsent).await) });
        }
        let mut writers = Vec::new();
        for (n, wrote) in tasks.join_all().await {
            if wrote? {
                writers.push(n);
            }
        }
        let body = get(objects.as_ref(), &key).await?.bytes;
        ensure!(writers.len() == 1, "{} of eight concurrent puts report that they wrote {key}", writers.len());
        ensure!(body == [writers[0]; 100], "{key} does not hold the body of the put that reports writing it");
    }
    Ok(())
}

async fn put_is_atomic_for_readers(objects: Arc<dyn Objects>) -> CheckResult {
    const SIZE: usize = 300_000;
    put_new(objects.as_ref(), "k", &vec![0; SIZE]).await?;
    let writer = Arc::clone(&objects);
    let writing = tokio::spawn(async move {
        for n in 1..40_u8 {
            put(writer.as_ref(), "k", &vec![n; SIZE + usize::from(n)], PutMode::Replace).await?;
        }
        Ok::<_, ObjectsError>(())
    });
    let mut reads = 0;
    while !writing.is_finished() || reads == 0 {
        let bytes = get(objects.as_ref(), "k").await?.bytes;
        let n = bytes.first().copied().unwrap_or_default();
        ensure_eq!(bytes.len(), SIZE + usize::from(n), "the size of body {n} while it is replaced");
        ensure!(bytes.iter().all(|byte| *byte == n), "an object mixes two bodies");
        reads += 1;
    }
    writing.await??;
    Ok(())
}

async fn get_rejects_objects_above_the_size_limit(objects: Arc<dyn Objects>) -> CheckResult {
    put_new(objects.as_ref(), "k", &[7; 1000]).await?;
    ensure_eq!(objects.get("k", 1000).await?.bytes.len(), 1000, "size of an object at the limit");
    let got = objects.get("k", 999).await;
    let refused = matches!(got, Err(ObjectsError::TooLarge { bytes: 1000, most: 999, .. }));
    ensure!(refused, "get of an object one byte above the limit returns {got:?}");
    Ok(())
}

async fn delete_is_idempotent_and_removes_one_object(objects: Arc<dyn Objects>) -> CheckResult {
    put_new(objects.as_ref(), "a/b", b"1").await?;
    put_new(objects.as_ref(), "a/c", b"2").await?;
    for _ in 0..2 {
        objects.delete("a/b").await?;
        ensure_absent(objects.as_ref(), "a/b").await?;
    }
    ensure_eq!(get(objects.as_ref(), "a/c").await?.bytes, b"2", "the object beside the deleted one");
    Ok(())
}

async fn delete_version_deletes_only_that_version(objects: Arc<dyn Objects>) -> CheckResult {
    put_new(objects.as_ref(), "k", b"first").await?;
    let first = get(objects.as_ref(), "k").await?.version;
    ensure!(put(objects.as_ref(), "k", b"second", PutMode::Replace).await?, "the second put wrote nothing");
    objects.delete_version("k", &first).await?;
    let second = get(objects.as_ref(), "k").await?;
    ensure_eq!(second.bytes, b"second", "the object after its former version was to be deleted");
    for _ in 0..2 {
        objects.delete_version("k", &second.version).await?;
        ensure_absent(objects.as_ref(), "k").await?;
    }
    Ok(())
}

async fn versions_depend_on_the_content_alone(objects: Arc<dyn Objects>) -> CheckResult {
    put_new(objects.as_ref(), "k", b"one").await?;
    let one = get(objects.as_ref(), "k").await?.version;
    ensure!(!one.is_empty(), "an object has an empty version");
    ensure_eq!(get(objects.as_ref(), "k").await?.version, one, "the version when read again");
    put_new(objects.as_ref(), "k", b"two").await?;
    ensure!(get(objects.as_ref(), "k").await?.version != one, "different content has the same version");
    put_new(objects.as_ref(), "k", b"one").await?;
    ensure_eq!(get(objects.as_ref(), "k").await?.version, one, "the version of the same content");
    Ok(())
}

async fn keys_that_leave_the_bucket_are_rejected(objects: Arc<dyn Objects>) -> CheckResult {
    for key in ["", "../x", "/x", "a/../x", "a/../../x", "..", ".", "./x", "a\\b", "..\\x", "a\0b"] {
        let refused = [
            objects.get(key, UNLIMITED).await.map(drop),
            put(objects.as_ref(), key, b"x", PutMode::Replace).await.map(drop),
            put(objects.as_ref(), key, b"x", PutMode::IfAbsent).await.map(drop),
            objects.head(key).await.map(drop),
            objects.delete(key).await,
        ];
        for (operation, refused) in ["get", "put", "put if absent", "head", "delete"].iter().zip(refused) {
            ensure!(matches!(refused, Err(ObjectsError::BadKey(_))), "{operation} of {key:?} returns {refused:?}");
        }
    }
    Ok(())
}

/// A slash in a key has no meaning to a bucket.
async fn key_prefixes_are_not_objects(objects: Arc<dyn Objects>) -> CheckResult {
    put_new(objects.as_ref(), "a/b/c", b"1").await?;
    for key in ["a", "a/b", "a/b/c/d"] {
        ensure_absent(objects.as_ref(), key).await?;
        objects.delete(key).await?;
    }
    ensure_eq!(get(objects.as_ref(), "a/b/c").await?.bytes, b"1", "the object below the deleted prefixes");
    Ok(())
}

async fn keys_are_not_normalized(objects: Arc<dyn Objects>) -> CheckResult {
    put_new(objects.as_ref(), "a/b", b"1").await?;
    for key in ["a/./b", "a//b", "a/b/", "a/b/."] {
        let got = objects.get(key, UNLIMITED).await;
        let another = matches!(got, Err(ObjectsError::NotFound(_) | ObjectsError::BadKey(_)));
        ensure!(another, "{key:?} is a different key than \"a/b\" and returns {got:?}");
    }
    Ok(())
}
