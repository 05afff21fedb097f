//! The platform's table, the event log and the signatures: what one transaction covers.

use async_trait::async_trait;
use sparks_domain::{
    Event, FaceId, IdentityHead, ImageId, Item, Key, Level, Mutation, PersonId, PhotoState, Position, RecordedEvent,
    Seq, Signature, Timestamp, UnreadableEvent,
};

use super::DependencyError;

/// Commits decisions and reads log, table and signatures.
#[async_trait]
pub trait Store: Send + Sync {
    /// Appends the events and applies the mutations, all or nothing. Returns a conflict and changes nothing where the state that
    /// the caller decided on has changed. Refuses what readers of the log's level could not read ([`Commit::level_after`]).
    async fn commit(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError>;

    /// Whether commits are made one after another, so that a condition on the identity event costs nothing. Elsewhere, commits with
    /// such a condition conflict with each other.
    fn has_serial_commits(&self) -> bool {
        false
    }

    /// Returns the state of a photo. Strongly consistent.
    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError>;

    /// Returns the identity events after `after`, complete up to the returned sequence, the counter and the log's level. Fails if
    /// this release cannot read logs of that level.
    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError>;

    /// Returns at most `most` events after `after`, each lane in order and without gaps. Empty at the end of the log.
    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError>;

    /// Returns the event with this sequence in the lane of the photo.
    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<RecordedEvent>, StoreError>;

    /// Returns about `most` templates enrolled after `after`, never a part of an event's. The position stays where it is at the
    /// end of the log.
    async fn templates(&self, after: &Position, scope: TemplateScope, most: usize) -> Result<Templates, StoreError>;

    /// Returns the stored signatures of these faces.
    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError>;

    /// Returns all stored faces that were identified as one of these persons.
    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError>;

    /// Checks that the store can be read and written.
    async fn check(&self) -> Result<(), StoreError>;

    /// Returns one row.
    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError>;

    /// Returns the rows of these keys that exist, in any order.
    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError>;

    /// Returns one page of rows.
    async fn query(&self, query: &Query) -> Result<Page, StoreError>;
}

/// Everything that one decision changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The photo decided on, if any: a condition that its state is unchanged.
    pub photo: Option<PhotoGuard>,
    /// The state of person allocation decided on, if persons change: a condition that it is unchanged.
    pub identity: Option<IdentityHead>,
    /// The program and version that decided.
    pub actor: String,
    /// The time of the decision.
    pub when: Timestamp,
    /// The events to append.
    pub events: Vec<Event>,
    /// The changes of rows.
    pub mutations: Vec<Mutation>,
    /// The signatures to store. Kept out of the log so that they can be erased.
    pub signatures: Vec<StoredFace>,
    /// Stored faces without a person that are identified now.
    pub identified: Vec<(FaceId, PersonId)>,
    /// Stored faces that become templates.
    pub promoted: Vec<FaceId>,
    /// Signatures to erase.
    pub erased: Erasure,
    /// The lowest level of a log that may hold what is stored besides the events.
    pub level: Level,
}

/// Signatures to erase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erasure {
    /// Those of all faces in these photos.
    pub photos: Vec<ImageId>,
    /// Those of these faces.
    pub faces: Vec<FaceId>,
}

impl Erasure {
    /// The maximum number of photos whose faces one commit erases: every store accepts this many. A larger erasure is made in
    /// several commits.
    pub const MAX_PHOTOS: usize = 64;
}

impl Commit {
    /// Creates a commit without events, to which mutations may be added.
    pub fn without_events(when: Timestamp, photo: Option<PhotoGuard>) -> Self {
        Self {
            photo,
            identity: None,
            actor: String::new(),
            when,
            events: Vec::new(),
            mutations: Vec::new(),
            signatures: Vec::new(),
            identified: Vec::new(),
            promoted: Vec::new(),
            erased: Erasure::default(),
            level: Level::FIRST,
        }
    }

    /// Returns the level of the log after the commit. Fails if readers of that level could not read what is written.
    pub fn level_after(&self, level: Level) -> Result<Level, StoreError> {
        let mut after = readable_level(level)?;
        for event in &self.events {
            match event {
                Event::LevelRaised(raised) if raised.level <= after => {
                    return Err(StoreError::Refused(format!("the log has level {after} already")));
                }
                Event::LevelRaised(raised) => after = raised.level,
                event if event.level() > after => {
                    return Err(StoreError::level_too_low(event.event_type(), event.level(), after));
                }
                _ => {}
            }
        }
        match self.level > after {
            true => Err(StoreError::level_too_low("the stored form", self.level, after)),
            false => readable_level(after),
        }
    }
}

/// Returns the level, or an error if this release cannot read logs of it.
pub fn readable_level(level: Level) -> Result<Level, StoreError> {
    match level > Level::MAX {
        true => Err(StoreError::UnreadableLog(UnreadableEvent::HigherLevel(level).to_string())),
        false => Ok(level),
    }
}

/// The state of a photo that a decision was made on.
#[derive(Debug, Clone, PartialEq)]
pub struct PhotoGuard {
    /// The photo.
    pub image: ImageId,
    /// Its state.
    pub before: Option<PhotoState>,
}

/// A face with its signature, as the store holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFace {
    /// The ID of the face.
    pub face: FaceId,
    /// The model that computed the signature.
    pub model: String,
    /// The embedding.
    pub signature: Signature,
    /// The person it was identified as.
    pub person: Option<PersonId>,
    /// Whether it is a template of that person.
    pub template: bool,
}

/// The events whose templates are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateScope {
    /// At least those of identity events: enough to never allocate a person twice. Cheap where nothing has happened.
    Persons,
    /// Those of all events.
    Everything,
}

/// Templates read from the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Templates {
    /// The templates.
    pub faces: Vec<StoredFace>,
    /// The position up to which they are complete.
    pub read: Position,
}

/// A stored face and the event that decided it.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedFace {
    /// The sequence of the event in the photo's lane.
    pub seq: Seq,
    /// The face.
    pub kept: StoredFace,
}

/// The identity events after a sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentityTail {
    /// The events, in order.
    pub events: Vec<RecordedEvent>,
    /// The sequence of the last identity event.
    pub seq: Seq,
    /// The last person number allocated.
    pub counter: u32,
    /// The reader level of the log.
    pub level: Level,
}

/// A query for rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The rows to return.
    pub filter: Filter,
    /// The last key of the previous page.
    pub after: Option<Key>,
    /// The maximum number of rows.
    pub limit: usize,
    /// Whether rows come in descending order.
    pub backwards: bool,
}

/// The rows of a query: of the table or of one of its indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// A partition, limited to a prefix of the sort key; sorted by SK.
    Partition {
        /// The partition key.
        pk: String,
        /// The prefix of SK.
        sk_prefix: String,
    },
    /// `entityType-PK-index`, sorted by PK.
    EntityType(String),
    /// `uploadedBy-PK-index`, sorted by PK.
    UploadedBy(String),
}

/// One page of rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The rows.
    pub items: Vec<Item>,
    /// The key to continue after, if there may be more.
    pub last: Option<Key>,
}

/// Errors of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store failed.
    #[error("store {0}")]
    Dependency(#[from] DependencyError),
    /// Stored data cannot be read by this version; an operator must look.
    #[error("the store holds data that this version cannot read: {0}")]
    Unreadable(String),
    /// The event log holds an event that this version cannot read. No message is to blame: the worker must be upgraded.
    #[error("event log unreadable: {0}")]
    UnreadableLog(String),
    /// The store refuses the request for good, because it exceeds a limit or is invalid; an operator must look.
    #[error("the store refuses the request: {0}")]
    Refused(String),
    /// Workers that may be running could not read what would be written. Possible once an operator has raised the level.
    #[error("{form} needs log level {needed}, and the log has level {level}: {remedy}")]
    LevelTooLow {
        /// What would be written.
        form: String,
        /// The level that it needs.
        needed: Level,
        /// The level of the log.
        level: Level,
        /// What allows it.
        remedy: String,
    },
}

impl StoreError {
    /// Returns the error for a form above the level of the log, which an operator has to raise.
    pub fn level_too_low(form: impl Into<String>, needed: Level, level: Level) -> Self {
        let remedy = format!("upgrade all workers, then run `sparks log level {needed}`");
        Self::LevelTooLow { form: form.into(), needed, level, remedy }
    }
}

/// Reasons why nothing was committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Conflict: another worker committed this photo. Read its state again.
    #[error("conflict: another worker committed the photo")]
    PhotoMoved,
    /// Conflict: another worker allocated or changed persons. Search and decide again.
    #[error("conflict: another worker allocated persons")]
    IdentityMoved,
    /// Conflict: a row of the platform already has this person ID. Skip the number and decide again.
    #[error("conflict: there is already a row for {0}")]
    NumberTaken(PersonId),
    /// The platform has not created the row. Wait.
    #[error("row {0} does not exist")]
    RowMissing(Key),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DependencyError> for CommitError {
    fn from(error: DependencyError) -> Self {
        Self::Store(error.into())
    }
}
