//! Redelivered, late and incomplete messages.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use serde_json::json;
use sparks_domain::{FaceId, ImageId, Item, Key, PersonId, PhotoState, Position, RecordedEvent, RejectCode, Seq};
use sparks_embedded::{Embedded, FileObjects};
use sparks_engine::{
    ArrivalOrder, Clock, Commit, CommitError, DecidedFace, IdentityTail, Objects, Outcome, Page, PhotoRef, Pipeline,
    Query, Queue, Settlement, Store, StoreError, StoredFace, SystemClock, TemplateScope, Templates,
};
use sparks_tests::{
    album::{Photo, album},
    samples::{source, uploader},
    snapshot::{Snapshot, count, read_log},
    worker::{drain, image_of, open, photos_in, pipeline, upload},
};

use super::data_folders::DataFolders;

/// A store whose first read of a photo misses the commit of another worker.
struct StaleFirstRead {
    inner: Arc<dyn Store>,
    is_stale: AtomicBool,
}

#[async_trait]
impl Store for StaleFirstRead {
    async fn commit(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        self.inner.commit(commit).await
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        if self.is_stale.swap(false, Ordering::Relaxed) { Ok(None) } else { self.inner.photo(image).await }
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        self.inner.identity(after).await
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        self.inner.read_log(after, most).await
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<RecordedEvent>, StoreError> {
        self.inner.event(image, seq).await
    }

    async fn templates(&self, after: &Position, reach: TemplateScope, most: usize) -> Result<Templates, StoreError> {
        self.inner.templates(after, reach, most).await
    }

    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        self.inner.signatures(faces).await
    }

    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        self.inner.faces_of(persons).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.inner.get(key).await
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        self.inner.batch_get(keys).await
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        self.inner.query(query).await
    }
}

const CROP: &str = "persons/person1.jpg";

async fn pipeline_over(backend: &Embedded, store: Arc<dyn Store>) -> Pipeline {
    pipeline(store, Arc::clone(&backend.objects) as Arc<dyn Objects>).await.unwrap()
}

fn store(backend: &Embedded) -> Arc<dyn Store> {
    Arc::clone(&backend.store) as Arc<dyn Store>
}

/// Commits a photo of a new person without its crop, and returns the photo's message.
async fn committed_without_crop(folders: &DataFolders) -> (Embedded, PhotoRef) {
    let backend = open(&folders.fresh());
    let photos = album(&[&[0]]);
    upload(&backend, &photos).await;
    drain(&backend).await;
    backend.objects.delete(CROP).await.unwrap();
    let photo = PhotoRef {
        image: image_of(&photos[0]),
        key: format!("originals/{}.jpg", image_of(&photos[0])),
        version: Some(FileObjects::version(&photos[0].jpeg)),
        sequencer: None,
        file_name: None,
        finished: None,
    };
    (backend, photo)
}

async fn process(pipeline: &Pipeline, photo: PhotoRef) -> Outcome {
    pipeline.process(photo, &ArrivalOrder::default().slot(SystemClock.now())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivery_stores_a_missing_crop() {
    let folders = DataFolders::new();
    let (backend, photo) = committed_without_crop(&folders).await;
    let pipeline = pipeline_over(&backend, store(&backend)).await;
    assert!(matches!(process(&pipeline, photo).await, Outcome::AlreadyCommitted));
    assert!(backend.objects.head(CROP).await.unwrap().is_some(), "the crop is missing");
}

/// Another worker with an expired lease committed during the lookup and died before it stored the crop.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_lost_the_race_stores_a_missing_crop() {
    let folders = DataFolders::new();
    let (backend, photo) = committed_without_crop(&folders).await;
    let stale = StaleFirstRead { inner: store(&backend), is_stale: AtomicBool::new(true) };
    let pipeline = pipeline_over(&backend, Arc::new(stale)).await;
    assert!(matches!(process(&pipeline, photo).await, Outcome::AlreadyCommitted));
    assert_eq!(count(&read_log(&backend).await, "PhotoProcessed"), 1, "commits of the photo");
    assert!(backend.objects.head(CROP).await.unwrap().is_some(), "the crop is missing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivery_without_a_version_stores_a_missing_crop() {
    let folders = DataFolders::new();
    let (backend, photo) = committed_without_crop(&folders).await;
    let pipeline = pipeline_over(&backend, store(&backend)).await;
    let outcome = process(&pipeline, PhotoRef { version: None, ..photo }).await;
    assert!(matches!(outcome, Outcome::AlreadyCommitted), "{outcome:?}");
    assert!(backend.objects.head(CROP).await.unwrap().is_some(), "the crop is missing");
}

/// The platform's own `PutItem` may have removed the worker's attributes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redelivery_restores_the_attributes_of_the_row() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let backend = open(&folder);
    let photos = album(&[&[0]]);
    upload(&backend, &photos).await;
    let message = backend.queue.receive(1).await.unwrap().remove(0);
    let body = message.body.clone();
    let first = pipeline_over(&backend, store(&backend)).await;
    let photo = || photos_in(&body).unwrap().remove(0);
    process(&first, photo()).await;
    let clean = Snapshot::take(&folder, &backend).await;

    let file = rusqlite::Connection::open(folder.join("sparks.db")).unwrap();
    let remove =
        "UPDATE items SET item = json_remove(json_set(item, '$.persons', json('[]')), '$.images') WHERE PK = ?1
                AND SK LIKE 'UPLOADED_BY#%'";
    assert_eq!(file.execute(remove, [image_of(&photos[0]).as_str()]).unwrap(), 1);
    process(&first, photo()).await;
    assert_eq!(Snapshot::take(&folder, &backend).await.rows, clean.rows, "the row after the redelivery");
    backend.queue.settle(message, Settlement::Acknowledge).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_waits_for_its_late_row() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    let photo: Photo = album(&[&[0]]).remove(0);
    let (image, key) = (image_of(&photo), format!("originals/{}.jpg", image_of(&photo)));
    let content = sparks_engine::Content::image("image/jpeg");
    backend.objects.put(&key, photo.jpeg, content, sparks_engine::PutMode::Replace).await.unwrap();
    let body =
        json!({ "Records": [{ "s3": { "bucket": { "name": "local" }, "object": { "key": key } } }] }).to_string();
    backend.queue.send(&body, "late").await.unwrap();

    let late = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let row = sparks_tests::samples::set(
            &Key::image(&image, &uploader()),
            sparks_domain::Presence::Any,
            json!({ "entityType": "IMAGE", "tags": ["late"] }),
        );
        let commit = Commit { mutations: vec![row], ..sparks_tests::samples::empty_commit() };
        backend.store.commit(&commit).await.unwrap();
    };
    tokio::join!(late, drain(&backend));
    assert_eq!(count(&read_log(&backend).await, "PhotoProcessed"), 1);
    assert_eq!(backend.queue.depth().await.unwrap(), sparks_engine::QueueDepth::default());
}

/// Limits change and change back; each rejection is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_can_be_rejected_for_an_earlier_reason_again() {
    let folders = DataFolders::new();
    let backend = open(&folders.fresh());
    let pipeline = pipeline_over(&backend, store(&backend)).await;
    let image = sparks_tests::samples::image(1);
    for code in [RejectCode::TooManyBytes, RejectCode::TooManyPixels, RejectCode::TooManyBytes] {
        let reason = sparks_domain::Rejection { code, message: "sample".into() };
        let refused = pipeline.reject(image.clone(), uploader(), source(&image, "v1"), reason).await;
        assert!(matches!(refused, Ok(Outcome::Rejected(_))), "{code:?} returns {refused:?}");
    }
}
