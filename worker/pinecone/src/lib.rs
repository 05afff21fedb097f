//! Known faces in a Pinecone index, over its data plane.
//!
//! One vector a face: named by whom it shows and which face it is, with the signature as a vector of length one. Each model has a
//! namespace of its own, so that signatures of different models never meet. Writing is idempotent, and what was written is
//! found after a while, not at once. The index has to be a serverless one: others do not list their vectors, so nobody could be
//! forgotten. Deliberately absent: making indexes, which is a matter of money and for people.

mod access;
mod batches;
mod calls;
mod client;
mod collection;
mod description;
mod name;
mod namespace;
mod pauses;
mod pinecone;
mod recent;
mod trouble;
mod wire;

pub use access::{Access, AccessError};
pub use calls::Operation;
pub use description::Description;
pub use pinecone::{Kept, Pinecone};
