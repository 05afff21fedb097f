//! What the engine needs of the world: one trait and one error a file, each error saying what the caller can do.

mod analyzer;
mod clock;
mod collection;
mod darkroom;
mod index;
mod maintenance;
mod meter;
mod objects;
mod platform;
mod publisher;
mod queue;
mod secrets;
mod store;

pub use analyzer::{AnalyzeError, FaceAnalyzer, FaceEngine, NoFaces, OnCpu};
pub use clock::{Clock, SystemClock};
pub use collection::{Collection, Lesson, Probe};
pub use darkroom::{Darkroom, DarkroomError, Description, Developed, Pixels, Rendered};
pub use index::{Answers, FaceIndex, Found, IndexError, Looked, Standing};
pub use maintenance::{Fingerprint, Maintenance, Mark, Mended};
pub use meter::{Meter, Unmeasured};
pub use objects::{Content, Listed, Object, Objects, ObjectsError, PutMode, object_key};
pub use platform::Platform;
pub use publisher::{Notice, PublishError, Publisher, Silent, Topic};
pub use queue::{DeadLetter, DeadLetters, Delivery, Depth, MessageId, Queue, QueueError, Settlement};
pub use secrets::{Secret, Secrets, SecretsError};
pub use store::{
    Commit, CommitError, DecidedFace, Erasure, Filter, IdentityTail, Page, PhotoGuard, Query, Reach, Store, StoreError,
    StoredFace, Templates,
};
