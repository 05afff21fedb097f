//! The bucket's contract notices adapters that break it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use sparks_engine::{Content, Listed, Object, Objects, ObjectsError, PutMode};
use sparks_tests::contract;
use tokio::task::JoinSet;

use super::embedded::Folders;

/// What is wrong with a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    ReplacesWhatIsThere,
    LeavesWhatIsThere,
    LooksBeforeItWrites,
    WritesInTwoSteps,
    LosesTheLastByte,
    GetsAnySize,
    KeepsDeletedObjects,
    CountsVersions,
    HasOneVersion,
    TakesAnyKey,
    MakesUpObjects,
}

struct Broken {
    inner: Arc<dyn Objects>,
    wrong: Wrong,
    reads: AtomicU64,
}

#[async_trait]
impl Objects for Broken {
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError> {
        let most_bytes = if self.wrong == Wrong::GetsAnySize { u64::MAX } else { most_bytes };
        let mut object = match self.inner.get(key, most_bytes).await {
            Err(ObjectsError::NotFound(_)) if self.wrong == Wrong::MakesUpObjects => {
                Object { bytes: Vec::new(), version: "none".into() }
            }
            other => other?,
        };
        match self.wrong {
            Wrong::CountsVersions => object.version = self.reads.fetch_add(1, Ordering::Relaxed).to_string(),
            Wrong::HasOneVersion => object.version = "1".into(),
            _ => {}
        }
        Ok(object)
    }

    async fn put(&self, key: &str, body: Vec<u8>, content: Content, mode: PutMode) -> Result<bool, ObjectsError> {
        let (mut body, mut mode) = (body, mode);
        match self.wrong {
            Wrong::ReplacesWhatIsThere => mode = PutMode::Replace,
            Wrong::LeavesWhatIsThere => mode = PutMode::IfAbsent,
            Wrong::LosesTheLastByte => drop(body.pop()),
            Wrong::WritesInTwoSteps if mode == PutMode::Replace => {
                let half = body[..body.len() / 2].to_vec();
                self.inner.put(key, half, content, mode).await?;
            }
            Wrong::LooksBeforeItWrites if mode == PutMode::IfAbsent => {
                if self.inner.head(key).await?.is_some() {
                    return Ok(false);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                mode = PutMode::Replace;
            }
            _ => {}
        }
        match self.inner.put(key, body, content, mode).await {
            Err(ObjectsError::BadKey(_)) if self.wrong == Wrong::TakesAnyKey => Ok(true),
            written => written,
        }
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        if self.wrong == Wrong::KeepsDeletedObjects { Ok(()) } else { self.inner.delete(key).await }
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, ObjectsError> {
        self.inner.head(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Listed>, ObjectsError> {
        self.inner.list(prefix, after, most).await
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        self.inner.check().await
    }
}

/// Each fault with a check that must notice it.
const CAUGHT_BY: [(Wrong, &str); 11] = [
    (Wrong::ReplacesWhatIsThere, "a_put_if_absent_leaves_what_is_there"),
    (Wrong::LeavesWhatIsThere, "a_put_replaces"),
    (Wrong::LooksBeforeItWrites, "of_many_puts_if_absent_one_writes"),
    (Wrong::WritesInTwoSteps, "a_put_is_seen_whole_or_not_at_all"),
    (Wrong::LosesTheLastByte, "what_is_put_is_got"),
    (Wrong::GetsAnySize, "more_bytes_than_asked_for_are_refused"),
    (Wrong::KeepsDeletedObjects, "deleted_objects_are_gone"),
    (Wrong::CountsVersions, "versions_follow_the_content"),
    (Wrong::HasOneVersion, "versions_follow_the_content"),
    (Wrong::TakesAnyKey, "keys_outside_the_bucket_are_refused"),
    (Wrong::MakesUpObjects, "a_missing_object_is_not_there"),
];

async fn failures(folders: Arc<Folders>, wrong: Wrong) -> Vec<&'static str> {
    let broken = |inner| Arc::new(Broken { inner, wrong, reads: AtomicU64::new(0) }) as Arc<dyn Objects>;
    contract::objects(async || broken(folders.objects())).await.failures()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_broken_bucket_is_caught() {
    let folders = Arc::new(Folders::new());
    let sound = failures(Arc::clone(&folders), Wrong::Nothing).await;
    let mut tasks = JoinSet::new();
    for (wrong, check) in CAUGHT_BY {
        let folders = Arc::clone(&folders);
        tasks.spawn(async move { (wrong, check, failures(folders, wrong).await) });
    }
    for (wrong, check, failures) in tasks.join_all().await {
        assert!(failures.contains(&check), "{check} does not notice a bucket that {wrong:?}, only {failures:?}");
        assert!(!sound.contains(&check), "{check} fails for the decorator alone");
    }
}
