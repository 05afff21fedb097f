//! The backend in the cloud, on an emulator.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test that meets the unexpected may stop")]

mod cloud {
    mod account;
    mod adopt;
    mod crowds;
    mod denial;
    mod deployment;
    mod doctor;
    mod faults;
    mod group;
    mod guest;
    mod identity;
    mod load;
    mod objects;
    mod outage;
    mod photos;
    mod pinecone;
    mod platform;
    mod publisher;
    mod queue;
    mod readers;
    mod redecide;
    mod rekognition_server;
    mod replicas;
    mod requests;
    mod secrets;
    mod setup;
    mod store;
}
