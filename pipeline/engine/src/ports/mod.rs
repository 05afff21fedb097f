//! The ports: what the engine needs from outside. One trait and one error a file; each error variant says what the caller can do.

mod clock;
mod dependency;
mod face_analyzer;
mod face_collection;
mod face_index;
mod image_processor;
mod maintenance;
mod meter;
mod objects;
mod platform_client;
mod publisher;
mod queue;
mod secrets;
mod store;
mod worker_registry;

pub use clock::{Clock, SystemClock};
pub use dependency::DependencyError;
pub use face_analyzer::{AnalyzeError, FaceAnalyzer, FaceEngine, NoFaces, OnCpu};
pub use face_collection::{Enrollment, FaceCollection, Probe, RemovedFaces};
pub use face_index::{
    FaceEnrollment, FaceIndex, FaceSearch, IndexError, PersonStatus, ProbeSet, SearchCache, SearchResult,
};
pub use image_processor::{EncodedVariant, ImageError, ImageInfo, ImageProcessor, Pixels, RenderedImage};
pub use maintenance::{Checkpoint, Fingerprint, Maintenance, RepairGroup, RepairGuard, RepairReport};
pub use meter::{Meter, NoMeter, RetryClass};
pub use objects::{Content, Object, ObjectEntry, ObjectInfo, Objects, ObjectsError, PutMode, object_key, sha256};
pub use platform_client::PlatformClient;
pub use publisher::{NoPublisher, Notification, PublishError, Publisher, Topic};
pub use queue::{DeadLetter, DeadLetters, Delivery, MessageId, Queue, QueueDepth, QueueError, Settlement};
pub use secrets::{Secret, Secrets, SecretsError};
pub use store::{
    Commit, CommitError, DecidedFace, Erasure, Filter, IdentityTail, Page, PhotoGuard, Query, Store, StoreError,
    StoredFace, TemplateScope, Templates, readable_level,
};
pub use worker_registry::{WorkerAnnouncement, WorkerRegistry};
