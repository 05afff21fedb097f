//! Mutation testing of the bucket contracts: each known defect of an adapter must fail a named check.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use sparks_domain::Timestamp;
use sparks_engine::{Content, DependencyError, Object, ObjectEntry, ObjectInfo, Objects, ObjectsError, PutMode};
use sparks_tests::contract::{self, OutageFixture};
use tokio::task::JoinSet;

use super::data_folders::DataFolders;

/// A defect of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    IgnoresIfAbsent,
    IgnoresIfVersion,
    ChecksVersionThenWrites,
    ForgetsDigest,
    NeverReplaces,
    ChecksThenWrites,
    WritesNonAtomically,
    DropsLastByte,
    IgnoresSizeLimit,
    KeepsDeletedObjects,
    DeletesAnyVersion,
    ChangesVersionOnRead,
    ReturnsConstantVersion,
    AcceptsAnyKey,
    ReturnsEmptyForMissing,
    ListsInFolderOrder,
    ListsOtherPrefixes,
    RestartsEveryPage,
    SkipsObjectAtPageEnd,
    ListsDeletedObjects,
    ListsZeroSizes,
    CheckWritesObject,
    ReportsOutageAsNotFound,
    ReportsOutageAsEmpty,
    RecreatesBucketInOutage,
    CheckIgnoresOutage,
    StaysUnavailableAfterOutage,
}

struct BrokenObjects {
    inner: Arc<dyn Objects>,
    defect: Defect,
    reads: AtomicU64,
    deleted: Mutex<Vec<String>>,
    had_outage: AtomicBool,
}

impl BrokenObjects {
    fn wrap(inner: Arc<dyn Objects>, defect: Defect) -> Arc<dyn Objects> {
        let (reads, deleted, had_outage) = (AtomicU64::new(0), Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { inner, defect, reads, deleted, had_outage })
    }

    /// Breaks the response of a bucket during an outage.
    fn apply_outage_defect<T>(
        &self,
        key: &str,
        answer: Result<T, ObjectsError>,
        nothing: Option<T>,
    ) -> Result<T, ObjectsError> {
        let is_outage = matches!(answer, Err(ObjectsError::Dependency { error: DependencyError::Unavailable(_), .. }));
        if is_outage {
            self.had_outage.store(true, Ordering::Relaxed);
        }
        match (self.defect, nothing) {
            (Defect::ReportsOutageAsNotFound, _) if is_outage => Err(ObjectsError::NotFound(key.to_owned())),
            (Defect::ReportsOutageAsEmpty | Defect::RecreatesBucketInOutage, Some(nothing)) if is_outage => Ok(nothing),
            (Defect::StaysUnavailableAfterOutage, _) if self.had_outage.load(Ordering::Relaxed) => {
                Err(ObjectsError::Dependency {
                    key: key.to_owned(),
                    error: DependencyError::Unavailable("outage".into()),
                })
            }
            _ => answer,
        }
    }
}

#[async_trait]
impl Objects for BrokenObjects {
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError> {
        let most_bytes = if self.defect == Defect::IgnoresSizeLimit { u64::MAX } else { most_bytes };
        let got = self.inner.get(key, most_bytes).await;
        let mut object = match self.apply_outage_defect(key, got, None) {
            Err(ObjectsError::NotFound(_)) if self.defect == Defect::ReturnsEmptyForMissing => {
                Object { bytes: Vec::new(), version: "none".into() }
            }
            other => other?,
        };
        match self.defect {
            Defect::ChangesVersionOnRead => object.version = self.reads.fetch_add(1, Ordering::Relaxed).to_string(),
            Defect::ReturnsConstantVersion => object.version = "1".into(),
            _ => {}
        }
        Ok(object)
    }

    async fn put(&self, key: &str, body: Vec<u8>, content: Content, mode: PutMode) -> Result<bool, ObjectsError> {
        let (mut body, mut mode) = (body, mode);
        match self.defect {
            Defect::IgnoresIfAbsent => mode = PutMode::Replace,
            Defect::IgnoresIfVersion if matches!(mode, PutMode::IfVersion(_)) => mode = PutMode::Replace,
            Defect::NeverReplaces => mode = PutMode::IfAbsent,
            Defect::DropsLastByte => drop(body.pop()),
            Defect::WritesNonAtomically if mode == PutMode::Replace => {
                let half = body[..body.len() / 2].to_vec();
                self.inner.put(key, half, content, PutMode::Replace).await?;
            }
            Defect::ChecksVersionThenWrites => {
                if let PutMode::IfVersion(version) = &mode {
                    if self.inner.head(key).await?.is_none_or(|info| info.version != *version) {
                        return Ok(false);
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    mode = PutMode::Replace;
                }
            }
            Defect::ChecksThenWrites if mode == PutMode::IfAbsent => {
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
            Err(ObjectsError::BadKey(_)) if self.defect == Defect::AcceptsAnyKey => Ok(true),
            Err(ObjectsError::Dependency { error: DependencyError::Unavailable(_), .. })
                if self.defect == Defect::ReportsOutageAsEmpty =>
            {
                put
            }
            written => self.apply_outage_defect(key, written, Some(true)),
        }
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        if self.defect == Defect::KeepsDeletedObjects {
            return Ok(());
        }
        self.deleted.lock().unwrap().push(key.to_owned());
        let deleted = self.inner.delete(key).await;
        self.apply_outage_defect(key, deleted, Some(()))
    }

    async fn delete_version(&self, key: &str, version: &str) -> Result<(), ObjectsError> {
        let deleted = match self.defect {
            Defect::DeletesAnyVersion => self.inner.delete(key).await,
            _ => self.inner.delete_version(key, version).await,
        };
        self.apply_outage_defect(key, deleted, Some(()))
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectInfo>, ObjectsError> {
        let found = self.inner.head(key).await;
        let mut found = self.apply_outage_defect(key, found, Some(None))?;
        if let Some(info) = found.as_mut().filter(|_| self.defect == Defect::ForgetsDigest) {
            info.sha256 = None;
        }
        Ok(found)
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<ObjectEntry>, ObjectsError> {
        let (more, within) = match self.defect {
            Defect::SkipsObjectAtPageEnd if after.is_some() => (most.saturating_add(1), prefix),
            Defect::ListsOtherPrefixes => (most, prefix.trim_end_matches(|c| c != '/')),
            _ => (most, prefix),
        };
        let after = if self.defect == Defect::RestartsEveryPage { after.filter(|_| most > 50) } else { after };
        let listed = self.inner.list(within, after, more).await;
        let mut listed = self.apply_outage_defect(prefix, listed, Some(Vec::new()))?;
        match self.defect {
            Defect::SkipsObjectAtPageEnd if after.is_some() => drop(listed.drain(..listed.len().min(1))),
            Defect::ListsInFolderOrder => listed.sort_by_key(|listed| listed.key.replace('/', "\0")),
            Defect::ListsZeroSizes => listed.iter_mut().for_each(|listed| listed.bytes = 0),
            Defect::ListsDeletedObjects => {
                let deleted = self.deleted.lock().unwrap();
                let modified = Timestamp::from_millis(1_700_000_000_000);
                listed.extend(deleted.iter().map(|key| ObjectEntry { key: key.clone(), bytes: 1, modified }));
            }
            _ => {}
        }
        Ok(listed)
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        match self.defect {
            Defect::CheckIgnoresOutage | Defect::RecreatesBucketInOutage => Ok(()),
            Defect::CheckWritesObject => {
                let content = Content::image("image/webp");
                self.inner.put("check", Vec::new(), content, PutMode::Replace).await.map(drop)
            }
            _ => {
                let checked = self.inner.check().await;
                self.apply_outage_defect("check", checked, None)
            }
        }
    }
}

/// Each defect and the check that must fail.
const DETECTED_BY: [(Defect, &str); 22] = [
    (Defect::IgnoresIfAbsent, "put_if_absent_keeps_an_existing_object"),
    (Defect::IgnoresIfVersion, "put_if_version_replaces_only_that_version"),
    (Defect::ChecksVersionThenWrites, "one_of_many_concurrent_puts_if_version_writes"),
    (Defect::ForgetsDigest, "head_describes_the_current_object"),
    (Defect::NeverReplaces, "put_replaces_an_object"),
    (Defect::ChecksThenWrites, "one_of_many_concurrent_puts_if_absent_writes"),
    (Defect::WritesNonAtomically, "put_is_atomic_for_readers"),
    (Defect::DropsLastByte, "get_returns_what_was_put"),
    (Defect::IgnoresSizeLimit, "get_rejects_objects_above_the_size_limit"),
    (Defect::KeepsDeletedObjects, "delete_is_idempotent_and_removes_one_object"),
    (Defect::DeletesAnyVersion, "delete_version_deletes_only_that_version"),
    (Defect::ChangesVersionOnRead, "versions_depend_on_the_content_alone"),
    (Defect::ReturnsConstantVersion, "versions_depend_on_the_content_alone"),
    (Defect::AcceptsAnyKey, "keys_that_leave_the_bucket_are_rejected"),
    (Defect::ReturnsEmptyForMissing, "a_missing_object_is_not_found"),
    (Defect::ListsInFolderOrder, "objects_are_listed_in_key_order_in_any_page_size"),
    (Defect::ListsOtherPrefixes, "objects_are_listed_in_key_order_in_any_page_size"),
    (Defect::RestartsEveryPage, "objects_are_listed_in_key_order_in_any_page_size"),
    (Defect::SkipsObjectAtPageEnd, "objects_are_listed_in_key_order_in_any_page_size"),
    (Defect::ListsDeletedObjects, "listings_hold_current_sizes_and_no_deleted_objects"),
    (Defect::ListsZeroSizes, "listings_hold_current_sizes_and_no_deleted_objects"),
    (Defect::CheckWritesObject, "check_changes_no_object"),
];

/// Each defect during an outage and the check that must fail.
const DETECTED_BY_OUTAGE: [(Defect, &str); 5] = [
    (Defect::ReportsOutageAsNotFound, "an_outage_is_not_reported_as_missing_objects"),
    (Defect::ReportsOutageAsEmpty, "an_outage_is_not_reported_as_missing_objects"),
    (Defect::RecreatesBucketInOutage, "nothing_is_stored_during_an_outage"),
    (Defect::CheckIgnoresOutage, "an_outage_is_not_reported_as_missing_objects"),
    (Defect::StaysUnavailableAfterOutage, "requests_succeed_after_an_outage"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_defect_during_an_outage_fails_a_check() {
    let folders = DataFolders::new();
    for (defect, check) in [(Defect::None, "")].into_iter().chain(DETECTED_BY_OUTAGE) {
        let report = contract::outage(async || {
            let OutageFixture { objects, start_outage, end_outage } = folders.outage();
            OutageFixture { objects: BrokenObjects::wrap(objects, defect), start_outage, end_outage }
        });
        let failures = report.await.failures();
        match defect {
            Defect::None => assert_eq!(failures, [""; 0], "failures of an adapter without a defect"),
            _ => {
                assert!(
                    failures.contains(&check),
                    "{check} passes with the defect {defect:?}; failed checks: {failures:?}"
                )
            }
        }
    }
}

async fn failures(folders: Arc<DataFolders>, defect: Defect) -> Vec<&'static str> {
    contract::objects(async || BrokenObjects::wrap(folders.objects(), defect)).await.failures()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_defect_in_a_bucket_fails_a_check() {
    let folders = Arc::new(DataFolders::new());
    let baseline = failures(Arc::clone(&folders), Defect::None).await;
    let mut tasks = JoinSet::new();
    for (defect, check) in DETECTED_BY {
        let folders = Arc::clone(&folders);
        tasks.spawn(async move { (defect, check, failures(folders, defect).await) });
    }
    for (defect, check, failures) in tasks.join_all().await {
        assert!(failures.contains(&check), "{check} passes with the defect {defect:?}; failed checks: {failures:?}");
        assert!(!baseline.contains(&check), "{check} fails without a defect");
    }
}
