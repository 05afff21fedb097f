//! The decision about one photo: from a command and the photo's state to events.

use std::collections::BTreeSet;

use crate::{
    Allocation, DeletionCause, Email, Event, FaceId, IdentificationInput, IdentityHead, ImageId, PersonId,
    PersonsAllocated, PhotoDeleted, PhotoProcessed, PhotoRejected, PhotoState, PhotoStatus, Policy, ProfileProcessed,
    Rejection, SourceObject, TakenAt, Timestamp, Variants, Version,
    identify::{IdentifiedFaces, PriorIdentities, identify_faces},
};

/// What is to be decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Record a processed photo.
    Process {
        /// The photo.
        image_id: ImageId,
        /// The user who uploaded it.
        uploader: Email,
        /// The object it was read from.
        source: SourceObject,
        /// Width and height in pixels, upright.
        dimensions: (u32, u32),
        /// When it was taken.
        taken_at: Option<TakenAt>,
        /// Its variants.
        variants: Variants,
        /// Its faces and their candidates.
        identification: IdentificationInput,
    },
    /// Record why a photo is rejected.
    Reject {
        /// The photo.
        image_id: ImageId,
        /// The user who uploaded it.
        uploader: Email,
        /// The object it was read from.
        source: SourceObject,
        /// Why.
        reason: Rejection,
    },
    /// Identify a user by their profile picture.
    Profile {
        /// The user.
        email: Email,
        /// The object it was read from.
        source: SourceObject,
        /// Its largest face, if any, and the candidates.
        identification: IdentificationInput,
    },
    /// Delete a photo.
    Delete(Deletion),
}

/// A photo that is to be deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Deletion {
    /// The photo.
    pub image_id: ImageId,
    /// Why.
    pub cause: DeletionCause,
    /// The user who uploaded it, if there is an IMAGE row.
    pub uploader: Option<Email>,
    /// The version of the object, where it is known better than from the log.
    pub version: Option<String>,
    /// The sequencer of the object's removal, if the store has one.
    pub sequencer: Option<String>,
    /// The objects to delete with it.
    pub objects: Vec<String>,
    /// Faces of other photos that become templates, for persons who lose all of theirs.
    pub known_by: Vec<FaceId>,
    /// When the owner's request was sent, by the clock of the queue.
    pub requested: Option<Timestamp>,
    /// The version of the original that the request met.
    pub original: Option<String>,
}

impl From<Deletion> for Command {
    fn from(deletion: Deletion) -> Self {
        Self::Delete(deletion)
    }
}

/// Why a command leads to no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The log records the same decision already.
    #[error("already committed by event {}", .0.seq)]
    AlreadyCommitted(Box<PhotoState>),
    /// The log records a newer version of the object.
    #[error("a newer version was committed by event {}", .0.seq)]
    Outdated(Box<PhotoState>),
    /// The photo was deleted.
    #[error("the photo was deleted")]
    Deleted,
}

/// Returns the events that the command leads to, in the order in which they are to be recorded.
pub fn decide(state: Option<&PhotoState>, command: Command, policy: &Policy) -> Result<Vec<Event>, Refusal> {
    let follows = state.map(|state| state.seq);
    match command {
        Command::Reject { image_id, uploader, source, reason } => {
            refuse_repeat(state, &source, PhotoStatus::Rejected(reason.code))?;
            Ok(vec![Event::PhotoRejected(PhotoRejected { v: Version, image_id, uploader, source, reason, follows })])
        }
        Command::Process { image_id, uploader, source, dimensions, taken_at, variants, identification } => {
            refuse_repeat(state, &source, PhotoStatus::Processed)?;
            let IdentifiedFaces { analyzer, identity, first_face, faces, allocations } =
                identify_faces(&image_id, state, identification, &PriorIdentities::default(), policy);
            let identified: BTreeSet<PersonId> = faces.iter().filter_map(|face| face.verdict.person()).collect();
            let mut adopted = state.map(|state| state.adopted.clone()).unwrap_or_default();
            adopted.retain(|person| !identified.contains(person));
            let processed = Event::PhotoProcessed(PhotoProcessed {
                v: Version,
                image_id: image_id.clone(),
                uploader,
                source,
                width: dimensions.0,
                height: dimensions.1,
                taken_at,
                variants,
                analyzer,
                identity_seq: identity.seq,
                first_face,
                faces,
                adopted,
                follows,
            });
            Ok(with_allocations(image_id, processed, &identity, allocations))
        }
        Command::Profile { email, source, identification } => {
            refuse_repeat(state, &source, PhotoStatus::Processed)?;
            let image_id = ImageId::of_profile(&email);
            let IdentifiedFaces { analyzer, identity, first_face, faces, allocations } =
                identify_faces(&image_id, state, identification, &PriorIdentities::default(), policy);
            let processed = Event::ProfileProcessed(ProfileProcessed {
                v: Version,
                image_id: image_id.clone(),
                email,
                source,
                analyzer,
                identity_seq: identity.seq,
                first_face,
                face: faces.into_iter().next(),
                follows,
            });
            Ok(with_allocations(image_id, processed, &identity, allocations))
        }
        Command::Delete(deletion) => delete(state, deletion).map(|event| vec![event]),
    }
}

/// A deleted photo may be deleted again only if it has an IMAGE row again. A removal older than the last upload is
/// refused.
fn delete(state: Option<&PhotoState>, deletion: Deletion) -> Result<Event, Refusal> {
    let Deletion { image_id, cause, uploader, version, sequencer, objects, known_by, requested, original } = deletion;
    match state {
        Some(state)
            if state.status == PhotoStatus::Deleted
                && (uploader.is_none() || cause == DeletionCause::OriginalRemoved) =>
        {
            return Err(Refusal::AlreadyCommitted(state.clone().into()));
        }
        Some(state) if cause == DeletionCause::OriginalRemoved && state.is_newer_than(sequencer.as_deref()) => {
            return Err(Refusal::Outdated(state.clone().into()));
        }
        _ => {}
    }
    Ok(Event::PhotoDeleted(PhotoDeleted {
        v: Version,
        image_id,
        cause,
        uploader,
        version: version.or_else(|| Some(state?.version.clone())).unwrap_or_default(),
        sequencer: sequencer.or_else(|| state?.sequencer.clone()),
        objects,
        persons: state.map(|state| state.persons.clone()).unwrap_or_default(),
        known_by,
        requested,
        original,
        follows: state.map(|state| state.seq),
    }))
}

/// Returns the event, preceded by the allocation of its new persons, if any.
pub(crate) fn with_allocations(
    image_id: ImageId,
    event: Event,
    identity: &IdentityHead,
    persons: Vec<Allocation>,
) -> Vec<Event> {
    if persons.is_empty() {
        return vec![event];
    }
    let (photo_event, counter) = (event.id(), identity.counter);
    let allocated = PersonsAllocated { v: Version, image_id, photo_event, counter, persons };
    vec![Event::PersonsAllocated(allocated), event]
}

/// Refuses a version that is decided or outdated. A rejected photo may be processed later, because limits and formats may
/// have been extended since. A deleted photo, too: a deletion removes the object, so an object that was read was uploaded
/// again.
fn refuse_repeat(state: Option<&PhotoState>, source: &SourceObject, wanted: PhotoStatus) -> Result<(), Refusal> {
    let Some(state) = state.filter(|state| state.status != PhotoStatus::Deleted) else { return Ok(()) };
    if state.version == source.version && (state.status == PhotoStatus::Processed || state.status == wanted) {
        return Err(Refusal::AlreadyCommitted(state.clone().into()));
    }
    if state.is_newer_than(source.sequencer.as_deref()) { Err(Refusal::Outdated(state.clone().into())) } else { Ok(()) }
}
