//! The ports, the stages of a photo and the use cases.
//!
//! Deliberately absent: any technology. What talks to a disk or a network lives behind a port, in an adapter.

mod accompanied;
mod adopt;
mod backfill;
mod cpu;
mod failure;
mod finding;
mod gallery_index;
mod message;
mod pipeline;
mod portraits;
mod ports;
mod query_model;
mod rebuild;
mod redecide;
mod register;
mod service_index;
mod settlement;
mod shown;
mod snapshot;
mod stages;
mod tally;
mod turn;
mod upload;
mod users;
mod window;

pub use accompanied::Accompanied;
pub use adopt::{Adopted, Adoption, Alike, Found as FoundToAdopt, Step, Unadopted};
pub use backfill::{Backfill, Backfilled};
pub use cpu::{Cpu, Crashed};
pub use failure::{Cause, Class, Failure};
pub use finding::{Finding, State};
pub use gallery_index::{GalleryIndex, Known};
pub use message::{
    DeleteRef, FinishedVariants, Malformed, PhotoRef, ProfileRef, RemovedRef, Request, understand, upload_event,
};
pub use pipeline::{Announcements, Pipeline, Ports, Rules};
pub use portraits::Portraits;
pub use ports::*;
pub use query_model::{BadToken, Paging, QueryModel};
pub use rebuild::{Drift, Rebuilder};
pub use redecide::{AskedService, Difference, Faces, Redecision, Report, Survey, What};
pub use register::{Followed, Merged, Register, RegisterError, Rules as RegisterRules, Tidied};
pub use service_index::{LearnsBy, ServiceIndex, ServiceRules};
pub use settlement::Perseverance;
pub use snapshot::{Snapshot, Snapshots};
pub use stages::{Committed, Outcome};
pub use tally::{Tally, Work};
pub use turn::{Ticket, Turnstile};
pub use upload::Upload;
pub use window::Window;
