//! The AWS, Pinecone and Rekognition adapters, and the binary in an AWS account, on local servers.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap fails the test")]

mod cloud {
    mod access_denied;
    mod account;
    mod adopt;
    mod deployment;
    mod doctor;
    mod dynamodb_faults;
    mod group_photos;
    mod identity_conflicts;
    mod large_deletion;
    mod load_test;
    mod log_level;
    mod notification_routes;
    mod objects;
    mod outage;
    mod pinecone;
    mod platform_api;
    mod platform_client;
    mod platform_writes;
    mod publisher;
    mod queue;
    mod queue_faults;
    mod redecide;
    mod rekognition_server;
    mod replicas;
    mod request_counts;
    mod secrets;
    mod setup;
    mod soak;
    mod store;
    mod throttling;
}
