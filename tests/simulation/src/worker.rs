//! A worker's life: start, receive until killed, start again.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sparks_domain::{Position, Projection};
use sparks_engine::{
    Consumer, ConsumerConfig, CpuPool, GalleryIndex, LoopObserver, Maintenance, NoMeter, Pipeline, PipelineConfig,
    Ports, PublishConfig, ReceiveLoop, RetryPolicy, StoreError,
};
use tokio::sync::watch;

use crate::{
    photo_content::{SimulatedAnalyzer, SimulatedImageProcessor},
    platform::BUCKET,
    world::{VISIBILITY_TIMEOUT, World, policy},
};

/// Runs a worker for ever, from its start to an error, and again.
pub(crate) async fn live(world: Arc<World>, name: String) {
    loop {
        if let Err(error) = run(&world, &name).await {
            world.story.tell(|| format!("{name}: failed to start: {error}"));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn run(world: &World, name: &str) -> Result<(), StoreError> {
    let index = Arc::new(GalleryIndex::load(Arc::new(world.store_for(name)), 5).await?);
    let pipeline = Arc::new(pipeline(world, name, Arc::clone(&index)));
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
        () = follow_log(world, &index) => Ok(()),
    };
    world.story.tell(|| format!("{name}: ended: {ended:?}"));
    Ok(())
}

/// Applies new events to the gallery every second, as the background tasks of a worker do. A read that would return nothing is
/// left out.
async fn follow_log(world: &World, index: &GalleryIndex) {
    let mut read = Position::default();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let heads = world.store.heads().await.unwrap_or_default();
        if heads != read && index.catch_up().await.is_ok() {
            read = heads;
        }
    }
}

/// Builds the pipeline of a client of the services.
pub(crate) fn pipeline(world: &World, name: &str, index: Arc<GalleryIndex>) -> Pipeline {
    let ports = Ports {
        objects: Arc::new(world.objects_for(name)),
        index,
        store: Arc::new(world.store_for(name)),
        image_processor: Arc::new(SimulatedImageProcessor),
        analyzer: Arc::new(SimulatedAnalyzer),
        publisher: Arc::new(world.publisher_for(name)),
        meter: Arc::new(NoMeter),
        clock: Arc::new(world.clock.clone()),
    };
    let config = PipelineConfig {
        policy: policy(),
        projection: Projection::default(),
        max_bytes: 1 << 20,
        actor: name.into(),
        bucket: BUCKET.into(),
        publish: PublishConfig { thumbnails: true, events: true },
    };
    Pipeline::new(ports, CpuPool::inline(), config)
}

struct Endless;

#[async_trait]
impl LoopObserver for Endless {
    async fn is_done(&self) -> bool {
        false
    }
}
