//! The real binary, used as people use it.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot go on says so by panicking")]

#[path = "scenarios/adopt.rs"]
mod adopt;
#[path = "scenarios/backfill.rs"]
mod backfill;
#[path = "scenarios/bad_files.rs"]
mod bad_files;
#[path = "scenarios/biometrics.rs"]
mod biometrics;
#[path = "scenarios/by_hand.rs"]
mod by_hand;
#[path = "scenarios/chaos.rs"]
mod chaos;
#[path = "scenarios/command_line.rs"]
mod command_line;
#[path = "scenarios/corpus.rs"]
mod corpus;
#[path = "scenarios/cost.rs"]
mod cost;
#[path = "scenarios/dead_letters.rs"]
mod dead_letters;
#[path = "scenarios/doctor.rs"]
mod doctor;
#[path = "scenarios/explain.rs"]
mod explain;
#[path = "scenarios/forms.rs"]
mod forms;
#[path = "scenarios/fuzzed_messages.rs"]
mod fuzzed_messages;
#[path = "scenarios/guest.rs"]
mod guest;
#[path = "scenarios/image.rs"]
mod image;
#[path = "scenarios/inbox.rs"]
mod inbox;
#[path = "scenarios/isolation.rs"]
mod isolation;
#[path = "scenarios/kill.rs"]
mod kill;
#[path = "scenarios/letters.rs"]
mod letters;
#[path = "scenarios/load.rs"]
mod load;
#[path = "scenarios/local.rs"]
mod local;
#[path = "scenarios/outage.rs"]
mod outage;
#[path = "scenarios/persons.rs"]
mod persons;
#[path = "scenarios/photo_delete.rs"]
mod photo_delete;
#[path = "scenarios/pinecone.rs"]
mod pinecone;
#[path = "scenarios/platform.rs"]
mod platform;
#[path = "scenarios/questions.rs"]
mod questions;
#[path = "scenarios/redecide.rs"]
mod redecide;
#[path = "scenarios/rekognition.rs"]
mod rekognition;
#[path = "scenarios/replicas.rs"]
mod replicas;
#[path = "scenarios/send.rs"]
mod send;
#[path = "scenarios/services.rs"]
mod services;
#[path = "scenarios/shutdown.rs"]
mod shutdown;
#[path = "scenarios/sparks.rs"]
mod sparks;
#[path = "scenarios/switch.rs"]
mod switch;
#[path = "scenarios/tail.rs"]
mod tail;
#[path = "scenarios/truth.rs"]
mod truth;
#[path = "scenarios/twice.rs"]
mod twice;
#[path = "scenarios/waiting.rs"]
mod waiting;
#[path = "scenarios/watched.rs"]
mod watched;
