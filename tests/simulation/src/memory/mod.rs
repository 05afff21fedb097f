//! A backend in memory: the third beside SQLite and DynamoDB, under the same contract suites.
//!
//! Like DynamoDB it has lanes, indexes that lag behind the table, transactions of which a reader may see one half before the other,
//! and a limit on the photos whose faces one transaction changes. Time is tokio's, so that it can be paused.

mod maintenance;
mod objects;
mod observer;
mod publisher;
mod queue;
mod rows;
mod store;

pub use objects::MemoryObjects;
pub use observer::CommitObserver;
pub use publisher::MemoryPublisher;
pub use queue::{MemoryQueue, MemoryQueueConfig};
pub use store::{MemoryStore, MemoryStoreConfig};
