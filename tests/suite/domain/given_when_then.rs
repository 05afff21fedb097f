//! Builders for tests of decisions: `given(history).when(command).then(events)`.

use std::collections::BTreeMap;

use sparks_domain::{
    Attributes, Candidate, Command, Deletion, DeletionCause, DetectedFace, Email, Event, Face, FaceCandidates, FaceId,
    FacePairSimilarity, IdentificationInput, IdentityHead, ImageId, Lane, MergeReason, MergeUndone, Merges, Mutation,
    PersonId, PersonPictured, PersonReinstated, PersonsForgotten, PersonsMerged, PhotoProcessed, PhotoState, Policy,
    Projection, ProjectionContext, Quality, RecordedEvent, Refusal, RejectCode, Rejection, ReviewedFace, Seq,
    Signature, SourceObject, Threshold, Timestamp, Variant, Variants, Verdict, Version, decide,
};

pub const BEACH: &str = "0ujtsYcgvSTl8PAuAdqWYSMnLOv";
pub const PARTY: &str = "02df423f-0d45-4d59-b987-2ade841d0fbf";

/// Threshold 0.5, no margin; a template has at least 40 pixels, sharpness 0.3 and confidence 0.8, and a turn of at most
/// 0.9.
pub fn policy() -> Policy {
    Policy {
        threshold: Threshold::Fixed(0.5),
        margin: 0.0,
        candidates: 3,
        min_size: 40.0,
        min_sharpness: 0.3,
        min_confidence: 0.8,
        max_turn: 0.9,
    }
}

pub fn no_events() -> Vec<Event> {
    Vec::new()
}

pub fn given(history: impl IntoIterator<Item = Event>) -> Given {
    Given { history: history.into_iter().collect(), policy: policy() }
}

pub struct Given {
    history: Vec<Event>,
    policy: Policy,
}

impl Given {
    /// Decides by this policy.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    pub fn when(self, command: impl Into<Command>) -> Decision {
        let command = command.into();
        let state = state_of(&image_of(&command), &self.history);
        Decision(decide(state.as_ref(), command, &self.policy))
    }
}

/// Returns the photo that a command is about.
pub fn image_of(command: &Command) -> ImageId {
    match command {
        Command::Process { image_id, .. } | Command::Reject { image_id, .. } => image_id.clone(),
        Command::Profile { email, .. } => ImageId::of_profile(email),
        Command::Delete(deletion) => deletion.image_id.clone(),
    }
}

/// Returns the state of the photo after this history, whose first event has sequence number 1.
pub fn state_of(image: &ImageId, history: &[Event]) -> Option<PhotoState> {
    let of_photo = (1..).map(Seq).zip(history).filter(|(_, event)| event.image() == Some(image));
    of_photo.fold(None, |state, (seq, event)| PhotoState::evolve(state, seq, event))
}

pub struct Decision(Result<Vec<Event>, Refusal>);

impl Decision {
    #[track_caller]
    pub fn then<const N: usize>(self, expected: [&str; N]) {
        let described: Vec<String> = self.events().iter().map(describe).collect();
        assert_eq!(described, expected);
    }

    #[track_caller]
    pub fn then_refused(self, expected: &str) {
        assert_eq!(self.refusal().to_string(), expected);
    }

    #[track_caller]
    pub fn refusal(self) -> Refusal {
        self.0.expect_err("a refusal")
    }

    #[track_caller]
    pub fn events(self) -> Vec<Event> {
        self.0.expect("events")
    }
}

/// Returns the rows that an event changes where nothing else is recorded.
pub fn project(event: &Event, when: Timestamp, merges: &Merges) -> Vec<Mutation> {
    Projection::default().project(event, &ProjectionContext::new(when, merges))
}

/// Returns the event as the log records it.
pub fn recorded(seq: u64, event: &Event, when: Timestamp) -> RecordedEvent {
    let (lane, seq, id) = (Lane::IDENTITY, Seq(seq), event.id());
    RecordedEvent { lane, seq, id, actor: "test".into(), when, event: event.clone() }
}

/// Describes an event in one line.
pub fn describe(event: &Event) -> String {
    let list = |parts: Vec<String>| parts.join(", ");
    match event {
        Event::PhotoProcessed(e) if e.faces.is_empty() && e.adopted.is_empty() => "processed: no persons".into(),
        Event::PhotoProcessed(e) => {
            let adopted = e.adopted.iter().map(|person| format!("{person} adopted"));
            format!("processed: {}", list(verdicts(e).into_iter().chain(adopted).collect()))
        }
        Event::PhotoRejected(e) => format!("rejected: {:?}", e.reason.code),
        Event::PersonsAllocated(e) => {
            let persons = e.persons.iter().map(|allocation| {
                let templates: Vec<_> = allocation.templates.iter().map(|face| face.n.to_string()).collect();
                format!("{} crop {} templates {}", allocation.person, allocation.face.n, templates.join("+"))
            });
            format!("allocated: {}", list(persons.collect()))
        }
        Event::PersonRenamed(e) => format!("renamed: {} from {} to {}", e.person, e.from, e.to),
        Event::FacesReviewed(e) => {
            let face = |face: &ReviewedFace| format!("face {} {}", face.n, verdict(face.verdict));
            format!("reviewed: {}", list(e.faces.iter().map(face).collect()))
        }
        Event::PersonsMerged(e) => format!("merged: {} into {}", e.from, e.into),
        Event::MergeUndone(e) => format!("undone: {} from {}", e.from, e.into),
        Event::PhotoDeleted(e) => {
            let persons = e.persons.iter().map(ToString::to_string).collect();
            format!("deleted: {:?} of {}", e.cause, list(persons))
        }
        Event::ProfileProcessed(e) => match &e.face {
            Some(face) => format!("profile: {}", describe_face(face)),
            None => "profile: no face".into(),
        },
        Event::PersonsForgotten(e) => {
            format!("forgotten: {}", list(e.persons.iter().map(ToString::to_string).collect()))
        }
        Event::PersonReinstated(e) => format!("reinstated: {} crop {}", e.person, e.face.n),
        Event::PersonPictured(e) => format!("pictured: {} crop {}", e.person, e.face.n),
        Event::LevelRaised(e) => format!("raised: level {}", e.level),
        Event::NumbersReserved(e) => format!("reserved: up to {}", e.up_to),
        Event::PersonAdopted(e) => format!("adopted: {}", e.person),
        Event::PhotoAdopted(e) => {
            format!("adopted: {}", list(e.persons().iter().map(ToString::to_string).collect()))
        }
    }
}

fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Matched(person) => format!("matches {person}"),
        Verdict::NewPerson(person) => format!("creates {person}"),
        Verdict::TooPoor => "too poor".into(),
        Verdict::Ambiguous => "ambiguous".into(),
    }
}

fn verdicts(event: &PhotoProcessed) -> Vec<String> {
    event.faces.iter().map(describe_face).collect()
}

fn describe_face(face: &Face) -> String {
    verdict(face.verdict) + if face.template { " (template)" } else { "" }
}

/// Returns the `PhotoProcessed` among the events.
#[track_caller]
pub fn processed(events: &[Event]) -> &PhotoProcessed {
    let photo = events.iter().find_map(|event| match event {
        Event::PhotoProcessed(photo) => Some(photo),
        _ => None,
    });
    photo.expect("a PhotoProcessed")
}

pub fn person(number: u32) -> PersonId {
    PersonId::new(number).expect("numbers start at 1")
}

/// Returns a merge of two persons, decided after this identity event.
pub fn merged(into: u32, from: u32, after: Seq) -> PersonsMerged {
    PersonsMerged {
        v: Version,
        into: person(into),
        from: person(from),
        identity_seq: after,
        grounds: MergeReason::Requested,
        row: Attributes::new(),
        users: Vec::new(),
    }
}

/// Returns the undo of a merge.
pub fn undone(merge: &PersonsMerged, after: Seq) -> Event {
    let merge_event = Event::PersonsMerged(merge.clone()).id();
    let (into, from) = (merge.into, merge.from);
    Event::MergeUndone(MergeUndone { v: Version, merge: merge_event, into, from, identity_seq: after })
}

pub fn ada() -> Email {
    "ada@example.org".parse().unwrap()
}

/// A detected face and its candidates.
#[derive(Clone)]
pub struct FaceInput {
    pub face: DetectedFace,
    pub candidates: Vec<Candidate>,
}

/// A face good enough for a new person.
pub fn good_face() -> FaceInput {
    let face = DetectedFace {
        bounds: [0.25, 0.125, 0.5, 0.5].into(),
        landmarks: Vec::new(),
        quality: Quality { size: 120.0, sharpness: 0.75, turn: None },
        confidence: 0.9375,
        attributes: BTreeMap::new(),
        model: "test-1".into(),
        signature: None,
    };
    FaceInput { face, candidates: Vec::new() }
}

pub fn small_face() -> FaceInput {
    good_face().with_size(39.5)
}

pub fn blurred_face() -> FaceInput {
    let mut input = good_face();
    input.face.quality.sharpness = 0.29;
    input
}

pub fn uncertain_face() -> FaceInput {
    good_face().with_confidence(0.79)
}

impl FaceInput {
    pub fn with_size(mut self, size: f32) -> Self {
        self.face.quality.size = size;
        self
    }

    pub fn with_confidence(mut self, confidence: f32) -> Self {
        self.face.confidence = confidence;
        self
    }

    pub fn with_signature(mut self, signature: Signature) -> Self {
        self.face.signature = Some(signature);
        self
    }

    pub fn candidate(mut self, number: u32, similarity: f32) -> Self {
        self.candidates.push(Candidate { person: person(number), similarity });
        self
    }
}

/// A photo to decide about.
#[derive(Clone)]
pub struct Photo {
    pub image: ImageId,
    pub source: SourceObject,
    pub identification: IdentificationInput,
}

/// The photo's first version, without faces, searched in an empty gallery.
pub fn photo(image: &str) -> Photo {
    Photo {
        image: image.parse().unwrap(),
        source: SourceObject {
            key: format!("originals/{image}.jpg"),
            version: "v1".into(),
            sequencer: None,
            bytes: 1000,
            mime_type: None,
            file_name: None,
        },
        identification: IdentificationInput {
            analyzer: "test".into(),
            faces: Vec::new(),
            search: FaceCandidates::default(),
            identity: IdentityHead::default(),
        },
    }
}

impl Photo {
    pub fn version(mut self, version: &str) -> Self {
        self.source.version = version.into();
        self
    }

    pub fn sequencer(mut self, sequencer: &str) -> Self {
        self.source.sequencer = Some(sequencer.into());
        self
    }

    /// With these faces.
    pub fn with_faces(mut self, faces: impl IntoIterator<Item = FaceInput>) -> Self {
        let (faces, candidates) = faces.into_iter().map(|input| (input.face, input.candidates)).unzip();
        self.identification.faces = faces;
        self.identification.search.candidates = candidates;
        self
    }

    /// With this similarity of two of its faces.
    pub fn similar(mut self, a: usize, b: usize, similarity: f32) -> Self {
        self.identification.search.similarities.push(FacePairSimilarity { a, b, similarity });
        self
    }

    /// With this number of persons allocated before.
    pub fn counter(mut self, counter: u32) -> Self {
        self.identification.identity.counter = counter;
        self
    }

    /// With these numbers used by foreign rows.
    pub fn taken_numbers(mut self, numbers: impl IntoIterator<Item = u32>) -> Self {
        self.identification.identity.taken = numbers.into_iter().collect();
        self
    }

    pub fn rejected(self, code: RejectCode) -> Command {
        let reason = Rejection { code, message: format!("it is {code:?}") };
        Command::Reject { image_id: self.image, uploader: ada(), source: self.source, reason }
    }

    /// As the profile picture of a user.
    pub fn into_profile_of(self, user: &str) -> Command {
        Command::Profile { email: user.parse().unwrap(), source: self.source, identification: self.identification }
    }

    /// Returns the events of processing it for the first time.
    pub fn into_events(self) -> Vec<Event> {
        events_of(self)
    }
}

/// Returns the events of a command about a photo that the log does not know.
pub fn events_of(command: impl Into<Command>) -> Vec<Event> {
    given(no_events()).when(command).events()
}

/// A deletion at the owner's request of a photo with an IMAGE row.
pub fn deletion(image: &str) -> Deletion {
    Deletion {
        image_id: image.parse().unwrap(),
        cause: DeletionCause::Requested,
        uploader: Some(ada()),
        version: None,
        sequencer: None,
        objects: vec![format!("originals/{image}.jpg")],
        known_by: Vec::new(),
        requested: None,
        original: None,
    }
}

/// A deletion because the original was removed.
pub fn removal(image: &str, sequencer: Option<&str>) -> Deletion {
    let (cause, sequencer) = (DeletionCause::OriginalRemoved, sequencer.map(str::to_owned));
    Deletion { cause, uploader: None, sequencer, ..deletion(image) }
}

/// Returns the event that forgets these persons.
pub fn forgotten(numbers: &[u32], after: Seq) -> Event {
    let persons = numbers.iter().map(|number| person(*number)).collect();
    Event::PersonsForgotten(PersonsForgotten { v: Version, persons, identity_seq: after })
}

/// Returns the event that reinstates the person, with this face of the party photo as the crop.
pub fn reinstated(number: u32, n: u16, after: Seq) -> Event {
    let face = FaceId { image: PARTY.parse().unwrap(), n };
    Event::PersonReinstated(PersonReinstated { v: Version, person: person(number), face, identity_seq: after })
}

/// Returns the event that makes this face of the party photo the person's crop.
pub fn pictured(number: u32, n: u16, after: Seq) -> Event {
    let face = FaceId { image: PARTY.parse().unwrap(), n };
    Event::PersonPictured(PersonPictured { v: Version, person: person(number), face, identity_seq: after })
}

impl From<Photo> for Command {
    fn from(photo: Photo) -> Command {
        let variant = |name: &str, width, height| Variant {
            key: format!("processed/{}_{name}.webp", photo.image),
            width,
            height,
            bytes: 500,
            sha256: None,
        };
        Command::Process {
            uploader: ada(),
            dimensions: (4000, 3000),
            taken_at: None,
            variants: Variants { large: variant("large", 1920, 1440), medium: variant("medium", 400, 400) },
            image_id: photo.image,
            source: photo.source,
            identification: photo.identification,
        }
    }
}
