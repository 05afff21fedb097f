//! The decision about one photo: who is in it, and which events say so.

use std::{collections::BTreeSet, iter};

use crate::{
    Allocation, Candidate, DeletionCause, Email, Event, Face, FaceId, ImageId, Outcome, PersonId, PersonsAllocated,
    PhotoDeleted, PhotoProcessed, PhotoRejected, PhotoState, ProfileProcessed, Rejection, Search, SeenFace, Seq,
    Source, TakenAt, Threshold, Variants, Verdict, Version, anew::Past, photo::round,
};

/// What somebody wants decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Take the photo in.
    Process {
        /// The photo.
        image_id: ImageId,
        /// Who uploaded it.
        uploader: Email,
        /// The object it came from.
        source: Source,
        /// Pixels across and down, upright.
        dimensions: (u32, u32),
        /// When it was taken.
        taken_at: Option<TakenAt>,
        /// The pictures made of it.
        variants: Variants,
        /// Its faces and whom they are like.
        recognition: Recognition,
    },
    /// Say why it cannot be taken.
    Reject {
        /// The photo.
        image_id: ImageId,
        /// Who uploaded it.
        uploader: Email,
        /// The object it came from.
        source: Source,
        /// Why.
        reason: Rejection,
    },
    /// Say who a user is, by their picture of themselves.
    Profile {
        /// The user.
        email: Email,
        /// The object it came from.
        source: Source,
        /// Its largest face, if any, and whom it is like.
        recognition: Recognition,
    },
    /// Let a photo be gone.
    Delete(Deletion),
}

/// A photo that is to be gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Deletion {
    /// The photo.
    pub image_id: ImageId,
    /// Why.
    pub cause: DeletionCause,
    /// Whose photo it is, where its row tells.
    pub uploader: Option<Email>,
    /// The version of the object, where somebody knows better than the log.
    pub version: Option<String>,
    /// When the object went, where the store tells.
    pub sequencer: Option<String>,
    /// The objects that go with it.
    pub objects: Vec<String>,
    /// Faces of other photos that persons are to be known by from then on.
    pub known_by: Vec<FaceId>,
}

impl From<Deletion> for Command {
    fn from(deletion: Deletion) -> Self {
        Self::Delete(deletion)
    }
}

/// The faces of a photo, and what the index says of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognition {
    /// Who looked.
    pub analyzer: String,
    /// What they saw.
    pub faces: Vec<SeenFace>,
    /// Whom the faces are like.
    pub search: Search,
    /// Up to where the index knows everybody.
    pub identity: Identity,
}

/// Where the numbering of persons stands. A commit that allocates holds only if this is still true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The last identity event that was considered.
    pub seq: Seq,
    /// The last number given out.
    pub counter: u32,
    /// Numbers above the counter that rows of others already have.
    pub taken: BTreeSet<u32>,
}

/// When a face is somebody, and when it may found a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Similarity from which two faces are one person.
    pub threshold: Threshold,
    /// By how much the nearest person must be nearer than the next, lest the face stay nobody's.
    pub margin: f32,
    /// How many candidates an event keeps per face.
    pub candidates: usize,
    /// A founding face is at least this large, in pixels.
    pub min_size: f32,
    /// A founding face is at least this sharp.
    pub min_sharpness: f32,
    /// A founding face is at least this certain.
    pub min_confidence: f32,
    /// A founding face looks away at most this far.
    pub max_turn: f32,
}

/// The policy among so many persons as are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    policy: &'a Policy,
    /// The similarity from which a face is somebody.
    pub threshold: f32,
}

impl Policy {
    /// Who a face with these candidates is among so many persons, if it is near enough to anybody.
    pub fn recognise(&self, candidates: &[Candidate], persons: usize) -> Option<Verdict> {
        self.among(persons).recognise(candidates)
    }

    /// Whether a face is good enough that a person may be known by it.
    pub fn may_be_known_by(&self, face: &SeenFace) -> bool {
        face.quality.size >= self.min_size
            && face.quality.sharpness >= self.min_sharpness
            && face.confidence >= self.min_confidence
            && face.quality.turn.is_none_or(|turn| turn <= self.max_turn)
    }

    pub(crate) fn among(&self, persons: usize) -> Rules<'_> {
        Rules { policy: self, threshold: round(self.threshold.among(persons), 1e4) }
    }
}

impl Rules<'_> {
    /// Whom the face is like, if anybody: the nearest, unless the next is nearly as near.
    pub fn recognise(&self, candidates: &[Candidate]) -> Option<Verdict> {
        let nearer =
            |a: &&Candidate, b: &&Candidate| a.similarity.total_cmp(&b.similarity).then(b.person.cmp(&a.person));
        let best = candidates.iter().filter(|candidate| candidate.similarity >= self.threshold).max_by(nearer)?;
        let mut others = candidates.iter().filter(|candidate| candidate.person != best.person);
        let rival = others.any(|candidate| best.similarity - candidate.similarity < self.policy.margin);
        Some(if rival { Verdict::Ambiguous } else { Verdict::Matched(best.person) })
    }

    /// The candidates that an event keeps.
    pub fn kept(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        candidates.truncate(self.policy.candidates);
        for candidate in &mut candidates {
            candidate.similarity = round(candidate.similarity, 1e4);
        }
        candidates
    }

    fn may_found(&self, face: &SeenFace) -> bool {
        self.policy.may_be_known_by(face)
    }

    /// Whether the person is better known with this face: a good one, and not almost the same as one they are known by,
    /// which is five sixths of the way from the threshold to the same. How alike a person's faces are among themselves is
    /// what keeps two persons apart later, so faces that are merely alike count.
    fn enriches(&self, face: &SeenFace, candidates: &[Candidate], person: PersonId) -> bool {
        let known = candidates.iter().find(|candidate| candidate.person == person);
        self.may_found(face) && known.is_some_and(|known| known.similarity <= 1.0 - (1.0 - self.threshold) / 6.0)
    }
}

/// Why nothing is to be decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The log says it already.
    #[error("already committed by event {}", .0.seq)]
    AlreadyCommitted(Box<PhotoState>),
    /// The log speaks of a newer version of the object.
    #[error("a newer version was committed by event {}", .0.seq)]
    Outdated(Box<PhotoState>),
    /// The photo is gone.
    #[error("the photo was deleted")]
    Deleted,
}

/// The events that the command leads to, in the order they are to be recorded.
pub fn decide(state: Option<&PhotoState>, command: Command, policy: &Policy) -> Result<Vec<Event>, Refusal> {
    let follows = state.map(|state| state.seq);
    match command {
        Command::Reject { image_id, uploader, source, reason } => {
            refuse_repeat(state, &source, Outcome::Rejected(reason.code))?;
            Ok(vec![Event::PhotoRejected(PhotoRejected { v: Version, image_id, uploader, source, reason, follows })])
        }
        Command::Process { image_id, uploader, source, dimensions, taken_at, variants, recognition } => {
            refuse_repeat(state, &source, Outcome::Processed)?;
            let Decided { analyzer, identity, first_face, faces, allocations } =
                recognise(&image_id, state, recognition, &Past::default(), policy);
            let seen: BTreeSet<PersonId> = faces.iter().filter_map(|face| face.verdict.person()).collect();
            let mut adopted = state.map(|state| state.adopted.clone()).unwrap_or_default();
            adopted.retain(|person| !seen.contains(person));
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
        Command::Profile { email, source, recognition } => {
            refuse_repeat(state, &source, Outcome::Processed)?;
            let image_id = ImageId::of_profile(&email);
            let Decided { analyzer, identity, first_face, faces, allocations } =
                recognise(&image_id, state, recognition, &Past::default(), policy);
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

/// A photo that is gone may be deleted once more where its row is back; what was removed before a later upload changes nothing.
fn delete(state: Option<&PhotoState>, deletion: Deletion) -> Result<Event, Refusal> {
    let Deletion { image_id, cause, uploader, version, sequencer, objects, known_by } = deletion;
    match state {
        Some(state)
            if state.outcome == Outcome::Deleted && (uploader.is_none() || cause == DeletionCause::OriginalRemoved) =>
        {
            return Err(Refusal::AlreadyCommitted(state.clone().into()));
        }
        Some(state) if cause == DeletionCause::OriginalRemoved && state.is_after(sequencer.as_deref()) => {
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
        follows: state.map(|state| state.seq),
    }))
}

/// What was decided about the faces of a picture.
pub(crate) struct Decided {
    pub analyzer: String,
    pub identity: Identity,
    pub first_face: u16,
    pub faces: Vec<Face>,
    pub allocations: Vec<Allocation>,
}

pub(crate) fn recognise(
    image: &ImageId,
    state: Option<&PhotoState>,
    recognition: Recognition,
    past: &Past<'_>,
    policy: &Policy,
) -> Decided {
    let Recognition { analyzer, faces, search, identity } = recognition;
    let faces: Vec<SeenFace> = faces.into_iter().map(SeenFace::rounded).collect();
    let rules = policy.among(search.persons);
    let verdicts = identify(&faces, &search, &identity, past, rules);
    let first_face = state.map_or(0, |state| state.faces);
    let allocations = allocations(image, first_face, &faces, &verdicts, rules);
    let founding: BTreeSet<u16> = allocations.iter().flat_map(|a| &a.templates).map(|face| face.n).collect();
    let candidates = search.candidates.into_iter().chain(iter::repeat(Vec::new()));
    let faces = (first_face..).zip(faces).zip(candidates).zip(&verdicts).enumerate();
    let faces = faces.map(|(place, (((n, face), near), verdict))| {
        let template = founding.contains(&n)
            || match (verdict, rules.recognise(&near)) {
                (Verdict::Matched(person), Some(Verdict::Matched(_))) => {
                    rules.enriches(&face, &near, past.now(*person))
                }
                // Whoever stays who they were is known by that from now on.
                (Verdict::Matched(_), None) => past.stays(place) && rules.may_found(&face),
                _ => false,
            };
        conclude(face, near, *verdict, template, rules)
    });
    Decided { analyzer, identity, first_face, faces: faces.collect(), allocations }
}

/// The event, after the one that numbers whoever is new in it.
pub(crate) fn with_allocations(
    image_id: ImageId,
    event: Event,
    identity: &Identity,
    persons: Vec<Allocation>,
) -> Vec<Event> {
    if persons.is_empty() {
        return vec![event];
    }
    let (photo_event, counter) = (event.id(), identity.counter);
    let allocated = PersonsAllocated { v: Version, image_id, photo_event, counter, persons };
    vec![Event::PersonsAllocated(allocated), event]
}

/// A repeat is refused; a photo that could not be taken before may be taken now, when limits or formats have widened; one
/// that is gone is taken again only in a later version.
fn refuse_repeat(state: Option<&PhotoState>, source: &Source, wanted: Outcome) -> Result<(), Refusal> {
    let Some(state) = state else { return Ok(()) };
    let sequencer = source.sequencer.as_deref();
    if state.outcome == Outcome::Deleted {
        return if state.is_before(&source.version, sequencer) { Ok(()) } else { Err(Refusal::Deleted) };
    }
    if state.version == source.version && (state.outcome == Outcome::Processed || state.outcome == wanted) {
        return Err(Refusal::AlreadyCommitted(state.clone().into()));
    }
    if state.is_after(sequencer) { Err(Refusal::Outdated(state.clone().into())) } else { Ok(()) }
}

/// Who each face is: somebody known, a stranger of this photo, or nobody.
fn identify(
    faces: &[SeenFace],
    search: &Search,
    identity: &Identity,
    past: &Past<'_>,
    rules: Rules<'_>,
) -> Vec<Verdict> {
    let known = |n: usize| {
        let near = search.candidates.get(n).map_or(&[][..], Vec::as_slice);
        past.settle(n, rules.recognise(near))
    };
    let mut verdicts: Vec<Option<Verdict>> = (0..faces.len()).map(known).collect();

    let strangers: Vec<usize> =
        (0..faces.len()).filter(|n| verdicts[*n].is_none() && rules.may_found(&faces[*n])).collect();
    let numbers = (identity.counter..u32::MAX).map(|last| last + 1).filter(|n| !identity.taken.contains(n));
    for (cluster, person) in clusters(&strangers, search, rules.threshold).iter().zip(numbers.filter_map(PersonId::new))
    {
        let best = best_face(cluster, faces);
        for n in cluster {
            verdicts[*n] = Some(if *n == best { Verdict::Founded(person) } else { Verdict::Matched(person) });
        }
    }
    let founders: Vec<_> = strangers.iter().filter_map(|n| Some((*n, verdicts[*n]?.person()?))).collect();
    (0..faces.len()).map(|n| verdicts[n].unwrap_or_else(|| poor_face(n, &founders, search, rules))).collect()
}

/// The strangers' faces, those of one person together: whoever is alike, directly or through a third.
fn clusters(strangers: &[usize], search: &Search, threshold: f32) -> Vec<Vec<usize>> {
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    for n in strangers {
        let alike = |cluster: &Vec<usize>| cluster.iter().any(|m| similarity(*n, *m, search) >= threshold);
        let (same, others): (Vec<_>, Vec<_>) = clusters.into_iter().partition(alike);
        clusters = others;
        clusters.push(same.into_iter().flatten().chain([*n]).collect());
    }
    for cluster in &mut clusters {
        cluster.sort_unstable();
    }
    clusters.sort_unstable();
    clusters
}

fn similarity(n: usize, m: usize, search: &Search) -> f32 {
    let pair = (n.min(m), n.max(m));
    search.alike.iter().find(|s| (s.a, s.b) == pair).map_or(0.0, |s| s.similarity)
}

/// The face to show and to know a stranger by: the one seen best, the first of equals.
fn best_face(cluster: &[usize], faces: &[SeenFace]) -> usize {
    let worth = |n: &usize| faces[*n].quality.size * faces[*n].quality.sharpness * faces[*n].confidence;
    cluster.iter().copied().max_by(|a, b| worth(a).total_cmp(&worth(b)).then(b.cmp(a))).unwrap_or_default()
}

/// A poor face is still somebody if it is like a stranger whose better face is in the same photo.
fn poor_face(n: usize, founders: &[(usize, PersonId)], search: &Search, rules: Rules<'_>) -> Verdict {
    let like = |(m, person): &(usize, PersonId)| Candidate { person: *person, similarity: similarity(n, *m, search) };
    let relatives: Vec<_> = founders.iter().map(like).collect();
    rules.recognise(&relatives).unwrap_or(Verdict::TooPoor)
}

fn allocations(
    image: &ImageId,
    first_face: u16,
    faces: &[SeenFace],
    verdicts: &[Verdict],
    rules: Rules<'_>,
) -> Vec<Allocation> {
    let number = |n: usize| first_face.saturating_add(u16::try_from(n).unwrap_or(u16::MAX));
    let face = |n: usize| FaceId { image: image.clone(), n: number(n) };
    let founded = verdicts.iter().enumerate().filter_map(|(n, verdict)| match verdict {
        Verdict::Founded(person) => Some(Allocation {
            person: *person,
            face: face(n),
            templates: (0..verdicts.len())
                .filter(|m| verdicts[*m].person() == Some(*person) && rules.may_found(&faces[*m]))
                .map(face)
                .collect(),
        }),
        _ => None,
    });
    let mut founded: Vec<_> = founded.collect();
    founded.sort_by_key(|allocation| allocation.person);
    founded
}

fn conclude(face: SeenFace, near: Vec<Candidate>, verdict: Verdict, template: bool, rules: Rules<'_>) -> Face {
    Face {
        bounds: face.bounds,
        landmarks: face.landmarks,
        quality: face.quality,
        confidence: face.confidence,
        attributes: face.attributes,
        model: face.model,
        candidates: rules.kept(near),
        threshold: rules.threshold,
        verdict,
        template,
    }
}
