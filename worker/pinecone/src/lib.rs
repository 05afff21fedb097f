//! The face collection on Pinecone, over the data plane of its API.
//!
//! One vector per enrolled face, named by person and face, with the signature as a vector of length one. Each model has its own
//! namespace, so that signatures of different models are never compared. Upserts are idempotent; Pinecone is eventually
//! consistent, so a vector is found some seconds after it was written. The index must be serverless: pod-based indexes cannot
//! list vectors by prefix, so persons could not be removed. Creating an index is left to an operator, because it costs money.

mod backoff;
mod call_counters;
mod client;
mod config;
mod error;
mod index_description;
mod namespace;
mod pinecone;
mod pinecone_collection;
mod recent_writes;
mod upsert_batches;
mod vector_id;
mod wire;

pub use call_counters::Operation;
pub use config::{PineconeConfig, PineconeConfigError};
pub use index_description::IndexDescription;
pub use pinecone::{FetchedFace, Pinecone};
