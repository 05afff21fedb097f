//! The domain of photo processing: identifiers, events, decisions and projections.
//!
//! Pure, synchronous and deterministic: no clock, no randomness, no I/O, no settings. The same input always gives the
//! same events.

mod adopt;
mod consolidate;
mod decide;
mod drift;
mod event;
mod event_log;
mod gallery;
mod identify;
mod ids;
mod item;
mod merges;
pub mod object_keys;
mod overlap;
mod person_registry;
mod photo;
mod photo_state;
mod policy;
mod project;
mod redecide;
mod review;
mod scale;
mod signature;
mod templates;
mod time;

pub use adopt::{AdoptionIssue, PersonRow, TaggedPhotoRows, tagged_person};
pub use consolidate::{Consolidation, ConsolidationSearch, MergeProposal, TemplateEvidence, consolidate};
pub use decide::{Command, Deletion, Refusal, decide};
pub use drift::{Difference, drift};
pub use event::{
    AdoptedTagging, Allocation, CropAnalysis, CropFace, DeletionCause, Event, Evidence, FacesReviewed, Level,
    LevelRaised, MergeReason, MergeUndone, NumbersReserved, Origin, PersonAdopted, PersonPictured, PersonReinstated,
    PersonRenamed, PersonsAllocated, PersonsForgotten, PersonsMerged, PhotoAdopted, PhotoDeleted, PhotoProcessed,
    PhotoRejected, ProfileProcessed, ReviewedFace, UnreadableEvent, Version,
};
pub use event_log::{Lane, Position, RecordedEvent, Seq};
pub use gallery::{Candidate, FaceCandidates, FacePairSimilarity, Gallery};
pub use identify::{IdentificationInput, IdentityHead};
pub use ids::{Email, EventId, FaceId, ImageId, InvalidId, PersonId};
pub use item::{Attributes, Item, Key, Mutation, Presence};
pub use merges::Merges;
pub use overlap::same_faces;
pub use person_registry::{Person, PersonRegistry};
pub use photo::{
    DetectedFace, Face, FaceBox, Point, Quality, RejectCode, Rejection, SourceObject, TakenAt, Variant, Variants,
    Verdict,
};
pub use photo_state::{PhotoState, PhotoStatus};
pub use policy::{Policy, Threshold};
pub use project::{Projection, ProjectionContext, TaggingKey, UndoneMerge};
pub use redecide::{RedecidedPhoto, redecide};
pub use review::{ReviewInput, Reviewer, UnidentifiedFace, review};
pub use scale::Scale;
pub use signature::Signature;
pub use templates::Template;
pub use time::Timestamp;
