//! What a bucket promises.

mod listing;
mod outage;

use std::{future::Future, sync::Arc};

use sparks_engine::{Content, Object, Objects, ObjectsError, PutMode};
use tokio::task::JoinSet;

use super::{Checked, Report, checks, ensure, ensure_eq, run};
pub use outage::{OutageRig, outage};

/// Tries a bucket. Each check gets one that is empty.
pub async fn objects<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = Arc<dyn Objects>>,
{
    use super::objects as promises;
    let checks = checks![promises::{
        what_is_put_is_got,
        a_missing_object_is_not_there,
        a_put_replaces,
        a_put_if_absent_leaves_what_is_there,
        of_many_puts_if_absent_one_writes,
        a_put_is_seen_whole_or_not_at_all,
        more_bytes_than_asked_for_are_refused,
        deleted_objects_are_gone,
        versions_follow_the_content,
        keys_outside_the_bucket_are_refused,
        folders_are_no_objects,
        every_key_has_one_spelling,
    }, listing::{
        objects_are_listed_by_key_in_pages_of_any_size,
        a_listing_tells_what_is_there_now,
        a_check_leaves_nothing_behind,
    }];
    run(checks, make).await
}

const MANY: u64 = 1 << 30;

async fn put(objects: &dyn Objects, key: &str, body: &[u8], mode: PutMode) -> Result<bool, ObjectsError> {
    objects.put(key, body.to_vec(), Content::picture("image/webp"), mode).await
}

async fn put_new(objects: &dyn Objects, key: &str, body: &[u8]) -> Checked {
    ensure!(put(objects, key, body, PutMode::Replace).await?, "putting {key} says that nothing was written");
    Ok(())
}

async fn get(objects: &dyn Objects, key: &str) -> Checked<Object> {
    Ok(objects.get(key, MANY).await?)
}

async fn is_absent(objects: &dyn Objects, key: &str) -> Checked {
    let got = objects.get(key, MANY).await;
    ensure!(matches!(&got, Err(ObjectsError::NotFound(missing)) if missing == key), "{key:?} gives {got:?}");
    ensure_eq!(objects.head(key).await?, None, "the size of {key:?}, which is not there");
    Ok(())
}

async fn what_is_put_is_got(objects: Arc<dyn Objects>) -> Checked {
    let all: Vec<u8> = (0..=255).collect();
    let bodies = [("originals/a.jpg", all.clone()), ("a", vec![]), ("p/q/r/ümläut b+c%20.webp", all.repeat(5000))];
    for (key, body) in &bodies {
        put_new(objects.as_ref(), key, body).await?;
    }
    for (key, body) in &bodies {
        ensure!(get(objects.as_ref(), key).await?.bytes == *body, "{key:?} is not what was put");
        ensure_eq!(objects.head(key).await?, Some(body.len() as u64), "the size of {key:?}");
    }
    Ok(())
}

async fn a_missing_object_is_not_there(objects: Arc<dyn Objects>) -> Checked {
    put_new(objects.as_ref(), "a/b", b"1").await?;
    for key in ["a/c", "b", "A/b", "c/d/e"] {
        is_absent(objects.as_ref(), key).await?;
    }
    Ok(())
}

async fn a_put_replaces(objects: Arc<dyn Objects>) -> Checked {
    for body in [&b"first and longer"[..], b"second", b""] {
        put_new(objects.as_ref(), "k", body).await?;
        ensure_eq!(get(objects.as_ref(), "k").await?.bytes, body, "the object after a put");
    }
    Ok(())
}

async fn a_put_if_absent_leaves_what_is_there(objects: Arc<dyn Objects>) -> Checked {
    let first = put(objects.as_ref(), "k", b"first", PutMode::IfAbsent).await?;
    let second = put(objects.as_ref(), "k", b"second", PutMode::IfAbsent).await?;
    ensure_eq!((first, second), (true, false), "whether the first and the second put wrote");
    ensure_eq!(get(objects.as_ref(), "k").await?.bytes, b"first", "the object after the second put");
    objects.delete("k").await?;
    ensure!(put(objects.as_ref(), "k", b"third", PutMode::IfAbsent).await?, "a put after a delete wrote nothing");
    Ok(())
}

async fn of_many_puts_if_absent_one_writes(objects: Arc<dyn Objects>) -> Checked {
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
        ensure!(writers.len() == 1, "{} of eight puts say that they wrote {key}", writers.len());
        ensure!(body == [writers[0]; 100], "{key} is not of the one who wrote it");
    }
    Ok(())
}

async fn a_put_is_seen_whole_or_not_at_all(objects: Arc<dyn Objects>) -> Checked {
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
        ensure!(bytes.iter().all(|byte| *byte == n), "two bodies are seen in one object");
        reads += 1;
    }
    writing.await??;
    Ok(())
}

async fn more_bytes_than_asked_for_are_refused(objects: Arc<dyn Objects>) -> Checked {
    put_new(objects.as_ref(), "k", &[7; 1000]).await?;
    ensure_eq!(objects.get("k", 1000).await?.bytes.len(), 1000, "an object of just the size");
    let got = objects.get("k", 999).await;
    let refused = matches!(got, Err(ObjectsError::TooLarge { bytes: 1000, most: 999, .. }));
    ensure!(refused, "a byte too many gives {got:?}");
    Ok(())
}

async fn deleted_objects_are_gone(objects: Arc<dyn Objects>) -> Checked {
    put_new(objects.as_ref(), "a/b", b"1").await?;
    put_new(objects.as_ref(), "a/c", b"2").await?;
    for _ in 0..2 {
        objects.delete("a/b").await?;
        is_absent(objects.as_ref(), "a/b").await?;
    }
    ensure_eq!(get(objects.as_ref(), "a/c").await?.bytes, b"2", "the object beside the deleted one");
    Ok(())
}

async fn versions_follow_the_content(objects: Arc<dyn Objects>) -> Checked {
    put_new(objects.as_ref(), "k", b"one").await?;
    let one = get(objects.as_ref(), "k").await?.version;
    ensure!(!one.is_empty(), "an object has an empty version");
    ensure_eq!(get(objects.as_ref(), "k").await?.version, one, "the version when read again");
    put_new(objects.as_ref(), "k", b"two").await?;
    ensure!(get(objects.as_ref(), "k").await?.version != one, "other content has the same version");
    put_new(objects.as_ref(), "k", b"one").await?;
    ensure_eq!(get(objects.as_ref(), "k").await?.version, one, "the version of the same content");
    Ok(())
}

async fn keys_outside_the_bucket_are_refused(objects: Arc<dyn Objects>) -> Checked {
    for key in ["", "../x", "/x", "a/../x", "a/../../x", "..", ".", "./x", "a\\b", "..\\x", "a\0b"] {
        let refused = [
            objects.get(key, MANY).await.map(drop),
            put(objects.as_ref(), key, b"x", PutMode::Replace).await.map(drop),
            put(objects.as_ref(), key, b"x", PutMode::IfAbsent).await.map(drop),
            objects.head(key).await.map(drop),
            objects.delete(key).await,
        ];
        for (what, refused) in ["get", "put", "put if absent", "head", "delete"].iter().zip(refused) {
            ensure!(matches!(refused, Err(ObjectsError::BadKey(_))), "{what} of {key:?} gives {refused:?}");
        }
    }
    Ok(())
}

/// A slash in a key means nothing to a bucket.
async fn folders_are_no_objects(objects: Arc<dyn Objects>) -> Checked {
    put_new(objects.as_ref(), "a/b/c", b"1").await?;
    for key in ["a", "a/b", "a/b/c/d"] {
        is_absent(objects.as_ref(), key).await?;
        objects.delete(key).await?;
    }
    ensure_eq!(get(objects.as_ref(), "a/b/c").await?.bytes, b"1", "the object in the folder");
    Ok(())
}

async fn every_key_has_one_spelling(objects: Arc<dyn Objects>) -> Checked {
    put_new(objects.as_ref(), "a/b", b"1").await?;
    for key in ["a/./b", "a//b", "a/b/", "a/b/."] {
        let got = objects.get(key, MANY).await;
        let another = matches!(got, Err(ObjectsError::NotFound(_) | ObjectsError::BadKey(_)));
        ensure!(another, "{key:?} is another key than \"a/b\", and gives {got:?}");
    }
    Ok(())
}
