//! A simulation: photos of a few people are decided, recorded and projected one after the other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;
use sparks_domain::{
    Command, Deletion, Email, Event, Face, FaceCandidates, FaceId, Gallery, IdentityHead, ImageId, Key, Lane,
    MergeUndone, Mutation, Person, PersonId, PersonPictured, PersonRegistry, PersonReinstated, PersonRenamed,
    PersonsForgotten, PersonsMerged, PhotoProcessed, PhotoRejected, PhotoState, Projection, ProjectionContext,
    RecordedEvent, Refusal, RejectCode, Seq, Signature, Timestamp, UndoneMerge, Version, decide,
};

use crate::{
    given_when_then::{
        FaceInput, Photo, ada, deletion, good_face, image_of, merged, person, photo, policy, processed, removal,
        small_face,
    },
    memory_table::{Table, fields, uploaded},
};

/// One step of the simulation.
#[derive(Debug, Clone)]
pub enum Step {
    /// A version of a photo is processed, with faces of these identities, of good or poor quality.
    Process { photo: u8, version: u8, faces: Vec<(u8, bool)> },
    /// A version of a photo is rejected.
    Reject { photo: u8, version: u8, code: RejectCode },
    /// The person with this number, if there is one, is renamed.
    Rename { number: u32, name: String },
    /// The persons with these numbers, if they exist and are not one, are merged.
    Merge { a: u32, b: u32 },
    /// The merge at this index among those in force, if there is one, is undone.
    Undo { merge: usize },
    /// A photo is deleted because its owner requests it, or because its original was removed. The decision about
    /// another photo may be made before and recorded after.
    Delete { photo: u8, requested: bool, concurrent: Option<PhotoVersion> },
    /// A profile picture is processed.
    Profile { user: u8, version: u8, face: Option<(u8, bool)> },
}

/// A version of a photo, with faces of these identities, of good or poor quality.
#[derive(Debug, Clone)]
pub struct PhotoVersion {
    photo: u8,
    version: u8,
    faces: Vec<(u8, bool)>,
}

impl Step {
    /// Whether a photo or profile picture is decided.
    pub fn is_photo(&self) -> bool {
        matches!(self, Self::Process { .. } | Self::Reject { .. } | Self::Profile { .. })
    }
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = || (0..4_u8, 0..3_u8);
    let faces = |most| prop::collection::vec((0..6_u8, prop::bool::weighted(0.8)), 0..most);
    let process = (which(), faces(5)).prop_map(|((photo, version), faces)| Step::Process { photo, version, faces });
    let code = prop_oneof![Just(RejectCode::Damaged), Just(RejectCode::TooManyPixels)];
    let reject = (which(), code).prop_map(|((photo, version), code)| Step::Reject { photo, version, code });
    let rename = (1..8_u32, "[A-Z][a-z]{1,5}").prop_map(|(number, name)| Step::Rename { number, name });
    let merge = (1..7_u32, 1..7_u32).prop_map(|(a, b)| Step::Merge { a, b });
    let undo = (0..3_usize).prop_map(|merge| Step::Undo { merge });
    let photo_version =
        (which(), faces(3)).prop_map(|((photo, version), faces)| PhotoVersion { photo, version, faces });
    let delete = (0..4_u8, any::<bool>(), prop::option::of(photo_version))
        .prop_map(|(photo, requested, concurrent)| Step::Delete { photo, requested, concurrent });
    let profile = (0..2_u8, 0..3_u8, prop::option::weighted(0.8, (0..6_u8, prop::bool::weighted(0.8))))
        .prop_map(|(user, version, face)| Step::Profile { user, version, face });
    let step = prop_oneof![8 => process, 1 => reject, 1 => rename, 3 => merge, 1 => undo, 3 => delete, 1 => profile];
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

/// The signature of an identity: orthogonal to all others.
pub fn signature(identity: u8) -> Signature {
    let vector: Vec<f32> = (0..8).map(|dimension| if dimension == identity { 1.0 } else { 0.0 }).collect();
    Signature::quantise(&vector).expect("a direction")
}

#[derive(Default)]
pub struct Simulation {
    pub log: Vec<RecordedEvent>,
    pub table: Table,
    /// The table without our changes: the rows of the platform as they are now.
    pub platform: Table,
    pub registry: PersonRegistry,
    /// All persons that were ever identified.
    pub identified: BTreeSet<PersonId>,
    /// The person of each identity.
    pub persons: BTreeMap<u8, PersonId>,
    states: BTreeMap<ImageId, PhotoState>,
    gallery: Gallery,
    identity: IdentityHead,
}

impl Simulation {
    /// The start: the platform has rows of its photos and users.
    pub fn new() -> Self {
        Self { table: platform(), platform: platform(), ..Self::default() }
    }

    pub fn after(steps: &[Step]) -> Self {
        let mut simulation = Self::new();
        for step in steps {
            let _refused_or_done = simulation.run(step);
        }
        simulation
    }

    /// Decides, records and projects one step.
    pub fn run(&mut self, step: &Step) -> Result<Vec<Event>, Refusal> {
        let events = match step {
            Step::Rename { number, name } => self.rename(*number, name).into_iter().collect(),
            Step::Merge { a, b } => self.merge(*a, *b).into_iter().collect(),
            Step::Undo { merge } => self.undo(*merge).into_iter().collect(),
            Step::Process { .. } | Step::Reject { .. } | Step::Profile { .. } => self.decide(step)?,
            Step::Delete { photo, concurrent, .. } => return self.delete(step, *photo, concurrent.as_ref()),
        };
        self.commit(&events, None);
        match step {
            Step::Process { faces, .. } => self.enroll(faces, &events),
            Step::Profile { face, .. } => self.enroll(face.as_slice(), &events),
            _ => {}
        }
        Ok(events)
    }

    /// Records the events and applies the rows that they change.
    fn commit(&mut self, events: &[Event], reinstated: Option<&Person>) {
        let when = Timestamp::from_millis(1_750_000_000_000 + 1500 * i64::try_from(self.log.len()).unwrap());
        let before = events.iter().find_map(Event::image).and_then(|image| self.states.get(image)).cloned();
        for event in events {
            self.upload(event);
            let taggings = self.taggings(event);
            self.record(event, when);
            let undone = self.undone_merge(event);
            let context = ProjectionContext {
                before: before.as_ref(),
                taggings: &taggings,
                has_limit: true,
                persons: Some(&self.registry),
                undone: undone.as_ref().map(|(merge, users)| UndoneMerge { merge, users }),
                reinstated,
                ..ProjectionContext::new(when, self.registry.merges())
            };
            let mutations = Projection::default().project(event, &context);
            self.table.commit(&mutations);
            self.delete_on_platform(event, mutations);
            self.update_photos(event);
        }
    }

    /// The platform creates the row of a deleted photo again when it is uploaded again.
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

    /// Deletes a photo, then forgets persons without a photo. The concurrent decision is recorded last, and reinstates
    /// persons in it who were forgotten in between.
    fn delete(&mut self, step: &Step, photo: u8, concurrent: Option<&PhotoVersion>) -> Result<Vec<Event>, Refusal> {
        let concurrent =
            concurrent.filter(|other| other.photo != photo).and_then(|PhotoVersion { photo, version, faces }| {
                let process = Step::Process { photo: *photo, version: *version, faces: faces.clone() };
                // A commit that allocates persons would be refused after the deletion.
                let events = self.decide(&process).ok().filter(|events| events.len() == 1)?;
                Some((faces, events))
            });
        let events = self.decide(step)?;
        let Some(Event::PhotoDeleted(deleted)) = events.first() else { panic!("{events:?}") };
        self.commit(&events, None);
        for person in self.registry.merges().all_current(&deleted.persons) {
            self.update_person_after_deletion(&deleted.image_id, person);
        }
        if let Some((faces, events)) = concurrent {
            self.commit(&events, None);
            self.reinstate(faces, processed(&events).clone());
            self.enroll(faces, &events);
        }
        Ok(events)
    }

    /// Forgets a person who is in no other photo; otherwise replaces a crop that showed the deleted photo.
    fn update_person_after_deletion(&mut self, image: &ImageId, person: PersonId) {
        let Some(known) = self.registry.get(person) else { return };
        let identity_seq = self.identity.seq;
        if self.has_no_photo(person) {
            let persons: Vec<_> = self.registry.merges().members(person).into_iter().collect();
            self.persons.retain(|_, known| !persons.contains(known));
            persons.iter().for_each(|person| self.gallery.remove(*person));
            self.commit(&[Event::PersonsForgotten(PersonsForgotten { v: Version, persons, identity_seq })], None);
        } else if known.face.image == *image
            && let Some(face) = self.face_of(person)
        {
            self.commit(&[Event::PersonPictured(PersonPictured { v: Version, person, face, identity_seq })], None);
        }
    }

    fn reinstate(&mut self, faces: &[(u8, bool)], photo: PhotoProcessed) {
        for (n, face) in (photo.first_face..).zip(&photo.faces) {
            let Some(person) = face.verdict.person().map(|person| self.registry.merges().current(person)) else {
                continue;
            };
            if self.registry.is_forgotten(person) {
                let (face, identity_seq) = (FaceId { image: photo.image_id.clone(), n }, self.identity.seq);
                let forgotten = self.registry.get_forgotten(person).expect("a forgotten person");
                let event = PersonReinstated { v: Version, person, face, identity_seq };
                self.commit(&[Event::PersonReinstated(event)], Some(&forgotten));
                // All their stored faces become templates.
                for (face, (identity, _)) in photo.faces.iter().zip(faces) {
                    if face.verdict.person().map(|person| self.registry.merges().current(person)) == Some(person) {
                        self.gallery.enroll(person, &face.model, &signature(*identity));
                    }
                }
            }
        }
    }

    fn has_no_photo(&self, person: PersonId) -> bool {
        let members = self.registry.merges().members(person);
        let tags: Vec<String> = members.iter().map(|member| format!("TAGGING#{member}")).collect();
        self.table.rows.values().all(|row| {
            let is_tag = row.get("entityType").is_some_and(|entity| tags.iter().any(|tag| entity == tag));
            !is_tag && row.get("personId") != Some(&person.to_string().into())
        })
    }

    /// A face of the person in a photo whose rows are in the table.
    fn face_of(&self, person: PersonId) -> Option<FaceId> {
        self.log.iter().find_map(|recorded| {
            let Event::PhotoProcessed(photo) = &recorded.event else { return None };
            let is_projected = self.states[&photo.image_id].projected_seq == Some(recorded.seq);
            let is_theirs = |face: &Face| {
                face.verdict.person().map(|person| self.registry.merges().current(person)) == Some(person)
            };
            let n = (photo.first_face..).zip(&photo.faces).find(|(_, face)| is_projected && is_theirs(face))?.0;
            Some(FaceId { image: photo.image_id.clone(), n })
        })
    }

    fn taggings(&self, event: &Event) -> Vec<Key> {
        let Event::PhotoDeleted(deleted) = event else { return Vec::new() };
        let pk = deleted.image_id.as_str();
        self.table.rows.keys().filter(|key| key.pk == pk && key.sk.starts_with("PERSON#")).cloned().collect()
    }

    /// The platform's part of a deletion: with an original it removes the row, too.
    fn delete_on_platform(&mut self, event: &Event, mutations: Vec<Mutation>) {
        let Event::PhotoDeleted(deleted) = event else { return };
        let platform_rows: Vec<_> = mutations.into_iter().filter(Mutation::requires_row).collect();
        self.platform.commit(&platform_rows);
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
            Step::Process { photo, version, faces } => Some(self.searched_photo(*photo, *version, faces).into()),
            Step::Reject { photo, version, code } => Some(photo_version(*photo, *version).rejected(*code)),
            Step::Profile { user, version, face } => {
                let picture = self.searched_photo(0, *version, face.as_slice());
                Some(picture.into_profile_of(self::user(*user).as_str()))
            }
            Step::Delete { photo, requested, .. } => {
                let image = image(*photo);
                let has_row = self.table.rows.contains_key(&Key::image(&image, &ada()));
                let deletion = if *requested { deletion(image.as_str()) } else { removal(image.as_str(), None) };
                Some(Deletion { uploader: (*requested && has_row).then(ada), ..deletion }.into())
            }
            Step::Rename { .. } | Step::Merge { .. } | Step::Undo { .. } => None,
        }
    }

    fn merge(&self, a: u32, b: u32) -> Option<Event> {
        let current =
            |number| self.registry.get(person(number)).map(|_| self.registry.merges().current(person(number)));
        let (a, b) = (current(a)?, current(b)?);
        let (into, from) = (a.min(b), a.max(b));
        let row = self.table.rows[&Key::person(from)].clone();
        let merge = merged(into.number(), from.number(), self.identity.seq);
        let users = self.users_of(from);
        (into != from).then_some(Event::PersonsMerged(PersonsMerged { row, users, ..merge }))
    }

    fn undo(&self, merge: usize) -> Option<Event> {
        let in_force: Vec<_> = self.registry.merges().absorbed().map(|(_, merge)| *merge).collect();
        let merge = *in_force.get(merge)?;
        let (into, from) = self.registry.merges().get(merge)?;
        let identity_seq = self.identity.seq;
        Some(Event::MergeUndone(MergeUndone { v: Version, merge, into, from, identity_seq }))
    }

    /// The merge that the event undoes, and the users who return to the absorbed person.
    fn undone_merge(&self, event: &Event) -> Option<(PersonsMerged, Vec<Email>)> {
        let Event::MergeUndone(undone) = event else { return None };
        let merge = self.log.iter().find(|recorded| recorded.id == undone.merge).map(|recorded| &recorded.event);
        let Some(Event::PersonsMerged(merge)) = merge else { panic!("{undone:?} undoes {merge:?}") };
        let mut users = self.users_of(self.registry.merges().current(merge.into));
        users.retain(|user| merge.users.contains(user) && self.is_identified_as(user, merge.from));
        Some((merge.clone(), users))
    }

    fn users_of(&self, person: PersonId) -> Vec<Email> {
        let is_theirs =
            |email: &Email| self.table.rows[&Key::user(email)].get("personId") == Some(&person.to_string().into());
        (0..2).map(user).filter(is_theirs).collect()
    }

    /// Whether the user's last profile picture is of this person.
    fn is_identified_as(&self, user: &Email, person: PersonId) -> bool {
        let state = self.states.get(&ImageId::of_profile(user));
        state.is_some_and(|state| self.registry.merges().all_current(&state.persons) == [person])
    }

    /// Projects all photos again after a merge or its undo.
    fn update_photos(&mut self, event: &Event) {
        if let Event::PersonsMerged(_) | Event::MergeUndone(_) = event {
            self.gallery.apply_merges(self.registry.merges());
            for recorded in &self.log {
                let Event::PhotoProcessed(photo) = &recorded.event else { continue };
                let state = &self.states[&photo.image_id];
                if state.projected_seq == Some(recorded.seq) {
                    let merges = self.registry.merges();
                    self.table.commit(&Projection::default().reproject(recorded, state, merges));
                }
            }
        }
    }

    fn searched_photo(&self, photo: u8, version: u8, faces: &[(u8, bool)]) -> Photo {
        let faces = faces.iter().map(|(identity, is_good)| {
            let face = if *is_good { good_face() } else { small_face() }.with_signature(signature(*identity));
            FaceInput { candidates: self.gallery.nearest(&face.face.model, &signature(*identity), 5), ..face }
        });
        let mut photo = photo_version(photo, version).with_faces(faces);
        let signatures = photo.identification.faces.iter().map(|face| (face.model.as_str(), face.signature.as_ref()));
        photo.identification.search.similarities = FaceCandidates::pairwise_similarities(signatures);
        photo.identification.identity = self.identity.clone();
        photo
    }

    fn rename(&self, number: u32, name: &str) -> Option<Event> {
        let person = self.registry.merges().current(person(number)); // a merged person has no row
        let from = self.registry.get(person)?.display_name;
        let identity_seq = self.identity.seq;
        Some(Event::PersonRenamed(PersonRenamed { v: Version, person, identity_seq, from, to: name.into() }))
    }

    fn record(&mut self, event: &Event, when: Timestamp) {
        let seq = Seq(self.log.len() as u64 + 1);
        self.registry.evolve(event, when);
        if let Some(image) = event.image() {
            let state = PhotoState::evolve(self.states.remove(image), seq, event).expect("a state");
            self.states.insert(image.clone(), state);
        }
        if event.is_identity() {
            self.identity = IdentityHead { seq, counter: self.registry.highest_number(), ..IdentityHead::default() };
        }
        self.log.push(RecordedEvent {
            lane: Lane::IDENTITY,
            seq,
            id: event.id(),
            actor: "test".into(),
            when,
            event: event.clone(),
        });
    }

    fn enroll(&mut self, faces: &[(u8, bool)], events: &[Event]) {
        let decided: &[Face] = match events.last() {
            Some(Event::ProfileProcessed(profile)) => profile.face.as_slice(),
            _ => &processed(events).faces,
        };
        for ((identity, _), face) in faces.iter().zip(decided) {
            if let Some(person) = face.verdict.person() {
                let known = *self.persons.entry(*identity).or_insert(person);
                self.identified.insert(person);
                let current = |person| self.registry.merges().current(person);
                assert_eq!(current(known), current(person), "one identity, two persons");
            }
            if let (Some(person), true) = (face.verdict.person(), face.template) {
                self.gallery.enroll(person, &face.model, &signature(*identity));
            }
        }
    }
}

/// The platform's rows without our changes.
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

fn photo_version(number: u8, version: u8) -> Photo {
    photo(image(number).as_str()).version(&format!("v{version}"))
}
