//! The commands, one file each.

pub mod adopt;
pub mod backfill;
pub mod completions;
pub mod config;
pub mod dlq;
pub mod doctor;
pub mod events;
pub mod explain;
pub mod ingest;
pub mod items;
pub mod log;
pub mod models;
pub mod persons;
pub mod photo;
pub mod query;
pub mod rebuild;
pub mod redecide;
pub mod run;
pub mod send;
pub mod setup;
pub mod tail;
