//! What must hold once all messages are settled.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use sparks_domain::{
    Email, Event, Face, FaceId, ImageId, Key, PersonId, PersonRegistry, PhotoProcessed, PhotoStatus, ProfileProcessed,
    Projection, Seq, Verdict, object_keys,
};
use sparks_engine::{Rebuilder, Store};

use crate::{
    face_service::ServiceKind,
    memory::MemoryObjects,
    photo_content::{Look, PhotoContent},
    platform::uploader,
    profile::user_email,
    world::World,
};

/// Returns every violated invariant.
pub(crate) async fn violations(world: &World) -> Vec<String> {
    let mut found = Violations { world, list: Vec::new(), people: PersonRegistry::default(), merged: BTreeSet::new() };
    found.read_log();
    found.check_settlements();
    found.check_photos().await;
    found.check_persons();
    found.check_leftovers();
    found.check_table().await;
    found.check_face_service();
    let mut list = world.audit.violations();
    list.extend(found.list);
    list
}

struct Violations<'a> {
    world: &'a World,
    list: Vec<String>,
    people: PersonRegistry,
    /// Every person who was ever merged with another, also where the merge was undone or one of them is forgotten.
    merged: BTreeSet<PersonId>,
}

impl Violations<'_> {
    fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.list.push(otherwise());
        }
    }

    /// The log has no gaps, no event twice, and every event was published. Only a decision of a killed redecide that a later event about
    /// the photo followed may not have been: no message repeats it, and subscribers have the later one.
    fn read_log(&mut self) {
        let (mut ids, mut last) = (BTreeSet::new(), BTreeMap::new());
        let (published, events) = (self.world.publisher.published(), self.world.store.events());
        let newest: BTreeMap<ImageId, Seq> =
            events.iter().filter_map(|recorded| Some((recorded.event.image()?.clone(), recorded.seq))).collect();
        for recorded in events {
            let seq = last.entry(recorded.lane).or_insert(0);
            *seq += 1;
            let is_next = recorded.seq.0 == *seq;
            self.require(is_next, || format!("lane {} has a gap before {}", recorded.lane, recorded.seq));
            let is_new = ids.insert(recorded.id);
            self.require(is_new, || format!("{} {} is twice in the log", recorded.event.event_type(), recorded.id));
            let is_photo = matches!(recorded.event, Event::PhotoProcessed(_) | Event::PhotoDeleted(_));
            let is_superseded = recorded.actor == "redecide"
                && recorded.event.image().is_some_and(|image| newest.get(image) != Some(&recorded.seq));
            let is_published = !is_photo || is_superseded || published.contains(&recorded.id.to_string());
            self.require(is_published, || format!("{} was not published", recorded.id));
            if let Event::PersonsMerged(merge) = &recorded.event {
                self.merged.extend([merge.into, merge.from]);
            }
            if recorded.event.is_identity() {
                self.people.evolve(&recorded.event, recorded.when);
            }
        }
    }

    /// Every message was settled once, and none is a dead letter.
    fn check_settlements(&mut self) {
        self.list.extend(self.world.queue.violations());
        for letter in self.world.queue.dead() {
            self.list.push(format!("dead letter {}: {} ({})", letter.cause, letter.reason, letter.body));
        }
    }

    /// Every photo that exists is decided in its current version, and shown with its variants; of deleted ones nothing is left.
    async fn check_photos(&mut self) {
        for (image, content) in self.world.platform.photos() {
            let state = self.world.store.photo(&image).await.ok().flatten();
            let status = state.as_ref().map(|state| state.status);
            match content {
                None => {
                    let is_gone = status.is_none_or(|status| status == PhotoStatus::Deleted);
                    self.require(is_gone, || format!("{image} was deleted, and its state is {status:?}"));
                    self.check_deleted(&image);
                }
                Some(content) => {
                    let version = MemoryObjects::version(content.to_string().as_bytes());
                    let found = state.map(|state| state.version);
                    self.require(found.as_ref() == Some(&version), || {
                        format!("{image} is decided in version {found:?} ({status:?}), not {version} ({content})")
                    });
                    if content.is_damaged {
                        let is_rejected = matches!(status, Some(PhotoStatus::Rejected(_)));
                        self.require(is_rejected, || format!("{image} is damaged, and its state is {status:?}"));
                    } else {
                        self.check_shown(&image, &content);
                    }
                }
            }
        }
    }

    fn check_shown(&mut self, image: &ImageId, content: &PhotoContent) {
        let objects = self.world.objects.clone();
        let original = objects.body(&object_keys::original(image, "jpg"));
        self.require(original.is_some(), || format!("the original of {image} is lost"));
        for name in object_keys::VARIANT_NAMES {
            let found = objects.body(&object_keys::variant(image, name));
            self.require(found.as_ref() == Some(&content.variant(name)), || {
                let found = found.as_deref().map(String::from_utf8_lossy);
                format!("{name} of {image} is {found:?}, and the photo is {content}")
            });
        }
        let rows = self.world.store.rows();
        let is_shown = |key: Key| rows.iter().any(|row| row.key == key);
        let has_row = is_shown(Key::image(image, &uploader()));
        self.require(has_row, || format!("{image} has no IMAGE row"));
    }

    fn check_deleted(&mut self, image: &ImageId) {
        let rows = self.world.store.rows().into_iter().filter(|row| row.key.pk == image.as_str());
        for row in rows.collect::<Vec<_>>() {
            self.list.push(format!("row {} is left of a deleted photo", row.key));
        }
        for key in self.world.objects.keys().into_iter().filter(|key| key.contains(image.as_str())) {
            self.list.push(format!("object {key} is left of a deleted photo"));
        }
    }

    /// A person is one identity, a look of an identity is one person, and every face of every photo is tagged.
    fn check_persons(&mut self) {
        let merges = self.people.merges().clone();
        let (mut identities, mut persons) = (BTreeMap::new(), BTreeMap::new());
        let (mut shown, mut models) = (BTreeSet::new(), BTreeSet::new());
        let photos = self.world.decided_photos();
        let templates: BTreeSet<FaceId> =
            self.world.store.faces().into_iter().filter(|stored| stored.template).map(|stored| stored.face).collect();
        let mut known_looks = BTreeSet::new();
        for (image, content, photo) in &photos {
            for (n, look) in (photo.first_face..).zip(&content.faces) {
                known_looks.extend(templates.contains(&FaceId { image: image.clone(), n }).then_some(*look));
            }
        }
        let mut identified: BTreeMap<Look, BTreeSet<PersonId>> = BTreeMap::new();
        for (look, face) in photos.iter().flat_map(|(_, content, photo)| content.faces.iter().zip(&photo.faces)) {
            identified.entry(*look).or_default().extend(face.verdict.person().map(|person| merges.current(person)));
        }
        let profiles = self.check_profiles();
        for (_, look, _, person) in &profiles {
            identified.entry(*look).or_default().insert(merges.current(*person));
        }
        for (image, content, photo) in photos {
            let mut expected = BTreeSet::new();
            for (look, face) in content.faces.iter().zip(&photo.faces) {
                let Some(person) = face.verdict.person() else {
                    // A face that was ambiguous between two persons stays so once both are forgotten: a review identifies faces, and
                    // only `sparks redecide` allocates a person for one. Two persons have one look for as long as a worker with an
                    // old gallery knows one who is being forgotten, and after an unmerge for good. The one of merged persons whose
                    // look it is may have lost the template with it.
                    let persons = identified.get(look).map_or(0, BTreeSet::len);
                    let is_known = persons == 1 && known_looks.contains(look);
                    let is_left = face.verdict == Verdict::Ambiguous && !is_known;
                    if is_left {
                        continue;
                    }
                    self.list.push(format!("face {look} of {image} is unidentified: {:?}", face.verdict));
                    continue;
                };
                let current = merges.current(person);
                expected.insert(current);
                shown.insert(current);
                let first = *identities.entry(current).or_insert(look.identity);
                self.require(first == look.identity, || {
                    format!("{current} is both identity {first} and {} (in {image})", look.identity)
                });
                models.insert((*look, face.model.clone()));
                let first = *persons.entry(*look).or_insert(current);
                self.require(self.may_share_look(first, current), || {
                    format!("look {look} is both {first} and {current} (in {image})")
                });
            }
            let tags: BTreeSet<PersonId> = self.tags_of(&image);
            self.require(tags == expected, || format!("{image} is tagged {tags:?}, expected {expected:?}"));
        }
        for (email, look, face, person) in profiles {
            let current = merges.current(person);
            shown.insert(current);
            let first = *identities.entry(current).or_insert(look.identity);
            self.require(first == look.identity, || {
                format!("{current} is both identity {first} and {} (of {email})", look.identity)
            });
            let first = *persons.entry(look).or_insert(current);
            // Profile pictures are not decided again, so that another model may have given their look another person.
            let is_comparable = models.contains(&(look, face.model));
            self.require(!is_comparable || self.may_share_look(first, current), || {
                format!("look {look} is both {first} and {current} (of {email})")
            });
        }
        self.check_known(&shown);
        self.check_crops(&identities);
    }

    /// Every user with a profile picture is linked to the person of the last one that can be read. Returns the faces of users.
    fn check_profiles(&mut self) -> Vec<(Email, Look, Face, PersonId)> {
        let (decided, rows, mut found) = (self.world.decided_profiles(), self.world.store.rows(), Vec::new());
        let last = self.world.last_profiles(|_| true);
        for (user, picture) in self.world.platform.profiles() {
            let (email, content) = (user_email(user), picture.content);
            let profile = decided.get(&email);
            let decided = profile.and_then(|profile| self.world.platform.content_of(&profile.source.version));
            // A face that is ambiguous between two persons leaves the user's person as it was.
            let is_ambiguous = last.get(&email).is_some_and(is_ambiguous);
            self.require(content.is_damaged || is_ambiguous || decided.as_ref() == Some(&content), || {
                format!("{email} is decided by the picture {decided:?}, and the last is {content}")
            });
            let (Some(decided), Some(person)) = (decided, profile.and_then(|profile| profile.person())) else {
                continue;
            };
            let current = self.people.merges().current(person).to_string();
            let row = rows.iter().find(|row| row.key == Key::user(&email));
            let linked = row.and_then(|row| row.text("personId"));
            self.require(linked == Some(&current), || format!("{email} is linked to {linked:?}, expected {current}"));
            let face = profile.and_then(|profile| profile.face.clone());
            found.extend(decided.faces.first().zip(face).map(|(look, face)| (email, *look, face, person)));
        }
        found
    }

    fn tags_of(&self, image: &ImageId) -> BTreeSet<PersonId> {
        let rows = self.world.store.rows();
        let tags = rows.iter().filter(|row| row.key.pk == image.as_str());
        tags.filter_map(|row| row.key.sk.strip_prefix("PERSON#")?.parse().ok()).collect()
    }

    /// Exactly the persons in a photo are known, have a row and a crop.
    fn check_known(&mut self, shown: &BTreeSet<PersonId>) {
        let known: BTreeSet<PersonId> = self.people.iter().map(|(person, _)| person).collect();
        self.require(known == *shown, || format!("known persons are {known:?}, persons in photos {shown:?}"));
        let rows = self.world.store.rows();
        let rows: BTreeSet<PersonId> = rows
            .iter()
            .filter(|row| row.key.pk.starts_with("PERSON#"))
            .filter_map(|row| row.key.sk.parse().ok())
            .collect();
        self.require(rows == known, || format!("PERSON rows are {rows:?}, known persons {known:?}"));
        let keys = self.world.objects.keys();
        for person in &known {
            let key = object_keys::crop(*person);
            let has_crop = keys.contains(&key) || self.has_lost_variants(*person);
            self.require(has_crop, || format!("{person} has no crop"));
        }
        for key in keys.iter().filter(|key| key.starts_with(object_keys::CROPS)) {
            let is_known = known.iter().any(|person| object_keys::crop(*person) == *key);
            self.require(is_known, || format!("{key} is left of a person that does not exist"));
        }
    }

    /// A crop shows the person.
    fn check_crops(&mut self, identities: &BTreeMap<PersonId, u32>) {
        for (person, identity) in identities {
            let Some(body) = self.world.objects.body(&object_keys::crop(*person)) else { continue };
            let look = String::from_utf8_lossy(&body).into_owned();
            let is_theirs = look.split('.').next() == Some(&identity.to_string());
            self.require(is_theirs, || format!("the crop of {person}, identity {identity}, shows {look:?}"));
        }
    }

    /// Returns whether variants that show the person are those of a version that was never decided, because one after it was rejected: no
    /// crop can be made of them.
    fn has_lost_variants(&self, person: PersonId) -> bool {
        let merges = self.people.merges();
        let shows = |photo: &PhotoProcessed| photo.persons().iter().any(|shown| merges.current(*shown) == person);
        let photos = self.world.decided_photos();
        photos.iter().filter(|(_, _, photo)| shows(photo)).any(|(_, content, photo)| {
            self.world.objects.body(&photo.variants.large.key).is_some_and(|body| body != content.variant("large"))
        })
    }

    /// No signature is stored of a face that no photo shows.
    fn check_leftovers(&mut self) {
        let photos = self.world.decided_photos();
        let photos = photos.iter().map(|(image, _, photo)| (image.clone(), photo.first_face, photo.faces.as_slice()));
        let mut profiles = self.world.decided_profiles();
        let ambiguous: BTreeSet<ImageId> =
            self.world.last_profiles(|_| true).into_values().filter(is_ambiguous).map(|user| user.image_id).collect();
        profiles.retain(|_, user| !ambiguous.contains(&user.image_id));
        let profiles = profiles.values().map(|user| (user.image_id.clone(), user.first_face, user.face.as_slice()));
        let decided: BTreeMap<ImageId, (u16, &[Face])> =
            photos.chain(profiles).map(|(image, first, faces)| (image, (first, faces))).collect();
        let stored = self.world.store.faces();
        for stored in stored.into_iter().filter(|stored| !ambiguous.contains(&stored.face.image)) {
            let (first, faces) = decided.get(&stored.face.image).copied().unwrap_or_default();
            let is_shown = (usize::from(first)..usize::from(first) + faces.len()).contains(&usize::from(stored.face.n));
            // A photo that was decided again with another model keeps its signatures of the former one.
            let is_of_former_model = stored.face.n < first && faces.iter().all(|face| face.model != stored.model);
            let is_shown = is_shown || is_of_former_model;
            self.require(is_shown, || format!("the signature of {} is left ({:?})", stored.face, stored.person));
        }
    }

    /// A face service has the templates of known persons, each once, and no other.
    fn check_face_service(&mut self) {
        let Some(service) = &self.world.faces else { return };
        let templates = service.templates();
        let mut seen = BTreeSet::new();
        for template in &templates {
            let (person, face) = (template.person, &template.face);
            let is_known = self.people.get(person).is_some();
            self.require(is_known, || format!("the face service has a template of {person}, who is forgotten"));
            let is_first = seen.insert((person, face.clone()));
            self.require(is_first, || format!("the face service has {person} {face:?} twice"));
        }
        let merges = self.people.merges().clone();
        let known: Vec<PersonId> = self.people.iter().map(|(person, _)| person).collect();
        match service.kind {
            ServiceKind::Pixels => {
                for person in known {
                    let is_enrolled = templates.iter().any(|template| merges.current(template.person) == person);
                    let is_enrolled = is_enrolled || self.has_lost_variants(person);
                    self.require(is_enrolled, || format!("the face service has no template of {person}"));
                }
            }
            ServiceKind::Signatures => {
                let stored = self.world.store.faces();
                let stored = stored.into_iter().filter(|stored| stored.template);
                let expected: BTreeSet<_> = stored.filter_map(|s| Some((s.person?, Some(s.face)))).collect();
                for (person, face) in expected.symmetric_difference(&seen) {
                    let state = if seen.contains(&(*person, face.clone())) { "a leftover of" } else { "not" };
                    self.list.push(format!("the face service has {state} {person} {face:?}"));
                }
            }
        }
    }

    /// Returns whether two persons may have the same look: one of them was ever merged. After an unmerge, faces decided in between stay
    /// with the person they were decided to be. Merged persons have two looks, and lose the template of one with its photo, while a
    /// worker still matches by it until it restarts.
    fn may_share_look(&self, a: PersonId, b: PersonId) -> bool {
        a == b || self.merged.contains(&a) || self.merged.contains(&b)
    }

    /// The table is what the log projects.
    async fn check_table(&mut self) {
        let (store, clock) = (Arc::new(self.world.store.clone()), Arc::new(self.world.clock.clone()));
        let rebuilder = Rebuilder::new(store, clock, Projection::default(), "simulation".into());
        match rebuilder.run(false, |_| ()).await {
            Ok(drift) => self.list.extend(drift.differences.iter().map(|difference| format!("drift: {difference}"))),
            Err(error) => self.list.push(format!("failed to compare the table with the log: {error}")),
        }
    }
}

/// Returns whether the face of a profile picture was ambiguous.
fn is_ambiguous(profile: &ProfileProcessed) -> bool {
    profile.face.as_ref().is_some_and(|face| face.verdict == Verdict::Ambiguous)
}
