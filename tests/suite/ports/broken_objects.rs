//! The bucket's contract notices adapters that break it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use sparks_domain::Timestamp;
use sparks_engine::{Content, Listed, Object, Objects, ObjectsError, PutMode};
use sparks_tests::contract::{self, OutageRig};
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
    ListsByFolder,
    ListsWhatBeginsOtherwise,
    BeginsEachPageAnew,
    SkipsAnObjectAtPageEnds,
    ListsDeletedObjects,
    ForgetsSizes,
    ChecksByPutting,
    SaysThatNothingIsThere,
    FindsNothingWhereItIsAway,
    MakesTheBucketAnew,
    ChecksNothing,
    StaysAway,
}

struct Broken {
    inner: Arc<dyn Objects>,
    wrong: Wrong,
    reads: AtomicU64,
    deleted: Mutex<Vec<String>>,
    was_away: AtomicBool,
}

impl Broken {
    fn over(inner: Arc<dyn Objects>, wrong: Wrong) -> Arc<dyn Objects> {
        let (reads, deleted, was_away) = (AtomicU64::new(0), Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { inner, wrong, reads, deleted, was_away })
    }

    /// What it makes of a bucket that is away.
    fn gone<T>(&self, key: &str, answer: Result<T, ObjectsError>, nothing: Option<T>) -> Result<T, ObjectsError> {
        let away = matches!(answer, Err(ObjectsError::Unavailable { .. }));
        if away {
            self.was_away.store(true, Ordering::Relaxed);
        }
        match (self.wrong, nothing) {
            (Wrong::SaysThatNothingIsThere, _) if away => Err(ObjectsError::NotFound(key.to_owned())),
            (Wrong::FindsNothingWhereItIsAway | Wrong::MakesTheBucketAnew, Some(nothing)) if away => Ok(nothing),
            (Wrong::StaysAway, _) if self.was_away.load(Ordering::Relaxed) => {
                Err(ObjectsError::Unavailable { key: key.to_owned(), reason: "away".into() })
            }
            _ => answer,
        }
    }
}

#[async_trait]
impl Objects for Broken {
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError> {
        let most_bytes = if self.wrong == Wrong::GetsAnySize { u64::MAX } else { most_bytes };
        let got = self.inner.get(key, most_bytes).await;
        let mut object = match self.gone(key, got, None) {
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
        let put = self.inner.put(key, body, content, mode).await;
        match put {
            Err(ObjectsError::BadKey(_)) if self.wrong == Wrong::TakesAnyKey => Ok(true),
            Err(ObjectsError::Unavailable { .. }) if self.wrong == Wrong::FindsNothingWhereItIsAway => put,
            written => self.gone(key, written, Some(true)),
        }
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        if self.wrong == Wrong::KeepsDeletedObjects {
            return Ok(());
        }
        self.deleted.lock().unwrap().push(key.to_owned());
        let deleted = self.inner.delete(key).await;
        self.gone(key, deleted, Some(()))
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, ObjectsError> {
        let found = self.inner.head(key).await;
        self.gone(key, found, Some(None))
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Listed>, ObjectsError> {
        let (more, within) = match self.wrong {
            Wrong::SkipsAnObjectAtPageEnds if after.is_some() => (most.saturating_add(1), prefix),
            Wrong::ListsWhatBeginsOtherwise => (most, prefix.trim_end_matches(|c| c != '/')),
            _ => (most, prefix),
        };
        let after = if self.wrong == Wrong::BeginsEachPageAnew { after.filter(|_| most > 50) } else { after };
        let listed = self.inner.list(within, after, more).await;
        let mut listed = self.gone(prefix, listed, Some(Vec::new()))?;
        match self.wrong {
            Wrong::SkipsAnObjectAtPageEnds if after.is_some() => drop(listed.drain(..listed.len().min(1))),
            Wrong::ListsByFolder => listed.sort_by_key(|listed| listed.key.replace('/', "\0")),
            Wrong::ForgetsSizes => listed.iter_mut().for_each(|listed| listed.bytes = 0),
            Wrong::ListsDeletedObjects => {
                let deleted = self.deleted.lock().unwrap();
                let modified = Timestamp::from_millis(1_700_000_000_000);
                listed.extend(deleted.iter().map(|key| Listed { key: key.clone(), bytes: 1, modified }));
            }
            _ => {}
        }
        Ok(listed)
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        match self.wrong {
            Wrong::ChecksNothing | Wrong::MakesTheBucketAnew => Ok(()),
            Wrong::ChecksByPutting => {
                let content = Content::picture("image/webp");
                self.inner.put("check", Vec::new(), content, PutMode::Replace).await.map(drop)
            }
            _ => {
                let checked = self.inner.check().await;
                self.gone("check", checked, None)
            }
        }
    }
}

/// Each fault with a check that must notice it.
const CAUGHT_BY: [(Wrong, &str); 18] = [
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
    (Wrong::ListsByFolder, "objects_are_listed_by_key_in_pages_of_any_size"),
    (Wrong::ListsWhatBeginsOtherwise, "objects_are_listed_by_key_in_pages_of_any_size"),
    (Wrong::BeginsEachPageAnew, "objects_are_listed_by_key_in_pages_of_any_size"),
    (Wrong::SkipsAnObjectAtPageEnds, "objects_are_listed_by_key_in_pages_of_any_size"),
    (Wrong::ListsDeletedObjects, "a_listing_tells_what_is_there_now"),
    (Wrong::ForgetsSizes, "a_listing_tells_what_is_there_now"),
    (Wrong::ChecksByPutting, "a_check_leaves_nothing_behind"),
];

/// Each fault of a bucket that goes away, with a check that must notice it.
const CAUGHT_BY_OUTAGE: [(Wrong, &str); 5] = [
    (Wrong::SaysThatNothingIsThere, "a_bucket_that_is_away_is_not_empty"),
    (Wrong::FindsNothingWhereItIsAway, "a_bucket_that_is_away_is_not_empty"),
    (Wrong::MakesTheBucketAnew, "nothing_is_stored_where_the_bucket_was"),
    (Wrong::ChecksNothing, "a_bucket_that_is_away_is_not_empty"),
    (Wrong::StaysAway, "all_is_well_when_it_is_back"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_bucket_that_hides_its_outage_is_caught() {
    let folders = Folders::new();
    for (wrong, check) in [(Wrong::Nothing, "")].into_iter().chain(CAUGHT_BY_OUTAGE) {
        let report = contract::outage(async || {
            let OutageRig { objects, away, back } = folders.outage();
            OutageRig { objects: Broken::over(objects, wrong), away, back }
        });
        let failures = report.await.failures();
        match wrong {
            Wrong::Nothing => assert_eq!(failures, [""; 0], "the decorator alone"),
            _ => {
                assert!(failures.contains(&check), "{check} does not notice a bucket that {wrong:?}, only {failures:?}")
            }
        }
    }
}

async fn failures(folders: Arc<Folders>, wrong: Wrong) -> Vec<&'static str> {
    contract::objects(async || Broken::over(folders.objects(), wrong)).await.failures()
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
