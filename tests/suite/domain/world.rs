//! A small world that runs: photos of people, whoever they are, decided and recorded one after the other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;
use sparks_domain::{
    Command, Deletion, Email, Event, Face, FaceId, Gallery, Identity, ImageId, Key, Lane, MergeUndone, Mutation,
    People, PersonId, PersonPictured, PersonReinstated, PersonRenamed, PersonsForgotten, PersonsMerged, PhotoProcessed,
    PhotoRejected, PhotoState, Projection, Recorded, Refusal, RejectCode, Search, Seq, Signature, Timestamp, Version,
    decide,
};

use crate::{
    story::{Photo, Seen, ada, deletion, good, image_of, merged, person, photo, policy, processed, removal, small},
    table::{Table, fields, uploaded},
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
    /// A photo goes because its owner asks, or because its original was removed. A version of another photo, with faces of
    /// these people, may have been decided before and be recorded after.
    Gone { photo: u8, asked: bool, beside: Option<Arrival> },
    /// A user's picture of themselves arrives.
    Me { user: u8, version: u8, face: Option<(u8, bool)> },
}

/// A version of a photo, with faces of these people, seen well or not.
#[derive(Debug, Clone)]
pub struct Arrival {
    photo: u8,
    version: u8,
    faces: Vec<(u8, bool)>,
}

impl Step {
    /// Whether it is about a photo.
    pub fn is_photo(&self) -> bool {
        matches!(self, Self::Arrives { .. } | Self::Unfit { .. } | Self::Me { .. })
    }
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = || (0..4_u8, 0..3_u8);
    let faces = |most| prop::collection::vec((0..6_u8, prop::bool::weighted(0.8)), 0..most);
    let arrives = (which(), faces(5)).prop_map(|((photo, version), faces)| Step::Arrives { photo, version, faces });
    let code = prop_oneof![Just(RejectCode::Damaged), Just(RejectCode::TooManyPixels)];
    let unfit = (which(), code).prop_map(|((photo, version), code)| Step::Unfit { photo, version, code });
    let named = (1..8_u32, "[A-Z][a-z]{1,5}").prop_map(|(number, name)| Step::Named { number, name });
    let joined = (1..7_u32, 1..7_u32).prop_map(|(a, b)| Step::Joined { a, b });
    let parted = (0..3_usize).prop_map(|merge| Step::Parted { merge });
    let beside =
        prop::option::of((which(), faces(3)).prop_map(|((photo, version), faces)| Arrival { photo, version, faces }));
    let gone = (0..4_u8, any::<bool>(), beside).prop_map(|(photo, asked, beside)| Step::Gone { photo, asked, beside });
    let me = (0..2_u8, 0..3_u8, prop::option::weighted(0.8, (0..6_u8, prop::bool::weighted(0.8))))
        .prop_map(|(user, version, face)| Step::Me { user, version, face });
    let step = prop_oneof![8 => arrives, 1 => unfit, 1 => named, 3 => joined, 1 => parted, 3 => gone, 1 => me];
    prop::collection::vec(step, 1..24)
}

/// The photo with this number.
pub fn image(number: u8) -> ImageId {
    ImageId::of_content(Some(1_700_000_000 + i64::from(number)), [number; 16])
}

/// The user with this number.
pub fn user(number: u8) -> Email {
    format!("user{number}@example.org").parse().unwrap()
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
    /// What would be in the table without us: what others own, as it is by now.
    pub platform: Table,
    pub people: People,
    /// Everybody who ever was somebody.
    pub ever: BTreeSet<PersonId>,
    /// Who turned out to be whom.
    pub known: BTreeMap<u8, PersonId>,
    states: BTreeMap<ImageId, PhotoState>,
    gallery: Gallery,
    identity: Identity,
}

impl World {
    /// The platform knows of its photos, and nothing has happened yet.
    pub fn new() -> Self {
        Self { table: platform(), platform: platform(), ..Self::default() }
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
            Step::Arrives { .. } | Step::Unfit { .. } | Step::Me { .. } => self.decide(step)?,
            Step::Gone { photo, beside, .. } => return self.gone(step, *photo, beside.as_ref()),
        };
        self.happen(&events);
        match step {
            Step::Arrives { faces, .. } => self.learn(faces, &events),
            Step::Me { face, .. } => self.learn(face.as_slice(), &events),
            _ => {}
        }
        Ok(events)
    }

    /// Records and projects.
    fn happen(&mut self, events: &[Event]) {
        let when = Timestamp::from_millis(1_750_000_000_000 + 1500 * i64::try_from(self.log.len()).unwrap());
        let before = events.iter().find_map(Event::image).and_then(|image| self.states.get(image)).cloned();
        for event in events {
            self.upload(event);
            let mutations = Projection::default().project(before.as_ref(), event, when, self.people.merges());
            self.record(event, when);
            self.table.commit(&mutations);
            self.table.commit(&self.of_persons(event));
            self.of_deletion(event);
            self.follow(event);
        }
    }

    /// A photo that is gone may be uploaded anew: then the platform makes its row again.
    fn upload(&mut self, event: &Event) {
        if let Event::PhotoProcessed(PhotoProcessed { image_id, .. })
        | Event::PhotoRejected(PhotoRejected { image_id, .. }) = event
            && (0..4).any(|photo| image(photo) == *image_id)
        {
            let key = Key::image(image_id, &ada());
            for table in [&mut self.platform, &mut self.table] {
                table.rows.entry(key.clone()).or_insert_with(|| uploaded(image_id));
            }
        }
    }

    /// Decides that a photo is gone, and sees to its persons. What was decided beside it is recorded last, and whoever is in
    /// it and was forgotten meanwhile is known again.
    fn gone(&mut self, step: &Step, photo: u8, beside: Option<&Arrival>) -> Result<Vec<Event>, Refusal> {
        let beside = beside.filter(|other| other.photo != photo).and_then(|Arrival { photo, version, faces }| {
            let arrives = Step::Arrives { photo: *photo, version: *version, faces: faces.clone() };
            // Whoever founds somebody decides again where persons have changed.
            let events = self.decide(&arrives).ok().filter(|events| events.len() == 1)?;
            Some((faces, events))
        });
        let events = self.decide(step)?;
        let Some(Event::PhotoDeleted(deleted)) = events.first() else { panic!("{events:?}") };
        self.happen(&events);
        for person in self.people.merges().all_now(&deleted.persons) {
            self.leave(&deleted.image_id, person);
        }
        if let Some((faces, events)) = beside {
            self.happen(&events);
            self.see_again(faces, processed(&events).clone());
            self.learn(faces, &events);
        }
        Ok(events)
    }

    /// Whoever is in no other photo is forgotten; whoever was shown by a face in this one is shown by another.
    fn leave(&mut self, image: &ImageId, person: PersonId) {
        let Some(known) = self.people.get(person) else { return };
        let identity_seq = self.identity.seq;
        if self.is_unseen(person) {
            let persons: Vec<_> = self.people.merges().members(person).into_iter().collect();
            self.known.retain(|_, known| !persons.contains(known));
            persons.iter().for_each(|person| self.gallery.forget(*person));
            self.happen(&[Event::PersonsForgotten(PersonsForgotten { v: Version, persons, identity_seq })]);
        } else if known.face.image == *image
            && let Some(face) = self.face_of(person)
        {
            self.happen(&[Event::PersonPictured(PersonPictured { v: Version, person, face, identity_seq })]);
        }
    }

    fn see_again(&mut self, faces: &[(u8, bool)], photo: PhotoProcessed) {
        for (n, face) in (photo.first_face..).zip(&photo.faces) {
            let Some(person) = face.verdict.person().map(|person| self.people.merges().now(person)) else { continue };
            if self.people.is_forgotten(person) {
                let (face, identity_seq) = (FaceId { image: photo.image_id.clone(), n }, self.identity.seq);
                let row = Projection::default().reinstated(person, &self.people.remembered(person).expect("somebody"));
                self.happen(&[Event::PersonReinstated(PersonReinstated { v: Version, person, face, identity_seq })]);
                self.table.commit(&[row]);
                // All that is kept of them is what they are known by from now on.
                for (face, (identity, _)) in photo.faces.iter().zip(faces) {
                    if face.verdict.person().map(|who| self.people.merges().now(who)) == Some(person) {
                        self.gallery.learn(person, &face.model, &looks(*identity));
                    }
                }
            }
        }
    }

    fn is_unseen(&self, person: PersonId) -> bool {
        let members = self.people.merges().members(person);
        let tags: Vec<String> = members.iter().map(|member| format!("TAGGING#{member}")).collect();
        self.table.rows.values().all(|row| {
            let is_tag = row.get("entityType").is_some_and(|kind| tags.iter().any(|tag| kind == tag));
            !is_tag && row.get("personId") != Some(&person.to_string().into())
        })
    }

    /// A face of the person in a photo that is there.
    fn face_of(&self, person: PersonId) -> Option<FaceId> {
        self.log.iter().find_map(|recorded| {
            let Event::PhotoProcessed(photo) = &recorded.event else { return None };
            let is_shown = self.states[&photo.image_id].shows == Some(recorded.seq);
            let is_theirs =
                |face: &Face| face.verdict.person().map(|who| self.people.merges().now(who)) == Some(person);
            let n = (photo.first_face..).zip(&photo.faces).find(|(_, face)| is_shown && is_theirs(face))?.0;
            Some(FaceId { image: photo.image_id.clone(), n })
        })
    }

    /// What a deletion makes of the table. Whoever removes an original removes the row, too.
    fn of_deletion(&mut self, event: &Event) {
        let Event::PhotoDeleted(deleted) = event else { return };
        let pk = deleted.image_id.as_str();
        let taggings = self.table.rows.keys().filter(|key| key.pk == pk && key.sk.starts_with("PERSON#"));
        let mutations = Projection::default().deleted(deleted, taggings.cloned().collect(), true);
        self.table.commit(&mutations);
        let of_platform: Vec<_> = mutations.into_iter().filter(Mutation::requires_row).collect();
        self.platform.commit(&of_platform);
        for table in [&mut self.platform, &mut self.table] {
            table.rows.remove(&Key::image(&deleted.image_id, &ada()));
        }
    }

    pub fn decide(&self, step: &Step) -> Result<Vec<Event>, Refusal> {
        let command = self.command(step).expect("a photo");
        decide(self.states.get(&image_of(&command)), command, &policy())
    }

    fn command(&self, step: &Step) -> Option<Command> {
        match step {
            Step::Arrives { photo, version, faces } => Some(self.recognised(*photo, *version, faces).into()),
            Step::Unfit { photo, version, code } => Some(at_version(*photo, *version).rejected(*code)),
            Step::Me { user, version, face } => {
                let seen = self.recognised(0, *version, face.as_slice());
                Some(seen.of_user(self::user(*user).as_str()))
            }
            Step::Gone { photo, asked, .. } => {
                let image = image(*photo);
                let has_row = self.table.rows.contains_key(&Key::image(&image, &ada()));
                let deletion = if *asked { deletion(image.as_str()) } else { removal(image.as_str(), None) };
                Some(Deletion { uploader: (*asked && has_row).then(ada), ..deletion }.into())
            }
            Step::Named { .. } | Step::Joined { .. } | Step::Parted { .. } => None,
        }
    }

    fn joined(&self, a: u32, b: u32) -> Option<Event> {
        let known = |number| self.people.get(person(number)).map(|_| self.people.merges().now(person(number)));
        let (a, b) = (known(a)?, known(b)?);
        let (into, from) = (a.min(b), a.max(b));
        let row = self.table.rows[&Key::person(from)].clone();
        let merge = merged(into.number(), from.number(), self.identity.seq);
        let users = self.users_who_are(from);
        (into != from).then_some(Event::PersonsMerged(PersonsMerged { row, users, ..merge }))
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
                Some(Event::PersonsMerged(merge)) => {
                    let mut users = self.users_who_are(self.people.merges().now(merge.into));
                    users.retain(|user| merge.users.contains(user) && self.is_now(user, merge.from));
                    Projection::default().unmerged(merge, &users, &self.people)
                }
                other => panic!("{undone:?} takes back {other:?}"),
            },
            _ => Vec::new(),
        }
    }

    fn users_who_are(&self, person: PersonId) -> Vec<Email> {
        let is_they =
            |email: &Email| self.table.rows[&Key::user(email)].get("personId") == Some(&person.to_string().into());
        (0..2).map(user).filter(is_they).collect()
    }

    /// Whether the user's last picture of themselves is of this person.
    fn is_now(&self, user: &Email, person: PersonId) -> bool {
        let state = self.states.get(&ImageId::of_profile(user));
        state.is_some_and(|state| self.people.merges().all_now(&state.persons) == [person])
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
        self.log.push(Recorded {
            lane: Lane::IDENTITY,
            seq,
            id: event.id(),
            actor: "test".into(),
            when,
            event: event.clone(),
        });
    }

    fn learn(&mut self, faces: &[(u8, bool)], events: &[Event]) {
        let decided: &[Face] = match events.last() {
            Some(Event::ProfileProcessed(profile)) => profile.face.as_slice(),
            _ => &processed(events).faces,
        };
        for ((identity, _), face) in faces.iter().zip(decided) {
            if let Some(person) = face.verdict.person() {
                let known = *self.known.entry(*identity).or_insert(person);
                self.ever.insert(person);
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
    let mut table = Table::of_platform(&images);
    table.rows.insert(Key::limit(&ada()), fields(json!({ "entityType": "DEFAULT_LIMIT", "limit": 500 })));
    for number in 0..2 {
        let row = json!({ "entityType": "USER", "email": user(number), "updatedAt": "2025-06-01T00:00:00.000Z" });
        table.rows.insert(Key::user(&user(number)), fields(row));
    }
    table
}

fn at_version(number: u8, version: u8) -> Photo {
    photo(image(number).as_str()).version(&format!("v{version}"))
}
