//! A worker in miniature: the pipeline over a data folder, and a loop that takes messages off the queue one by one.

use std::{path::Path, sync::Arc, time::Duration};

use sparks_domain::{ImageId, PersonId, Policy, Projection, Threshold};
use sparks_embedded::{Embedded, FileObjects, Patience, Submission};
use sparks_engine::{
    Announcements, Clock, Content, Cpu, Failure, GalleryIndex, Maintenance, Malformed, Objects, OnCpu, Perseverance,
    PhotoRef, Pipeline, Ports, Publisher, PutMode, Queue, QueueError, Rebuilder, Register, RegisterRules, Request,
    Rules, Store, StoreError, SystemClock, Ticket, Turnstile, Unmeasured, Upload, understand,
};
use sparks_faces::Synthetic;
use sparks_media::{CropSpec, Fit, Lab, Limits, VariantSpec};

use crate::{
    album::Photo,
    faults::Fuse,
    notices::Notices,
    samples::{image, uploader},
};

/// What messages call the bucket.
pub const BUCKET: &str = "local";

/// Opens a data folder with leases that outlast every test.
pub fn open(folder: &Path) -> Embedded {
    let patience = Patience { visibility: Duration::from_secs(60), max_deaths: 25 };
    Embedded::open_or_create(folder, patience).expect("a data folder")
}

/// The ID that [`upload`] gives a photo.
pub fn image_of(photo: &Photo) -> ImageId {
    image(photo.number)
}

/// Acts as the platform: stores the original, makes its row, and sends the message.
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
        let content = Content::picture("image/jpeg");
        let written = backend.objects.put(&upload.key, photo.jpeg.clone(), content, PutMode::IfAbsent).await;
        assert!(written.expect("a stored original"), "{} was uploaded before", upload.key);
        let submitted = backend.intake.submit(upload).await.expect("a submission");
        assert!(matches!(submitted, Submission::Queued(_)), "photo {} is {submitted:?}", photo.number);
    }
}

/// The photos that a message to [`upload`]'s bucket names.
pub fn photos_in(body: &str) -> Result<Vec<PhotoRef>, Malformed> {
    let photo = |request| match request {
        Request::Photo(photo) => Some(photo),
        _ => None,
    };
    Ok(understand(body, BUCKET)?.into_iter().filter_map(photo).collect())
}

/// Who makes pictures: the real one, with pictures that are quickly made.
pub fn lab() -> Lab {
    let variant =
        |fit, side| VariantSpec { fit, width: side, height: side, quality: 90.0, method: 0, sharp_yuv: false };
    Lab::new(Limits::default(), variant(Fit::Inside, 1920), variant(Fit::Cover, 64), CropSpec::default())
}

/// When a face is somebody.
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

/// What the operator would have settled.
pub fn rules() -> Rules {
    Rules {
        policy: policy(),
        projection: Projection::default(),
        max_bytes: 1 << 24,
        actor: "tests".into(),
        bucket: BUCKET.into(),
        announcements: Announcements { thumbnails: true, events: true },
    }
}

/// A pipeline over these ports with an index of its own, and nobody who listens.
pub async fn pipeline(store: Arc<dyn Store>, objects: Arc<dyn Objects>) -> Result<Pipeline, StoreError> {
    telling(store, objects, Arc::new(Notices::default())).await
}

/// A pipeline over these ports with an index of its own.
pub async fn telling(
    store: Arc<dyn Store>,
    objects: Arc<dyn Objects>,
    publisher: Arc<dyn Publisher>,
) -> Result<Pipeline, StoreError> {
    let cpu = Cpu::new(2);
    let ports = Ports {
        objects,
        index: Arc::new(GalleryIndex::load(Arc::clone(&store), 5).await?),
        store,
        darkroom: Arc::new(lab()),
        analyzer: Arc::new(OnCpu::new("synthetic", || Ok(Synthetic), cpu.clone())),
        publisher,
        meter: Arc::new(Unmeasured),
        clock: Arc::new(SystemClock),
    };
    Ok(Pipeline::new(ports, cpu, rules()))
}

/// Who compares the table with the log.
pub fn rebuilder(backend: &Embedded) -> Rebuilder {
    let rules = rules();
    Rebuilder::new(Arc::clone(&backend.store) as Arc<_>, Arc::new(SystemClock), rules.projection, rules.actor)
}

/// Who keeps track of who is who, whose every call goes through the fuse.
pub async fn register(backend: &Embedded, fuse: &Arc<Fuse>) -> Result<Register, StoreError> {
    let objects = fuse.guard(Arc::clone(&backend.objects) as Arc<dyn Objects>);
    let store = fuse.guard(Arc::clone(&backend.store) as Arc<dyn Maintenance>);
    register_over(store, objects, Duration::ZERO).await
}

/// Who keeps track of who is who over a store whose indexes may lag behind it so long.
pub async fn register_over(
    store: Arc<dyn Maintenance>,
    objects: Arc<dyn Objects>,
    lag: Duration,
) -> Result<Register, StoreError> {
    let index = GalleryIndex::load(Arc::clone(&store) as Arc<dyn Store>, 5).await?;
    let Rules { policy, projection, actor, .. } = rules();
    let rules = RegisterRules { policy, scale: sparks_faces::scale, projection, actor, lag };
    Ok(Register::new(store, objects, Arc::new(index), Arc::new(sparks_engine::Silent), Arc::new(SystemClock), rules))
}

/// The persons a photo's row names.
pub async fn persons_in(backend: &Embedded, photo: &Photo) -> Vec<PersonId> {
    let key = sparks_domain::Key::image(&image_of(photo), &uploader());
    let row = backend.store.get(&key).await.expect("an answer").expect("the photo's row");
    let persons = row.attributes.get("persons").cloned().expect("an attribute");
    serde_json::from_value(persons).expect("a list of persons")
}

/// Works on one message at a time.
pub struct Worker {
    queue: Arc<dyn Queue>,
    pipeline: Pipeline,
    line: Turnstile,
    /// What it has told others.
    pub notices: Arc<Notices>,
}

/// Why a worker stopped before everything was done.
#[derive(Debug)]
pub enum Stopped {
    /// It never got to work.
    Starting(StoreError),
    /// Its queue was gone.
    Working(QueueError),
}

/// How often and how long it tries.
const PERSEVERANCE: Perseverance = Perseverance { max_receives: 5, max_wait: Duration::from_secs(10) };

impl Worker {
    /// A worker whose every call goes through the fuse.
    pub async fn start(backend: &Embedded, fuse: &Arc<Fuse>) -> Result<Self, Stopped> {
        let store = fuse.guard(Arc::clone(&backend.store) as Arc<dyn Store>);
        let objects = fuse.guard(Arc::clone(&backend.objects) as Arc<dyn Objects>);
        let queue = fuse.guard(Arc::clone(&backend.queue) as Arc<dyn Queue>);
        let notices = Arc::new(Notices::default());
        let publisher = fuse.guard(Arc::clone(&notices) as Arc<dyn Publisher>);
        let pipeline = telling(store, objects, publisher).await.map_err(Stopped::Starting)?;
        Ok(Self { queue, pipeline, line: Turnstile::default(), notices })
    }

    /// Works until the queue has nothing to do, now or later.
    pub async fn drain(&self, backend: &Embedded) -> Result<(), Stopped> {
        loop {
            if self.next().await.map_err(Stopped::Working)? {
                continue;
            }
            let depth = backend.queue.depth().await.map_err(Stopped::Working)?;
            if depth.waiting + depth.leased + depth.delayed == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Works off the next message, if there is one.
    pub async fn next(&self) -> Result<bool, QueueError> {
        let Some(delivery) = self.queue.receive(1).await?.pop() else { return Ok(false) };
        let turn = self.line.ticket();
        let result = match understand(&delivery.body, BUCKET) {
            Err(malformed) => Err(malformed.into()),
            Ok(requests) => self.handle(requests, &turn).await,
        };
        let settlement = PERSEVERANCE.settlement(&result, &delivery, SystemClock.now());
        self.queue.settle(delivery, settlement).await?;
        Ok(true)
    }

    async fn handle(&self, requests: Vec<Request>, turn: &Ticket) -> Result<(), Failure> {
        for request in requests {
            self.pipeline.handle(request, turn).await?;
        }
        Ok(())
    }
}

/// Works on everything in the folder, without faults.
pub async fn drain(backend: &Embedded) {
    let worker = Worker::start(backend, &Fuse::counting()).await.expect("a worker");
    worker.drain(backend).await.expect("a queue without work");
}
