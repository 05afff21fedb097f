//! A worker's life: start, receive until killed, start again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use sparks_domain::{Position, Projection};
use sparks_engine::{
    Clock, Consumer, ConsumerConfig, CpuPool, CropLoader, EnrollmentMode, FaceIndex, GalleryIndex, LoopObserver,
    Maintenance, Meter, Objects, Pipeline, PipelineConfig, Ports, PublishConfig, ReceiveLoop, RetryClass, RetryPolicy,
    ServiceIndex, ServiceIndexConfig, Store, StoreError,
};
use tokio::sync::watch;

use crate::{
    face_service::ServiceKind,
    photo_content::{MODEL, SimulatedAnalyzer, SimulatedImageProcessor},
    platform::BUCKET,
    world::{VISIBILITY_TIMEOUT, World, policy},
};

/// How long a face service may not find a person: much longer than its lag and the differences of clocks together.
const RECENT: Duration = Duration::from_secs(120);
const MAX_BYTES: u64 = 1 << 20;

/// Runs a worker for ever, from its start to an error, and again.
pub(crate) async fn live(world: Arc<World>, name: String) {
    loop {
        if let Err(error) = run(&world, &name).await {
            world.story.tell(|| format!("{name}: failed to start: {error}"));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Returns the pipeline of a process on some machine, and the gallery that it searches.
pub(crate) async fn pipeline(
    world: &World,
    name: &str,
    model: &'static str,
) -> Result<(Arc<Pipeline>, Arc<GalleryIndex>), StoreError> {
    let store = Arc::new(world.store_for(name)) as Arc<dyn Store>;
    let objects = Arc::new(world.objects_for(name)) as Arc<dyn Objects>;
    let gallery = Arc::new(GalleryIndex::load(Arc::clone(&store), 5).await?);
    let clock = world.clock_of_machine() as Arc<dyn Clock>;
    let index: Arc<dyn FaceIndex> = match world.faces_for(name) {
        None => Arc::clone(&gallery) as Arc<dyn FaceIndex>,
        Some(faces) => {
            let config = ServiceIndexConfig {
                candidates: 5,
                recent: RECENT,
                threshold: policy().threshold,
                gallery_threshold: (faces.inner.kind == ServiceKind::Pixels).then_some(policy().threshold),
                enrollment_mode: match faces.inner.kind {
                    ServiceKind::Signatures => EnrollmentMode::Signatures,
                    ServiceKind::Pixels => EnrollmentMode::Pixels,
                },
            };
            let (store, objects) = (Arc::clone(&store), Arc::clone(&objects));
            let processor = Arc::new(SimulatedImageProcessor);
            let crops = CropLoader::new(Arc::clone(&store), objects, processor, CpuPool::inline(), MAX_BYTES);
            let gallery = Arc::clone(&gallery);
            Arc::new(ServiceIndex::new(gallery, Arc::new(faces), store, crops, Arc::clone(&clock), config))
        }
    };
    let ports = Ports {
        objects,
        index,
        store,
        image_processor: Arc::new(SimulatedImageProcessor),
        analyzer: Arc::new(SimulatedAnalyzer { model }),
        publisher: Arc::new(world.publisher_for(name)),
        meter: Arc::new(InFlightMeter { own: AtomicUsize::new(0), all: Arc::clone(&world.in_flight) }),
        clock,
    };
    let config = PipelineConfig {
        policy: policy(),
        projection: Projection::default(),
        max_bytes: MAX_BYTES,
        actor: name.into(),
        bucket: BUCKET.into(),
        publish: PublishConfig { thumbnails: true, events: true },
    };
    Ok((Arc::new(Pipeline::new(ports, CpuPool::inline(), config)), gallery))
}

async fn run(world: &World, name: &str) -> Result<(), StoreError> {
    let (pipeline, gallery) = pipeline(world, name, MODEL).await?;
    let config = ConsumerConfig {
        visibility_timeout: VISIBILITY_TIMEOUT,
        retry_policy: RetryPolicy { max_attempts: 1000, prerequisite_timeout: Duration::from_secs(3600) },
    };
    let receive_loop = ReceiveLoop {
        consumer: Consumer::new(Arc::new(world.queue_for(name)), pipeline, config),
        slots: world.plan.slots,
        poll: Duration::from_millis(500),
        grace: Duration::from_secs(5),
        max_outage: None,
        observer: Arc::new(Endless),
    };
    let (_running, stop) = watch::channel(false);
    let ended = tokio::select! {
        biased;
        ended = receive_loop.run(stop) => ended,
        () = follow_log(world, &gallery) => Ok(()),
    };
    world.story.tell(|| format!("{name}: ended: {ended:?}"));
    Ok(())
}

/// Applies new events to the gallery every second, as the background tasks of a worker do. A read that would return nothing is
/// left out.
async fn follow_log(world: &World, gallery: &GalleryIndex) {
    let mut read = Position::default();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let heads = world.store.heads().await.unwrap_or_default();
        if heads != read && gallery.catch_up().await.is_ok() {
            read = heads;
        }
    }
}

struct Endless;

#[async_trait]
impl LoopObserver for Endless {
    async fn is_done(&self) -> bool {
        false
    }
}

/// Adds the messages that a worker has in flight to those of all workers, until it is killed.
struct InFlightMeter {
    own: AtomicUsize,
    all: Arc<AtomicUsize>,
}

impl InFlightMeter {
    fn set(&self, in_flight: usize) {
        self.all.fetch_add(in_flight, Ordering::Relaxed);
        self.all.fetch_sub(self.own.swap(in_flight, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Drop for InFlightMeter {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Meter for InFlightMeter {
    fn record_stage(&self, _: &'static str, _: Duration) {}

    fn record_call(&self, _: &'static str) {}

    fn record_request(&self, _: &'static str) {}

    fn record_settlement(&self, _: &'static str) {}

    fn record_retry(&self, _: RetryClass) {}

    fn record_concurrency(&self, in_flight: usize, _: usize, _: usize) {
        self.set(in_flight);
    }
}
