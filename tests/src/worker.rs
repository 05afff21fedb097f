//! An in-process worker over a data folder: the real consumer and pipeline.

use std::{path::Path, sync::Arc, time::Duration};

use sparks_domain::{ImageId, PersonId, Policy, Projection, Threshold};
use sparks_embedded::{Embedded, FileObjects, FolderConfig, PublishedRetention, QueueConfig, Submission};
use sparks_engine::{
    Clock, ConsolidationConfig, Consolidator, Consumer, ConsumerConfig, Content, CpuPool, GalleryIndex, Maintenance,
    MalformedMessage, NoMeter, Objects, OnCpu, PhotoRef, Pipeline, PipelineConfig, Ports, PublishConfig, Publisher,
    PutMode, Queue, QueueError, Rebuilder, Request, RetryPolicy, Store, StoreError, SystemClock, Upload, parse_message,
};
use sparks_faces::SyntheticEngine;
use sparks_media::{CropSpec, Fit, Limits, LocalImageProcessor, VariantSpec};

use crate::{
    album::Photo,
    fault_injection::FaultPlan,
    recording_publisher::RecordingPublisher,
    samples::{image, uploader},
};

/// The bucket's name in messages.
pub const BUCKET: &str = "local";

/// A configuration with a visibility timeout that outlasts every test, and without retention.
pub const FOLDER_CONFIG: FolderConfig = FolderConfig {
    queue: QueueConfig { visibility_timeout: Duration::from_secs(60), max_crashes: 25, dead_letter_retention: None },
    published: PublishedRetention { max_file_bytes: None, max_age: None },
};

/// Returns [`FOLDER_CONFIG`] with a changed configuration of the queue.
pub fn with_queue(change: impl FnOnce(&mut QueueConfig)) -> FolderConfig {
    let mut config = FOLDER_CONFIG;
    change(&mut config.queue);
    config
}

/// Opens a data folder with [`FOLDER_CONFIG`].
pub fn open(folder: &Path) -> Embedded {
    Embedded::open_or_create(folder, FOLDER_CONFIG).expect("data folder opens")
}

/// Returns the image ID under which [`upload`] stores a photo.
pub fn image_of(photo: &Photo) -> ImageId {
    image(photo.number)
}

/// Uploads photos as the platform does: stores the original, creates the IMAGE row and sends the message.
pub async fn upload(backend: &Embedded, photos: &[Photo]) {
    for photo in photos {
        let image = image_of(photo);
        let upload = Upload {
            bucket: BUCKET.into(),
            key: format!("originals/{image}.jpg"),
            image,
            uploader: uploader(),
            version: FileObjects::version(&photo.jpeg),
            bytes: photo.jpeg.len() as u64,
            file_name: format!("photo-{}.jpg", photo.number),
            when: SystemClock.now(),
        };
        let content = Content::image("image/jpeg");
        let written = backend.objects.put(&upload.key, photo.jpeg.clone(), content, PutMode::IfAbsent).await;
        assert!(written.expect("original is stored"), "{} was uploaded before", upload.key);
        let submitted = backend.submitter.submit(upload).await.expect("upload is submitted");
        assert!(matches!(submitted, Submission::Queued(_)), "photo {} is {submitted:?}", photo.number);
    }
}

/// Returns the photos that a message for [`BUCKET`] asks to process.
pub fn photos_in(body: &str) -> Result<Vec<PhotoRef>, MalformedMessage> {
    let photo = |request| match request {
        Request::Photo(photo) => Some(photo),
        _ => None,
    };
    Ok(parse_message(body, BUCKET)?.into_iter().filter_map(photo).collect())
}

/// Returns the real image processor with settings that are fast to encode.
pub fn image_processor() -> LocalImageProcessor {
    let variant =
        |fit, side| VariantSpec { fit, width: side, height: side, quality: 90.0, method: 0, sharp_yuv: false };
    LocalImageProcessor::new(
        Limits::default(),
        variant(Fit::Inside, 1920),
        variant(Fit::Cover, 64),
        CropSpec::default(),
    )
}

/// Returns the identification policy of the tests.
pub fn policy() -> Policy {
    Policy {
        threshold: Threshold::Fixed(0.6),
        margin: 0.05,
        candidates: 5,
        min_size: 40.0,
        min_sharpness: 0.1,
        min_confidence: 0.6,
        max_turn: 1.0,
    }
}

/// Returns the pipeline settings of the tests.
pub fn pipeline_config() -> PipelineConfig {
    PipelineConfig {
        policy: policy(),
        projection: Projection::default(),
        max_bytes: 1 << 24,
        actor: "tests".into(),
        bucket: BUCKET.into(),
        publish: PublishConfig { thumbnails: true, events: true },
    }
}

/// Creates a pipeline over these ports with a gallery index of its own; what it publishes is dropped.
pub async fn pipeline(store: Arc<dyn Store>, objects: Arc<dyn Objects>) -> Result<Pipeline, StoreError> {
    pipeline_with_publisher(store, objects, Arc::new(RecordingPublisher::default())).await
}

/// Creates a pipeline over these ports with a gallery index of its own.
pub async fn pipeline_with_publisher(
    store: Arc<dyn Store>,
    objects: Arc<dyn Objects>,
    publisher: Arc<dyn Publisher>,
) -> Result<Pipeline, StoreError> {
    let cpu = CpuPool::new(2);
    let ports = Ports {
        objects,
        index: Arc::new(GalleryIndex::load(Arc::clone(&store), 5).await?),
        store,
        image_processor: Arc::new(image_processor()),
        analyzer: Arc::new(OnCpu::new("synthetic", || Ok(SyntheticEngine), cpu.clone())),
        publisher,
        meter: Arc::new(NoMeter),
        clock: Arc::new(SystemClock),
    };
    Ok(Pipeline::new(ports, cpu, pipeline_config()))
}

/// Creates a rebuilder over a data folder.
pub fn rebuilder(backend: &Embedded) -> Rebuilder {
    let config = pipeline_config();
    Rebuilder::new(Arc::clone(&backend.store) as Arc<_>, Arc::new(SystemClock), config.projection, config.actor)
}

/// Creates a consolidator whose port calls go through a fault plan.
pub async fn consolidator(backend: &Embedded, plan: &Arc<FaultPlan>) -> Result<Consolidator, StoreError> {
    let objects = plan.wrap(Arc::clone(&backend.objects) as Arc<dyn Objects>);
    let store = plan.wrap(Arc::clone(&backend.store) as Arc<dyn Maintenance>);
    consolidator_over(store, objects, Duration::ZERO).await
}

/// Creates a consolidator over a store whose indexes may be stale for up to `lag`.
pub async fn consolidator_over(
    store: Arc<dyn Maintenance>,
    objects: Arc<dyn Objects>,
    lag: Duration,
) -> Result<Consolidator, StoreError> {
    consolidator_with_clock(store, objects, lag, Arc::new(SystemClock)).await
}

/// Like [`consolidator_over`], with a clock.
pub async fn consolidator_with_clock(
    store: Arc<dyn Maintenance>,
    objects: Arc<dyn Objects>,
    lag: Duration,
    clock: Arc<dyn Clock>,
) -> Result<Consolidator, StoreError> {
    let index = Arc::new(GalleryIndex::load(Arc::clone(&store) as Arc<dyn Store>, 5).await?);
    let cpu = CpuPool::new(1);
    let ports = Ports {
        objects,
        index: Arc::clone(&index) as Arc<_>,
        store: Arc::clone(&store) as Arc<dyn Store>,
        image_processor: Arc::new(image_processor()),
        analyzer: Arc::new(OnCpu::new("synthetic", || Ok(SyntheticEngine), cpu.clone())),
        publisher: Arc::new(sparks_engine::NoPublisher),
        meter: Arc::new(NoMeter),
        clock,
    };
    let pipeline = Arc::new(Pipeline::new(ports, cpu.clone(), pipeline_config()));
    let PipelineConfig { policy, projection, actor, .. } = pipeline_config();
    let config = ConsolidationConfig { policy, scale: sparks_faces::scale, projection, actor, index_lag: lag, cpu };
    Ok(Consolidator::new(pipeline, store, index, config))
}

/// Returns the persons named in a photo's IMAGE row.
pub async fn persons_in(backend: &Embedded, photo: &Photo) -> Vec<PersonId> {
    let key = sparks_domain::Key::image(&image_of(photo), &uploader());
    let row = backend.store.get(&key).await.expect("store answers").expect("IMAGE row exists");
    let persons = row.attributes.get("persons").cloned().expect("row has persons");
    serde_json::from_value(persons).expect("persons are person IDs")
}

/// The real consumer, driven one message at a time.
pub struct Worker {
    consumer: Consumer,
    queue: Arc<dyn Queue>,
    plan: Arc<FaultPlan>,
    /// What the worker has published.
    pub publisher: Arc<RecordingPublisher>,
}

/// Errors that stop a worker before the queue is empty.
#[derive(Debug)]
pub enum WorkerError {
    /// The gallery could not be loaded.
    Start(StoreError),
    /// The queue failed.
    Queue(QueueError),
    /// The fault plan killed it.
    Crashed,
}

/// The consumer settings of test workers.
const CONSUMER_CONFIG: ConsumerConfig = ConsumerConfig {
    visibility_timeout: Duration::from_secs(60),
    retry_policy: RetryPolicy { max_attempts: 5, prerequisite_timeout: Duration::from_secs(10) },
};

impl Worker {
    /// Starts a worker whose port calls go through a fault plan.
    pub async fn start(backend: &Embedded, plan: &Arc<FaultPlan>) -> Result<Self, WorkerError> {
        let store = plan.wrap(Arc::clone(&backend.store) as Arc<dyn Store>);
        let objects = plan.wrap(Arc::clone(&backend.objects) as Arc<dyn Objects>);
        let queue: Arc<dyn Queue> = plan.wrap(Arc::clone(&backend.queue) as Arc<dyn Queue>);
        let publisher = Arc::new(RecordingPublisher::default());
        let faulty_publisher = plan.wrap(Arc::clone(&publisher) as Arc<dyn Publisher>);
        let pipeline = pipeline_with_publisher(store, objects, faulty_publisher).await.map_err(WorkerError::Start)?;
        let consumer = Consumer::new(Arc::clone(&queue), Arc::new(pipeline), CONSUMER_CONFIG);
        Ok(Self { consumer, queue, plan: Arc::clone(plan), publisher })
    }

    /// Processes messages until none is waiting, leased or delayed.
    pub async fn drain(&self, backend: &Embedded) -> Result<(), WorkerError> {
        let handles = Arc::strong_count(&self.queue);
        let drained = self.process_all(backend).await;
        // The task that extends a lease ends a moment later. Until then it keeps the data folder open, and a lease of a worker that crashed.
        while Arc::strong_count(&self.queue) > handles {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drained
    }

    async fn process_all(&self, backend: &Embedded) -> Result<(), WorkerError> {
        loop {
            if self.next().await? {
                continue;
            }
            let depth = backend.queue.depth().await.map_err(WorkerError::Queue)?;
            if depth.waiting + depth.leased + depth.delayed == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Processes the next message. Returns false if there is none.
    pub async fn next(&self) -> Result<bool, WorkerError> {
        let next = async {
            let Some(message) = self.consumer.receive(1).await?.pop() else { return Ok(false) };
            self.consumer.handle(message).await.map(|_| true)
        };
        tokio::select! {
            biased;
            () = self.plan.crashed() => Err(WorkerError::Crashed),
            handled = next => handled.map_err(WorkerError::Queue),
        }
    }
}

/// Processes all messages of a data folder without faults.
pub async fn drain(backend: &Embedded) {
    let worker = Worker::start(backend, &FaultPlan::without_faults()).await.expect("worker starts");
    worker.drain(backend).await.expect("queue drains");
}
