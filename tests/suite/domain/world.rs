//! A small world that runs: photos of people, whoever they are, decided and recorded one after the other.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sparks_domain::{
    Command, Event, Gallery, Identity, ImageId, Key, MergeUndone, Mutation, People, PersonId, PersonRenamed,
    PersonsMerged, PhotoState, Projection, Recorded, Refusal, RejectCode, Search, Seq, Signature, Timestamp, Version,
    decide,
};

use crate::{
    story::{Photo, Seen, good, image_of, merged, person, photo, policy, processed, small},
    table::Table,
};

/// Something that happens in the world.
#[derive(Debug, Clone)]
pub enum Step {
    /// A version of a photo arrives, with faces of these people, seen well or not.
    Arrives { photo: u8, version: u8, faces: Vec<(u8, bool)> },
    /// A version of a photo arrives that cannot be taken.
    Unfit { photo: u8, version: u8, code: RejectCode },
    /// The person with this number, if there is one, gets a name.
    Named { number: u32, name: String },
    /// The persons with these numbers, if there are such and they are not one already, turn out to be one.
    Joined { a: u32, b: u32 },
    /// The merge at this place among all that hold, if there is one, is taken back.
    Parted { merge: usize },
}

impl Step {
    /// Whether it is about a photo.
    pub fn is_photo(&self) -> bool {
        matches!(self, Self::Arrives { .. } | Self::Unfit { .. })
    }
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = || (0..4_u8, 0..3_u8);
    let faces = prop::collection::vec((0..6_u8, prop::bool::weighted(0.8)), 0..5);
    let arrives = (which(), faces).prop_map(|((photo, version), faces)| Step::Arrives { photo, version, faces });
    let code = prop_oneof![Just(RejectCode::Damaged), Just(RejectCode::TooManyPixels)];
    let unfit = (which(), code).prop_map(|((photo, version), code)| Step::Unfit { photo, version, code });
    let named = (1..8_u32, "[A-Z][a-z]{1,5}").prop_map(|(number, name)| Step::Named { number, name });
    let joined = (1..7_u32, 1..7_u32).prop_map(|(a, b)| Step::Joined { a, b });
    let parted = (0..3_usize).prop_map(|merge| Step::Parted { merge });
    prop::collection::vec(prop_oneof![8 => arrives, 1 => unfit, 1 => named, 3 => joined, 1 => parted], 1..24)
}

/// The photo with this number.
pub fn image(number: u8) -> ImageId {
    ImageId::of_content(Some(1_700_000_000 + i64::from(number)), [number; 16])
}

/// Nobody looks like anybody else.
pub fn looks(identity: u8) -> Signature {
    let vector: Vec<f32> = (0..8).map(|dimension| if dimension == identity { 1.0 } else { 0.0 }).collect();
    Signature::quantise(&vector).expect("a direction")
}

#[derive(Default)]
pub struct World {
    pub log: Vec<Recorded>,
    pub table: Table,
    pub people: People,
    /// Who turned out to be whom.
    pub known: BTreeMap<u8, PersonId>,
    states: BTreeMap<ImageId, PhotoState>,
    gallery: Gallery,
    identity: Identity,
}

impl World {
    /// The platform knows of its photos, and nothing has happened yet.
    pub fn new() -> Self {
        Self { table: platform(), ..Self::default() }
    }

    pub fn after(steps: &[Step]) -> Self {
        let mut world = Self::new();
        for step in steps {
            let _refused_or_done = world.take(step);
        }
        world
    }

    /// Decides, records and projects.
    pub fn take(&mut self, step: &Step) -> Result<Vec<Event>, Refusal> {
        let events = match step {
            Step::Named { number, name } => self.renamed(*number, name).into_iter().collect(),
            Step::Joined { a, b } => self.joined(*a, *b).into_iter().collect(),
            Step::Parted { merge } => self.parted(*merge).into_iter().collect(),
            Step::Arrives { .. } | Step::Unfit { .. } => self.decide(step)?,
        };
        let when = Timestamp::from_millis(1_750_000_000_000 + 1500 * i64::try_from(self.log.len()).unwrap());
        let before = events.iter().find_map(Event::image).and_then(|image| self.states.get(image)).cloned();
        for event in &events {
            let mutations = Projection::default().project(before.as_ref(), event, when, self.people.merges());
            self.record(event, when);
            self.table.commit(&mutations);
            self.table.commit(&self.of_persons(event));
            self.follow(event);
        }
        if let Step::Arrives { faces, .. } = step {
            self.learn(faces, &events);
        }
        Ok(events)
    }

    pub fn decide(&self, step: &Step) -> Result<Vec<Event>, Refusal> {
        let command = self.command(step).expect("a photo");
        decide(self.states.get(&image_of(&command)), command, &policy())
    }

    fn command(&self, step: &Step) -> Option<Command> {
        match step {
            Step::Arrives { photo, version, faces } => Some(self.recognised(*photo, *version, faces).into()),
            Step::Unfit { photo, version, code } => Some(at_version(*photo, *version).rejected(*code)),
            Step::Named { .. } | Step::Joined { .. } | Step::Parted { .. } => None,
        }
    }

    fn joined(&self, a: u32, b: u32) -> Option<Event> {
        let known = |number| self.people.get(person(number)).map(|_| self.people.merges().now(person(number)));
        let (a, b) = (known(a)?, known(b)?);
        let (into, from) = (a.min(b), a.max(b));
        let row = self.table.rows[&Key::person(from)].clone();
        let merge = merged(into.number(), from.number(), self.identity.seq);
        (into != from).then_some(Event::PersonsMerged(PersonsMerged { row, ..merge }))
    }

    fn parted(&self, merge: usize) -> Option<Event> {
        let holding: Vec<_> = self.people.merges().absorbed().map(|(_, merge)| *merge).collect();
        let merge = *holding.get(merge)?;
        let (into, from) = self.people.merges().get(merge)?;
        let identity_seq = self.identity.seq;
        Some(Event::MergeUndone(MergeUndone { v: Version, merge, into, from, identity_seq }))
    }

    /// What a merge, or its end, makes of the rows of persons.
    fn of_persons(&self, event: &Event) -> Vec<Mutation> {
        let merge_of = |id| self.log.iter().find(|recorded| recorded.id == id).map(|recorded| &recorded.event);
        match event {
            Event::PersonsMerged(merge) => Projection::default().merged(merge, &self.people),
            Event::MergeUndone(undone) => match merge_of(undone.merge) {
                Some(Event::PersonsMerged(merge)) => Projection::default().unmerged(merge, &[], &self.people),
                other => panic!("{undone:?} takes back {other:?}"),
            },
            _ => Vec::new(),
        }
    }

    /// Photos show who is who by now.
    fn follow(&mut self, event: &Event) {
        if let Event::PersonsMerged(_) | Event::MergeUndone(_) = event {
            self.gallery.follow(self.people.merges());
            for recorded in &self.log {
                let Event::PhotoProcessed(photo) = &recorded.event else { continue };
                let state = &self.states[&photo.image_id];
                if state.shows == Some(recorded.seq) {
                    let merges = self.people.merges();
                    let rows = Projection::default().photo(photo, recorded.when, &state.persons, &[], merges);
                    self.table.commit(&rows);
                }
            }
        }
    }

    fn recognised(&self, photo: u8, version: u8, faces: &[(u8, bool)]) -> Photo {
        let seen = faces.iter().map(|(identity, well)| {
            let face = if *well { good() } else { small() }.looking(looks(*identity));
            Seen { near: self.gallery.nearest(&face.face.model, &looks(*identity), 5), ..face }
        });
        let mut photo = at_version(photo, version).of(seen);
        let looked = photo.recognition.faces.iter().map(|face| (face.model.as_str(), face.signature.as_ref()));
        photo.recognition.search.alike = Search::among(looked);
        photo.recognition.identity = self.identity.clone();
        photo
    }

    fn renamed(&self, number: u32, name: &str) -> Option<Event> {
        let person = self.people.merges().now(person(number)); // whoever is somebody else has no row to name
        let from = self.people.get(person)?.display_name;
        let identity_seq = self.identity.seq;
        Some(Event::PersonRenamed(PersonRenamed { v: Version, person, identity_seq, from, to: name.into() }))
    }

    fn record(&mut self, event: &Event, when: Timestamp) {
        let seq = Seq(self.log.len() as u64 + 1);
        self.people.evolve(event, when);
        if let Some(image) = event.image() {
            let state = PhotoState::evolve(self.states.remove(image), seq, event).expect("a state");
            self.states.insert(image.clone(), state);
        }
        if event.is_identity() {
            self.identity = Identity { seq, counter: self.people.highest(), ..Identity::default() };
        }
        self.log.push(Recorded { seq, id: event.id(), actor: "test".into(), when, event: event.clone() });
    }

    fn learn(&mut self, faces: &[(u8, bool)], events: &[Event]) {
        for ((identity, _), face) in faces.iter().zip(&processed(events).faces) {
            if let Some(person) = face.verdict.person() {
                let known = *self.known.entry(*identity).or_insert(person);
                let now = |person| self.people.merges().now(person);
                assert_eq!(now(known), now(person), "one identity, two persons");
            }
            if let (Some(person), true) = (face.verdict.person(), face.template) {
                self.gallery.learn(person, &face.model, &looks(*identity));
            }
        }
    }
}

/// The platform's rows, as they are without us.
pub fn platform() -> Table {
    let images: Vec<ImageId> = (0..4).map(image).collect();
    Table::of_platform(&images)
}

fn at_version(number: u8, version: u8) -> Photo {
    photo(image(number).as_str()).version(&format!("v{version}"))
}
