//! What a photo means: decisions, states, rows and events, told as given / when / then, as properties and as golden files.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that cannot go on should fail right there, and its name says what it is about"
)]

#[path = "domain/adopting.rs"]
mod adopting;
#[path = "domain/anew.rs"]
mod anew;
#[path = "domain/consolidate.rs"]
mod consolidate;
#[path = "domain/decide.rs"]
mod decide;
#[path = "domain/deleting.rs"]
mod deleting;
#[path = "domain/drift.rs"]
mod drift;
#[path = "domain/evolve.rs"]
mod evolve;
#[path = "domain/forgetting.rs"]
mod forgetting;
#[path = "domain/golden.rs"]
mod golden;
#[path = "domain/golden_events.rs"]
mod golden_events;
#[path = "domain/golden_items.rs"]
mod golden_items;
#[path = "domain/merges.rs"]
mod merges;
#[path = "domain/merging.rs"]
mod merging;
#[path = "domain/numbering.rs"]
mod numbering;
#[path = "domain/profiles.rs"]
mod profiles;
#[path = "domain/project.rs"]
mod project;
#[path = "domain/properties.rs"]
mod properties;
#[path = "domain/random_events.rs"]
mod random_events;
#[path = "domain/recognise.rs"]
mod recognise;
#[path = "domain/repeats.rs"]
mod repeats;
#[path = "domain/secrecy.rs"]
mod secrecy;
#[path = "domain/story.rs"]
mod story;
#[path = "domain/table.rs"]
mod table;
#[path = "domain/world.rs"]
mod world;
