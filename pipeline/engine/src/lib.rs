//! The ports, the stages of a photo and the use cases.
//!
//! No technology: code that uses a disk or a network is in an adapter, behind a port.

mod adopt;
mod arrival_order;
mod backfill;
mod consolidation;
mod consumer;
mod cpu_pool;
mod crop_loader;
mod crop_window;
mod dual_analyzer;
mod failure;
mod finding;
mod gallery_index;
mod gallery_snapshot;
mod log_level;
mod message;
mod photo_rows;
mod pipeline;
mod ports;
mod query_model;
mod rebuild;
mod redecide;
mod service_index;
mod similarity_mapping;
mod stages;
mod upload;
mod usage_tally;
mod users;
mod variant_store;
mod variant_verification;

pub use adopt::{Adoption, AdoptionProgress, AdoptionReport, AdoptionSurvey, SuspectedDuplicate, UnadoptedTable};
pub use arrival_order::{ArrivalOrder, ArrivalSlot};
pub use backfill::{Backfill, BackfillReport};
pub use consolidation::{
    ConsolidationConfig, ConsolidationReport, Consolidator, MergeError, MergeSummary, PhotoUpdateReport,
};
pub use consumer::{
    CircuitBreaker, Consumer, ConsumerConfig, LastingOutage, LoopObserver, ReceiveLoop, ReceivedMessage, SettledMessage,
};
pub use cpu_pool::{CpuPool, TaskPanicked};
pub use crop_loader::CropLoader;
pub use crop_window::CropWindow;
pub use dual_analyzer::DualAnalyzer;
pub use failure::{Cause, Class, Failure, RetryPolicy};
pub use finding::{Finding, FindingStatus};
pub use gallery_index::{GalleryIndex, GalleryState};
pub use gallery_snapshot::{GallerySnapshot, SnapshotStore};
pub use log_level::{LogStatus, raise_level};
pub use message::{
    DeleteRef, FinishedVariants, MalformedMessage, PhotoRef, ProfileRef, RemovedRef, Request, parse_message,
    upload_event,
};
pub use pipeline::{Pipeline, PipelineConfig, Ports, PublishConfig};
pub use ports::*;
pub use query_model::{InvalidPageToken, Paging, QueryModel};
pub use rebuild::{Drift, Rebuilder};
pub use redecide::{
    FaceChange, FaceDifference, PersonFaceCounts, RedecideReport, RedecideSurvey, Redecision, SearchService,
};
pub use service_index::{EnrollmentMode, ServiceIndex, ServiceIndexConfig};
pub use stages::{CommitReceipt, Outcome};
pub use upload::Upload;
pub use usage_tally::{AnalyzerUsage, UsageTally};
pub use variant_store::{Restoration, VariantStore};
pub use variant_verification::{VariantDrift, VariantVerification};
