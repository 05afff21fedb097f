//! The ports: what adapters promise, and what the pipeline makes of it when something breaks.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test that meets the unexpected may stop")]

mod ports {
    mod adopted;
    mod broken_maintenance;
    mod broken_objects;
    mod broken_queue;
    mod broken_store;
    mod crash;
    mod crowds;
    mod deleted;
    mod deleted_crash;
    mod embedded;
    mod forgotten;
    mod identity;
    mod joined;
    mod joined_crash;
    mod lagging;
    mod messages;
    mod messages_fuzzed;
    mod migration;
    mod profile;
    mod rebuild;
    mod rebuild_deleted;
    mod redelivery;
    mod reviewed;
}
