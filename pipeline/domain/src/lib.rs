//! What a photo means: identifiers, events, decisions and projections.
//!
//! Pure, synchronous and deterministic. Deliberately absent: clocks, randomness, I/O, settings files. What varies comes in
//! as an argument, so the same input always gives the same events.

mod adopt;
mod anew;
mod consolidate;
mod decide;
mod drift;
mod event;
mod gallery;
mod ids;
mod item;
mod merges;
mod overlap;
mod people;
mod photo;
mod project;
mod record;
mod review;
mod scale;
mod signature;
mod state;
mod time;

pub use adopt::{FoundPerson, FoundPhoto, Strange, person_of};
pub use anew::{Anew, decide_anew};
pub use consolidate::{Consolidation, Join, Witnesses, consolidate};
pub use decide::{Command, Deletion, Identity, Policy, Recognition, Refusal, decide};
pub use drift::{Difference, drift};
pub use event::{
    AdoptedTagging, Allocation, CropFace, DeletionCause, Event, Evidence, FacesReviewed, Grounds, Likeness,
    MergeUndone, NumbersReserved, Origin, PersonAdopted, PersonPictured, PersonReinstated, PersonRenamed,
    PersonsAllocated, PersonsForgotten, PersonsMerged, PhotoAdopted, PhotoDeleted, PhotoProcessed, PhotoRejected,
    ProfileProcessed, ReviewedFace, UnreadableEvent, Version,
};
pub use gallery::{Candidate, Gallery, Search, Similarity, Template};
pub use ids::{Email, EventId, FaceId, ImageId, InvalidId, PersonId};
pub use item::{Attributes, Item, Key, Mutation, Presence};
pub use merges::Merges;
pub use overlap::same_faces;
pub use people::{People, Person};
pub use photo::{
    Face, FaceBox, Point, Quality, RejectCode, Rejection, SeenFace, Source, TakenAt, Variant, Variants, Verdict,
};
pub use project::{Projection, TaggingKey};
pub use record::{Lane, Position, Recorded, Seq};
pub use review::{Review, SecondLook, UnknownFace, review};
pub use scale::{Scale, Threshold};
pub use signature::Signature;
pub use state::{Outcome, PhotoState};
pub use time::Timestamp;
