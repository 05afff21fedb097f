//! The store on DynamoDB keeps the contracts that the embedded one keeps.

use std::sync::Arc;

use sparks_engine::{Maintenance, Store};
use sparks_tests::{contract, emulator::Emulator};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let report = contract::store(async || Arc::new(emulator.store().await) as Arc<dyn Store>).await;
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_looks_at_everything_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let report = contract::maintenance(async || Arc::new(emulator.store().await) as Arc<dyn Maintenance>).await;
    report.assert_passed();
}
