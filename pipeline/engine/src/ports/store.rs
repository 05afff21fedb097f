//! The platform's table, the log and the signatures: what is committed together.

use async_trait::async_trait;
use sparks_domain::{
    Event, FaceId, Identity, ImageId, Item, Key, Mutation, PersonId, PhotoState, Position, Recorded, Seq, Signature,
    Timestamp,
};

/// Commits decisions and answers questions.
#[async_trait]
pub trait Store: Send + Sync {
    /// Records the events and applies the changes, all or nothing. Reads nothing that the caller has not decided on:
    /// where the world has moved since, it says so and changes nothing.
    async fn commit(&self, commit: &Commit) -> Result<Vec<Recorded>, CommitError>;

    /// What the log knows of a photo, as of now.
    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError>;

    /// The identity events after `after`, complete up to the sequence it says, and the counter.
    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError>;

    /// At most `most` events after `after`, each lane in order and without gaps. Empty when there are no more.
    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<Recorded>, StoreError>;

    /// The event at this place of the photo's lane.
    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<Recorded>, StoreError>;

    /// The faces that persons have come to be known by since `after`, about `most`: all of an event's together. There are
    /// no more where it gets no further.
    async fn templates(&self, after: &Position, reach: Reach, most: usize) -> Result<Templates, StoreError>;

    /// The signatures of these faces, where they are kept.
    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError>;

    /// All kept faces that were decided to be one of these persons.
    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError>;

    /// Whether decisions can be read and committed now.
    async fn check(&self) -> Result<(), StoreError>;

    /// One row.
    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError>;

    /// The rows of these keys that exist, in any order.
    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError>;

    /// One page of rows.
    async fn query(&self, query: &Query) -> Result<Page, StoreError>;
}

/// Everything that one decision changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The photo decided on, if it is about one: it must still be what it was.
    pub photo: Option<PhotoGuard>,
    /// The persons decided on, if they change: nobody may have changed them meanwhile.
    pub identity: Option<Identity>,
    /// Who decided.
    pub actor: String,
    /// When.
    pub when: Timestamp,
    /// What was decided.
    pub events: Vec<Event>,
    /// What that makes of the table.
    pub mutations: Vec<Mutation>,
    /// What the faces look like. Kept apart from the log, so that they can be erased.
    pub signatures: Vec<StoredFace>,
    /// Kept faces that were nobody's and are somebody's from now on.
    pub identified: Vec<(FaceId, PersonId)>,
    /// Kept faces that persons are known by from now on.
    pub promoted: Vec<FaceId>,
    /// What is not to be kept any longer.
    pub erased: Erasure,
}

/// Signatures that are to go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erasure {
    /// Of all faces in these photos.
    pub photos: Vec<ImageId>,
    /// Of these faces.
    pub faces: Vec<FaceId>,
}

impl Commit {
    /// A commit that decides nothing: changes to the table may be added.
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
        }
    }
}

/// What a photo was when it was decided on.
#[derive(Debug, Clone, PartialEq)]
pub struct PhotoGuard {
    /// The photo.
    pub image: ImageId,
    /// What the log knew of it.
    pub before: Option<PhotoState>,
}

/// A face's signature as the store keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFace {
    /// Whose.
    pub face: FaceId,
    /// The model that made it.
    pub model: String,
    /// What it looks like.
    pub signature: Signature,
    /// Who it was decided to be, if anybody.
    pub person: Option<PersonId>,
    /// Whether the person is known by it.
    pub template: bool,
}

/// Which events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// At least those about persons: enough to never found anybody twice. Costs little where nothing has happened.
    Persons,
    /// All.
    Everything,
}

/// Faces that persons have come to be known by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Templates {
    /// The faces.
    pub faces: Vec<StoredFace>,
    /// Up to where these are all.
    pub read: Position,
}

/// A kept face and the event about its photo that decided it.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedFace {
    /// The event, in its photo's lane.
    pub seq: Seq,
    /// The face.
    pub kept: StoredFace,
}

/// The identity events since some point.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentityTail {
    /// The events, in order.
    pub events: Vec<Recorded>,
    /// The last identity event there is.
    pub seq: Seq,
    /// The last number given out.
    pub counter: u32,
}

/// A question about many rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Which rows.
    pub filter: Filter,
    /// The last key of the page before.
    pub after: Option<Key>,
    /// How many rows at most.
    pub limit: usize,
    /// From the last key to the first.
    pub backwards: bool,
}

/// Which rows: of the table itself or of one of its indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// A partition, narrowed by how its sort keys begin; sorted by SK.
    Partition {
        /// Its PK.
        pk: String,
        /// How SK begins.
        sk_prefix: String,
    },
    /// `entityType-PK-index`, sorted by PK.
    EntityType(String),
    /// `uploadedBy-PK-index`, sorted by PK.
    UploadedBy(String),
}

/// Some rows of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The rows.
    pub items: Vec<Item>,
    /// Where to go on, if there may be more.
    pub last: Option<Key>,
}

/// Why the store did not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Trying later may help.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// It answers, and has too much to do: waiting helps, however long it takes.
    #[error("the store has too much to do: {0}")]
    Busy(String),
    /// We may not: whoever grants permissions can help. Nobody's message is at fault.
    #[error("not allowed: {0}")]
    Denied(String),
    /// What is stored cannot be understood: a human must look.
    #[error("the store holds something this version cannot read: {0}")]
    Unreadable(String),
}

/// Why nothing was committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Somebody committed this photo meanwhile: look at it again.
    #[error("the photo was committed by somebody else meanwhile")]
    PhotoMoved,
    /// Somebody allocated persons meanwhile: search again, decide again.
    #[error("persons were allocated by somebody else meanwhile")]
    IdentityMoved,
    /// A row of somebody else has the number: skip it, decide again.
    #[error("there is a row for {0} already")]
    NumberTaken(PersonId),
    /// The platform has not made the row: wait.
    #[error("the row {0} is not there")]
    RowMissing(Key),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}
