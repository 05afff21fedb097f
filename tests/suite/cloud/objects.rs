//! Objects in S3 keep the contract that files keep.

use std::sync::Arc;

use sparks_aws::S3Objects;
use sparks_engine::Objects;
use sparks_tests::{
    contract::{self, OutageRig},
    emulator::{self, Emulator},
    proxy::Proxy,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_objects_keep_their_contract() {
    let emulator = Emulator::start().await;
    let connection = emulator.connect().await;
    let make = async || Arc::new(S3Objects::new(&connection, &emulator.bucket().await)) as Arc<dyn Objects>;
    contract::objects(make).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_service_that_does_not_answer_is_an_outage() {
    let emulator = Emulator::start().await;
    let make = async || {
        let proxy = Arc::new(Proxy::start(&emulator.endpoint()).await);
        let connection = emulator::connect(&proxy.endpoint()).await;
        let objects = Arc::new(S3Objects::new(&connection, &emulator.bucket().await));
        let (away, back) = (Arc::clone(&proxy), proxy);
        OutageRig { objects, away: Box::new(move || away.set_down(true)), back: Box::new(move || back.set_down(false)) }
    };
    contract::outage(make).await.assert_passed();
}
