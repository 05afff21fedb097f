//! The `sparks` binary, end to end, on data folders.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "scenarios/adopt.rs"]
mod adopt;
#[path = "scenarios/analyzer_switch.rs"]
mod analyzer_switch;
#[path = "scenarios/backfill.rs"]
mod backfill;
#[path = "scenarios/bad_files.rs"]
mod bad_files;
#[path = "scenarios/biometrics.rs"]
mod biometrics;
#[path = "scenarios/chaos.rs"]
mod chaos;
#[path = "scenarios/command_line.rs"]
mod command_line;
#[path = "scenarios/consolidation_health.rs"]
mod consolidation_health;
#[path = "scenarios/container_image.rs"]
mod container_image;
#[path = "scenarios/corpus.rs"]
mod corpus;
#[path = "scenarios/cost.rs"]
mod cost;
#[path = "scenarios/dead_letter_causes.rs"]
mod dead_letter_causes;
#[path = "scenarios/dead_letters.rs"]
mod dead_letters;
#[path = "scenarios/decoder_isolation.rs"]
mod decoder_isolation;
#[path = "scenarios/doctor.rs"]
mod doctor;
#[path = "scenarios/explain.rs"]
mod explain;
#[path = "scenarios/face_services.rs"]
mod face_services;
#[path = "scenarios/fuzzed_messages.rs"]
mod fuzzed_messages;
#[path = "scenarios/ground_truth.rs"]
mod ground_truth;
#[path = "scenarios/harness.rs"]
mod harness;
#[path = "scenarios/inbox.rs"]
mod inbox;
#[path = "scenarios/load_test.rs"]
mod load_test;
#[path = "scenarios/local_engine.rs"]
mod local_engine;
#[path = "scenarios/log_level.rs"]
mod log_level;
#[path = "scenarios/manual_changes.rs"]
mod manual_changes;
#[path = "scenarios/message_forms.rs"]
mod message_forms;
#[path = "scenarios/outage.rs"]
mod outage;
#[path = "scenarios/peak_memory.rs"]
mod peak_memory;
#[path = "scenarios/person_merges.rs"]
mod person_merges;
#[path = "scenarios/photo_delete.rs"]
mod photo_delete;
#[path = "scenarios/pinecone.rs"]
mod pinecone;
#[path = "scenarios/platform_writes.rs"]
mod platform_writes;
#[path = "scenarios/power_failure.rs"]
mod power_failure;
#[path = "scenarios/prerequisites.rs"]
mod prerequisites;
#[path = "scenarios/previous_release.rs"]
mod previous_release;
#[path = "scenarios/query.rs"]
mod query;
#[path = "scenarios/redecide.rs"]
mod redecide;
#[path = "scenarios/rekognition.rs"]
mod rekognition;
#[path = "scenarios/repeated_ingest.rs"]
mod repeated_ingest;
#[path = "scenarios/replicas.rs"]
mod replicas;
#[path = "scenarios/send.rs"]
mod send;
#[path = "scenarios/shutdown.rs"]
mod shutdown;
#[path = "scenarios/sigkill.rs"]
mod sigkill;
#[path = "scenarios/soak.rs"]
mod soak;
#[path = "scenarios/sparks.rs"]
mod sparks;
#[path = "scenarios/tail.rs"]
mod tail;
#[path = "scenarios/unreadable_log.rs"]
mod unreadable_log;
#[path = "scenarios/variant_changes.rs"]
mod variant_changes;
