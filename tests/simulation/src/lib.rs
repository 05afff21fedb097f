//! A simulation of the whole system: real consumer, pipeline, gallery, consolidation and rebuild over simulated services, on one
//! thread with virtual time. A seed determines everything: the workers, the faults, what the platform and the operator do, and the
//! order in which it happens. A seed that violates an invariant can be replayed exactly, with the story of what happened.
//!
//! - [`memory`]: the services.
//! - `link.rs`: what lies between a worker and a service: latency, errors, lost replies, throttling, outages.
//! - `photo_content.rs`: photos that say which faces they show, so that the truth is known.
//! - `platform.rs`, `operator.rs`, `worker.rs`: the actors.
//! - `world.rs`: one run, from a seed to a [`Report`].
//! - `invariants.rs`: what must hold in the end; `audit.rs`: what must hold at every commit.
//! - `features.rs`: what only some seeds have.
//! - `face_service.rs`: a face service behind the workers' index.

mod audit;
mod crowd;
mod face_service;
mod features;
mod invariants;
mod link;
pub mod memory;
mod operator;
mod photo_content;
mod plan;
mod platform;
mod profile;
#[cfg(test)]
mod regressions;
mod story;
mod worker;
mod world;

pub use crowd::Crowd;
pub use plan::Plan;
pub use world::{Contention, Report, run, shrink};
