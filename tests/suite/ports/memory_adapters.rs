//! The backend in memory, which the simulation runs on, passes the contract suites.

use std::{sync::Arc, time::Duration};

use sparks_engine::{Maintenance, Objects, Store, SystemClock};
use sparks_simulation::memory::{MemoryObjects, MemoryQueue, MemoryQueueConfig, MemoryStore, MemoryStoreConfig};
use sparks_tests::contract::{self, Deduplication, LeaseDuration, QueueCapabilities, QueueFixture};

/// As in a data folder, and as in DynamoDB.
const SINGLE_LANE: MemoryStoreConfig = MemoryStoreConfig {
    lanes: 0,
    index_lag: Duration::ZERO,
    half_visible: Duration::ZERO,
    max_photos_per_commit: None,
};
const LANES: MemoryStoreConfig = MemoryStoreConfig { lanes: 3, max_photos_per_commit: Some(90), ..SINGLE_LANE };

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_passes_the_contract_with_one_lane() {
    contract::store(async || Arc::new(MemoryStore::new(SINGLE_LANE)) as Arc<dyn Store>).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_passes_the_contract_with_several_lanes() {
    contract::store(async || Arc::new(MemoryStore::new(LANES)) as Arc<dyn Store>).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_maintenance_port_passes_the_contract() {
    let maintenance = async || Arc::new(MemoryStore::new(LANES)) as Arc<dyn Maintenance>;
    contract::maintenance(maintenance).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_queue_passes_the_contract() {
    contract::queue(async |lease_duration| queue(lease_duration)).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_bucket_passes_the_contract() {
    let bucket = async || Arc::new(MemoryObjects::new(Arc::new(SystemClock))) as Arc<dyn Objects>;
    contract::objects(bucket).await.assert_passed();
}

fn queue(lease_duration: LeaseDuration) -> QueueFixture {
    let visibility = match lease_duration {
        LeaseDuration::Long => Duration::from_secs(60),
        LeaseDuration::Short => Duration::from_millis(800),
    };
    let config =
        MemoryQueueConfig { visibility_timeout: visibility, max_crashes: 25, duplicates: 0.0, is_unordered: false };
    let queue = Arc::new(MemoryQueue::new(Arc::new(SystemClock), config));
    QueueFixture {
        queue: queue.clone(),
        other: queue.clone(),
        dead_letters: queue,
        visibility,
        capabilities: QueueCapabilities { deduplication: Deduplication::None, ..QueueCapabilities::ALL },
    }
}
