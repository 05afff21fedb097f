//! What the engine needs of the world: one trait and one error a file, each error saying what the caller can do.

mod analyzer;
mod clock;
mod darkroom;
mod index;
mod maintenance;
mod objects;
mod queue;
mod store;

pub use analyzer::{AnalyzeError, FaceAnalyzer, FaceEngine, NoFaces, OnCpu};
pub use clock::{Clock, SystemClock};
pub use darkroom::{Darkroom, Description, Developed, Pixels, Rendered};
pub use index::{FaceIndex, Found, IndexError};
pub use maintenance::{Fingerprint, Maintenance, Mark, Mended};
pub use objects::{Content, Object, Objects, ObjectsError, PutMode};
pub use queue::{DeadLetter, DeadLetters, Delivery, Depth, MessageId, Queue, QueueError, Settlement};
pub use store::{
    Commit, CommitError, DecidedFace, Filter, IdentityTail, Page, PhotoGuard, Query, Store, StoreError, StoredFace,
};
