//! The words the tests are told in: `given(history).when(command).then(events)`.

use std::collections::BTreeMap;

use sparks_domain::{
    Attributes, Candidate, Command, Deletion, DeletionCause, Email, Event, Face, FaceId, Grounds, Identity, ImageId,
    MergeUndone, PersonId, PersonPictured, PersonReinstated, PersonsForgotten, PersonsMerged, PhotoProcessed,
    PhotoState, Policy, Quality, Recognition, Refusal, RejectCode, Rejection, ReviewedFace, Search, SeenFace, Seq,
    Signature, Similarity, Source, Threshold, Variant, Variants, Verdict, Version, decide,
};

pub const BEACH: &str = "0ujtsYcgvSTl8PAuAdqWYSMnLOv";
pub const PARTY: &str = "02df423f-0d45-4d59-b987-2ade841d0fbf";

/// Two faces are one person from 0.5 on; a founding face has 40 pixels, is 0.3 sharp, 0.8 certain and not quite a profile.
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

pub fn nothing() -> Vec<Event> {
    Vec::new()
}

pub fn given(history: impl IntoIterator<Item = Event>) -> Story {
    Story { history: history.into_iter().collect(), policy: policy() }
}

pub struct Story {
    history: Vec<Event>,
    policy: Policy,
}

impl Story {
    /// The rules are these.
    pub fn by(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    pub fn when(self, command: impl Into<Command>) -> Told {
        let command = command.into();
        let state = state_of(&image_of(&command), &self.history);
        Told(decide(state.as_ref(), command, &self.policy))
    }
}

/// The photo that a command is about.
pub fn image_of(command: &Command) -> ImageId {
    match command {
        Command::Process { image_id, .. } | Command::Reject { image_id, .. } => image_id.clone(),
        Command::Profile { email, .. } => ImageId::of_profile(email),
        Command::Delete(deletion) => deletion.image_id.clone(),
    }
}

/// The state of the photo after this history, whose first event has the number 1.
pub fn state_of(image: &ImageId, history: &[Event]) -> Option<PhotoState> {
    let about_it = (1..).map(Seq).zip(history).filter(|(_, event)| event.image() == Some(image));
    about_it.fold(None, |state, (seq, event)| PhotoState::evolve(state, seq, event))
}

pub struct Told(Result<Vec<Event>, Refusal>);

impl Told {
    #[track_caller]
    pub fn then<const N: usize>(self, expected: [&str; N]) {
        let told: Vec<String> = self.events().iter().map(tell).collect();
        assert_eq!(told, expected);
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

/// An event in a line.
pub fn tell(event: &Event) -> String {
    let list = |words: Vec<String>| words.join(", ");
    match event {
        Event::PhotoProcessed(e) if e.faces.is_empty() && e.adopted.is_empty() => "processed: nobody".into(),
        Event::PhotoProcessed(e) => {
            let adopted = e.adopted.iter().map(|person| format!("{person} as before us"));
            format!("processed: {}", list(verdicts(e).into_iter().chain(adopted).collect()))
        }
        Event::PhotoRejected(e) => format!("rejected: {:?}", e.reason.code),
        Event::PersonsAllocated(e) => {
            let persons = e.persons.iter().map(|allocation| {
                let templates: Vec<_> = allocation.templates.iter().map(|face| face.n.to_string()).collect();
                format!("{} shown by {} known by {}", allocation.person, allocation.face.n, templates.join("+"))
            });
            format!("allocated: {}", list(persons.collect()))
        }
        Event::PersonRenamed(e) => format!("renamed: {} from {} to {}", e.person, e.from, e.to),
        Event::FacesReviewed(e) => {
            let face = |face: &ReviewedFace| format!("face {} {}", face.n, verdict(face.verdict));
            format!("reviewed: {}", list(e.faces.iter().map(face).collect()))
        }
        Event::PersonsMerged(e) => format!("merged: {} is {}", e.from, e.into),
        Event::MergeUndone(e) => format!("undone: {} is not {}", e.from, e.into),
        Event::PhotoDeleted(e) => {
            let persons = e.persons.iter().map(ToString::to_string).collect();
            format!("deleted: {:?} of {}", e.cause, list(persons))
        }
        Event::ProfileProcessed(e) => match &e.face {
            Some(face) => format!("profile: {}", decided(face)),
            None => "profile: nobody".into(),
        },
        Event::PersonsForgotten(e) => {
            format!("forgotten: {}", list(e.persons.iter().map(ToString::to_string).collect()))
        }
        Event::PersonReinstated(e) => format!("reinstated: {} shown by {}", e.person, e.face.n),
        Event::PersonPictured(e) => format!("pictured: {} by {}", e.person, e.face.n),
        Event::NumbersReserved(e) => format!("reserved: up to {}", e.up_to),
        Event::PersonAdopted(e) => format!("adopted: {}", e.person),
        Event::PhotoAdopted(e) => {
            format!("adopted: {}", list(e.persons().iter().map(ToString::to_string).collect()))
        }
    }
}

fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Matched(person) => format!("is {person}"),
        Verdict::Founded(person) => format!("founds {person}"),
        Verdict::TooPoor => "too poor".into(),
        Verdict::Ambiguous => "ambiguous".into(),
    }
}

fn verdicts(event: &PhotoProcessed) -> Vec<String> {
    event.faces.iter().map(decided).collect()
}

fn decided(face: &Face) -> String {
    verdict(face.verdict) + if face.template { " (template)" } else { "" }
}

/// The `PhotoProcessed` among the events.
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

/// The persons with these numbers are one since after this identity event.
pub fn merged(into: u32, from: u32, after: Seq) -> PersonsMerged {
    PersonsMerged {
        v: Version,
        into: person(into),
        from: person(from),
        identity_seq: after,
        grounds: Grounds::Told,
        row: Attributes::new(),
        users: Vec::new(),
    }
}

/// They are not.
pub fn undone(merge: &PersonsMerged, after: Seq) -> Event {
    let merge_event = Event::PersonsMerged(merge.clone()).id();
    let (into, from) = (merge.into, merge.from);
    Event::MergeUndone(MergeUndone { v: Version, merge: merge_event, into, from, identity_seq: after })
}

pub fn ada() -> Email {
    "ada@example.org".parse().unwrap()
}

/// A face and whom the index thinks it is like.
#[derive(Clone)]
pub struct Seen {
    pub face: SeenFace,
    pub near: Vec<Candidate>,
}

/// A face good enough to found a person.
pub fn good() -> Seen {
    let face = SeenFace {
        bounds: [0.25, 0.125, 0.5, 0.5].into(),
        landmarks: Vec::new(),
        quality: Quality { size: 120.0, sharpness: 0.75, turn: None },
        confidence: 0.9375,
        attributes: BTreeMap::new(),
        model: "test-1".into(),
        signature: None,
    };
    Seen { face, near: Vec::new() }
}

pub fn small() -> Seen {
    good().sized(39.5)
}

pub fn blurred() -> Seen {
    let mut seen = good();
    seen.face.quality.sharpness = 0.29;
    seen
}

pub fn uncertain() -> Seen {
    good().certain(0.79)
}

impl Seen {
    pub fn sized(mut self, size: f32) -> Self {
        self.face.quality.size = size;
        self
    }

    pub fn certain(mut self, confidence: f32) -> Self {
        self.face.confidence = confidence;
        self
    }

    pub fn looking(mut self, signature: Signature) -> Self {
        self.face.signature = Some(signature);
        self
    }

    pub fn like(mut self, number: u32, similarity: f32) -> Self {
        self.near.push(Candidate { person: person(number), similarity });
        self
    }
}

/// A photo on its way to a decision.
#[derive(Clone)]
pub struct Photo {
    pub image: ImageId,
    pub source: Source,
    pub recognition: Recognition,
}

/// The photo's first version, with nobody in it, where nobody is known.
pub fn photo(image: &str) -> Photo {
    Photo {
        image: image.parse().unwrap(),
        source: Source {
            key: format!("originals/{image}.jpg"),
            version: "v1".into(),
            sequencer: None,
            bytes: 1000,
            mime_type: None,
            file_name: None,
        },
        recognition: Recognition {
            analyzer: "test".into(),
            faces: Vec::new(),
            search: Search::default(),
            identity: Identity::default(),
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

    /// Shows these faces.
    pub fn of(mut self, faces: impl IntoIterator<Item = Seen>) -> Self {
        let (faces, near) = faces.into_iter().map(|seen| (seen.face, seen.near)).unzip();
        self.recognition.faces = faces;
        self.recognition.search.candidates = near;
        self
    }

    /// Two of its faces are alike.
    pub fn alike(mut self, a: usize, b: usize, similarity: f32) -> Self {
        self.recognition.search.alike.push(Similarity { a, b, similarity });
        self
    }

    /// So many persons have their numbers already.
    pub fn counter(mut self, counter: u32) -> Self {
        self.recognition.identity.counter = counter;
        self
    }

    /// Rows of others have these numbers.
    pub fn taken(mut self, numbers: impl IntoIterator<Item = u32>) -> Self {
        self.recognition.identity.taken = numbers.into_iter().collect();
        self
    }

    pub fn rejected(self, code: RejectCode) -> Command {
        let reason = Rejection { code, message: format!("it is {code:?}") };
        Command::Reject { image_id: self.image, uploader: ada(), source: self.source, reason }
    }

    /// It is no photo, but the user's picture of themselves.
    pub fn of_user(self, user: &str) -> Command {
        Command::Profile { email: user.parse().unwrap(), source: self.source, recognition: self.recognition }
    }

    /// The events it leads to where nothing was known of it.
    pub fn happened(self) -> Vec<Event> {
        happened(self)
    }
}

/// The events the command leads to where nothing was known of its photo.
pub fn happened(command: impl Into<Command>) -> Vec<Event> {
    given(nothing()).when(command).events()
}

/// Somebody wants the photo gone whose row is there.
pub fn deletion(image: &str) -> Deletion {
    Deletion {
        image_id: image.parse().unwrap(),
        cause: DeletionCause::Asked,
        uploader: Some(ada()),
        version: None,
        sequencer: None,
        objects: vec![format!("originals/{image}.jpg")],
        known_by: Vec::new(),
    }
}

/// Somebody removed the original of the photo.
pub fn removal(image: &str, sequencer: Option<&str>) -> Deletion {
    let (cause, sequencer) = (DeletionCause::OriginalRemoved, sequencer.map(str::to_owned));
    Deletion { cause, uploader: None, sequencer, ..deletion(image) }
}

/// These persons were forgotten after this identity event.
pub fn forgotten(numbers: &[u32], after: Seq) -> Event {
    let persons = numbers.iter().map(|number| person(*number)).collect();
    Event::PersonsForgotten(PersonsForgotten { v: Version, persons, identity_seq: after })
}

/// The person is known again, by this face of the party.
pub fn reinstated(number: u32, n: u16, after: Seq) -> Event {
    let face = FaceId { image: PARTY.parse().unwrap(), n };
    Event::PersonReinstated(PersonReinstated { v: Version, person: person(number), face, identity_seq: after })
}

/// The person is shown by this face of the party.
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
        };
        Command::Process {
            uploader: ada(),
            dimensions: (4000, 3000),
            taken_at: None,
            variants: Variants { large: variant("large", 1920, 1440), medium: variant("medium", 400, 400) },
            image_id: photo.image,
            source: photo.source,
            recognition: photo.recognition,
        }
    }
}
