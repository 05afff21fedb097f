//! A bucket in memory.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use sparks_domain::Timestamp;
use sparks_engine::{
    Clock, Content, Object, ObjectEntry, ObjectInfo, Objects, ObjectsError, PutMode, object_key, sha256,
};

/// A bucket in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryObjects {
    objects: Arc<Mutex<BTreeMap<String, StoredObject>>>,
    clock: Arc<dyn Clock>,
    has_whole_seconds: bool,
}

struct StoredObject {
    body: Vec<u8>,
    modified: Timestamp,
}

impl MemoryObjects {
    /// Creates an empty bucket.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { objects: Arc::default(), clock, has_whole_seconds: false }
    }

    /// Truncates times to seconds, as S3 does.
    pub fn with_whole_seconds(self, has_whole_seconds: bool) -> Self {
        Self { has_whole_seconds, ..self }
    }

    fn now(&self) -> Timestamp {
        let millis = self.clock.now().as_millis();
        Timestamp::from_millis(if self.has_whole_seconds { millis - millis % 1000 } else { millis })
    }

    /// Returns the version of an object with this body.
    pub fn version(body: &[u8]) -> String {
        sha256(body)[..16].to_owned()
    }

    /// Returns the body of an object.
    pub fn body(&self, key: &str) -> Option<Vec<u8>> {
        self.lock().get(key).map(|object| object.body.clone())
    }

    /// Returns all keys.
    pub fn keys(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StoredObject>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Objects for MemoryObjects {
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError> {
        tokio::task::yield_now().await; // a caller that reads in a loop lets others run, as with a real bucket
        let objects = self.lock();
        let found = objects.get(object_key(key)?).ok_or_else(|| ObjectsError::NotFound(key.to_owned()))?;
        let bytes = found.body.len() as u64;
        match bytes > most_bytes {
            true => Err(ObjectsError::TooLarge { key: key.to_owned(), bytes, most: most_bytes }),
            false => Ok(Object { bytes: found.body.clone(), version: Self::version(&found.body) }),
        }
    }

    async fn put(&self, key: &str, body: Vec<u8>, _: Content, mode: PutMode) -> Result<bool, ObjectsError> {
        let (key, modified) = (object_key(key)?, self.now());
        let mut objects = self.lock();
        let version = objects.get(key).map(|found| Self::version(&found.body));
        let is_allowed = match mode {
            PutMode::Replace => true,
            PutMode::IfAbsent => version.is_none(),
            PutMode::IfVersion(expected) => version == Some(expected),
        };
        if !is_allowed {
            return Ok(false);
        }
        objects.insert(key.to_owned(), StoredObject { body, modified });
        Ok(true)
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        self.lock().remove(object_key(key)?);
        Ok(())
    }

    async fn delete_version(&self, key: &str, version: &str) -> Result<(), ObjectsError> {
        let (key, mut objects) = (object_key(key)?, self.lock());
        if objects.get(key).is_some_and(|found| Self::version(&found.body) == version) {
            objects.remove(key);
        }
        Ok(())
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectInfo>, ObjectsError> {
        let info = |found: &StoredObject| ObjectInfo {
            bytes: found.body.len() as u64,
            version: Self::version(&found.body),
            sha256: Some(sha256(&found.body)),
            modified: found.modified,
        };
        Ok(self.lock().get(object_key(key)?).map(info))
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<ObjectEntry>, ObjectsError> {
        let objects = self.lock();
        let start = after.map_or(Bound::Included(prefix), |after| Bound::Excluded(after.max(prefix)));
        let found = objects.range::<str, _>((start, Bound::Unbounded)).filter(|(key, _)| key.starts_with(prefix));
        let entry = |(key, found): (&String, &StoredObject)| ObjectEntry {
            key: key.clone(),
            bytes: found.body.len() as u64,
            modified: found.modified,
        };
        Ok(found.take(most).map(entry).collect())
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        Ok(())
    }
}
