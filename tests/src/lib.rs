//! Support for all test suites.
//!
//! - [`contract`]: what every adapter of a port must do, as suites that any adapter can be run through.
//! - Test doubles: [`fault_injection`], [`manual_clock`], [`recording_publisher`], [`stale_index_store`].
//! - Input: [`album`], [`samples`], [`legacy_data`], [`new_persons`], [`platform_actions`], [`platform_simulator`], [`fuzz_targets`].
//! - The system under test: [`worker`] in this process, [`binary`] as a program; [`snapshot`] compares results; [`soak`] lasts long.
//! - Services on this machine: [`emulator`], [`dynoxide`], [`pinecone_server`], [`rekognition_server`], and [`proxy`] in front of them;
//!   [`dynamodb_limits`] refuses what DynamoDB refuses and the emulator does not.

pub mod album;
pub mod binary;
pub mod contract;
pub mod dynamodb_limits;
pub mod dynoxide;
pub mod emulator;
pub mod fault_injection;
pub mod fuzz_targets;
pub mod legacy_data;
pub mod manual_clock;
pub mod new_persons;
pub mod pinecone_server;
pub mod platform_actions;
pub mod platform_simulator;
pub mod proxy;
pub mod recording_publisher;
pub mod rekognition_server;
pub mod samples;
pub mod snapshot;
pub mod soak;
pub mod stale_index_store;
pub mod venv;
pub mod worker;
