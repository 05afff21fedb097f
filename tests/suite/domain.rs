//! Tests of the domain: decisions, states, rows and events, by given/when/then, properties and golden files.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap fails the test, whose name documents it")]

#[path = "domain/adoption.rs"]
mod adoption;
#[path = "domain/biometric_privacy.rs"]
mod biometric_privacy;
#[path = "domain/consolidation.rs"]
mod consolidation;
#[path = "domain/consolidation_reference.rs"]
mod consolidation_reference;
#[path = "domain/consolidation_steps.rs"]
mod consolidation_steps;
#[path = "domain/deletion.rs"]
mod deletion;
#[path = "domain/documentation.rs"]
mod documentation;
#[path = "domain/drift.rs"]
mod drift;
#[path = "domain/forgotten_persons.rs"]
mod forgotten_persons;
#[path = "domain/given_when_then.rs"]
mod given_when_then;
#[path = "domain/golden_events.rs"]
mod golden_events;
#[path = "domain/golden_file.rs"]
mod golden_file;
#[path = "domain/golden_items.rs"]
mod golden_items;
#[path = "domain/identification.rs"]
mod identification;
#[path = "domain/log_level.rs"]
mod log_level;
#[path = "domain/matching.rs"]
mod matching;
#[path = "domain/memory_table.rs"]
mod memory_table;
#[path = "domain/merge_rows.rs"]
mod merge_rows;
#[path = "domain/merges.rs"]
mod merges;
#[path = "domain/person_numbers.rs"]
mod person_numbers;
#[path = "domain/photo_state.rs"]
mod photo_state;
#[path = "domain/plain_language.rs"]
mod plain_language;
#[path = "domain/profile_pictures.rs"]
mod profile_pictures;
#[path = "domain/projection.rs"]
mod projection;
#[path = "domain/properties.rs"]
mod properties;
#[path = "domain/random_events.rs"]
mod random_events;
#[path = "domain/redecide.rs"]
mod redecide;
#[path = "domain/repeated_commands.rs"]
mod repeated_commands;
#[path = "domain/simulation.rs"]
mod simulation;
