//! Rekognition's protocol, spoken by a face engine of our own: whoever has a client for the one can talk to the other.
//!
//! Requests are signed JSON over HTTP, as Rekognition's own clients send them. Every member of a request is checked as the
//! service's model says, and answers have its members and no others. What an engine does not tell is left out.

mod collection;
mod detail;
mod fields;
mod filter;
mod folder;
mod looker;
mod members;
mod model;
mod operations;
mod options;
mod photo;
mod pose;
mod protocol;
mod refusal;
mod server;
mod service;
mod shelf;
mod signing;
mod throttle;
mod token;

pub use folder::OpenError;
pub use model::{BadModel, Model};
pub use options::{Keys, Options, Throttle, TooMany, Trouble};
pub use server::Server;
pub use service::Service;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that meets the unexpected may stop")]
mod tests;
