//! The index at a service, and what it cannot know yet.
//!
//! A service finds what it was taught after a while. Who is new meanwhile is in the log, and the gallery follows the log: so a
//! face is looked for at the service and among the newest persons of the gallery. Where no signature tells, the service
//! compares the faces themselves.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use sparks_domain::{
    Candidate, FaceBox, FaceId, Identity, ImageId, Merges, PersonId, Search, SeenFace, Similarity, Threshold, Timestamp,
};

use crate::{
    Answers, Clock, Collection, FaceIndex, Found, GalleryIndex, IndexError, Lesson, Looked, Pixels, Portraits, Probe,
    Standing, Store, StoredFace,
};

/// Asks a service who somebody is, and the log who is too new for it.
pub struct ServiceIndex {
    gallery: Arc<GalleryIndex>,
    collection: Arc<dyn Collection>,
    store: Arc<dyn Store>,
    portraits: Portraits,
    clock: Arc<dyn Clock>,
    rules: ServiceRules,
    /// Whom of the newest the service has named.
    found: Mutex<BTreeSet<PersonId>>,
    /// Numbers of persons whom the service knows and the log does not: nobody new may have them.
    foreign: Mutex<BTreeSet<u32>>,
}

/// How a service is asked.
#[derive(Debug, Clone)]
pub struct ServiceRules {
    /// How many candidates a face has.
    pub candidates: usize,
    /// For how long somebody is too new for the service.
    pub recent: Duration,
    /// The similarity from which the service takes two faces for one person.
    pub threshold: Threshold,
    /// The same of the gallery's signatures, where the service has a measure of its own.
    pub gallery_threshold: Option<Threshold>,
    /// What the service learns by.
    pub learns_by: LearnsBy,
}

/// What a service learns by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnsBy {
    /// The picture of a face: one for each person, since each costs a call.
    Pictures,
    /// Signatures: all that persons are known by.
    Signatures,
}

/// What the log knows at one moment.
struct World {
    identity: Identity,
    merges: Arc<Merges>,
    persons: usize,
    /// Those who are nobody any more: what a service still knows of them does not count.
    forgotten: BTreeSet<PersonId>,
    /// Those who may be too new for the service, and the faces they are shown by.
    recent: Vec<(PersonId, FaceId)>,
    /// How the gallery's measure is read.
    likeness: Likeness,
}

/// From the gallery's measure to the service's: the same at the thresholds, and at the ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Likeness {
    pub gallery: f32,
    pub service: f32,
}

impl Likeness {
    pub fn read(self, similarity: f32) -> f32 {
        let Self { gallery, service } = self;
        if gallery == service {
            similarity
        } else if similarity >= gallery {
            service + (similarity - gallery) / (1.0 - gallery).max(f32::EPSILON) * (1.0 - service)
        } else {
            (similarity / gallery.max(f32::EPSILON) * service).max(0.0)
        }
    }
}

/// Questions on their way at once, for one photo.
const AT_ONCE: usize = 4;

impl ServiceIndex {
    /// Asks this service, and this gallery about whoever is new.
    pub fn new(
        gallery: Arc<GalleryIndex>,
        collection: Arc<dyn Collection>,
        store: Arc<dyn Store>,
        portraits: Portraits,
        clock: Arc<dyn Clock>,
        rules: ServiceRules,
    ) -> Self {
        Self { gallery, collection, store, portraits, clock, rules, found: Mutex::default(), foreign: Mutex::default() }
    }

    fn world(&self) -> World {
        let since = self.clock.now().as_millis() - i64::try_from(self.rules.recent.as_millis()).unwrap_or(i64::MAX);
        let known = self.gallery.known();
        let recent = known.met_since(Timestamp::from_millis(since));
        let recent = recent.filter_map(|person| Some((person, known.people.get(person)?.face)));
        let persons = known.people.len();
        let service = self.rules.threshold.among(persons);
        World {
            identity: known.identity.clone(),
            merges: Arc::clone(&known.merges),
            persons,
            forgotten: known.people.forgotten().collect(),
            recent: recent.collect(),
            likeness: Likeness { gallery: self.rules.gallery_threshold.map_or(service, |t| t.among(persons)), service },
        }
    }

    /// Asks about every face that has not been asked about.
    async fn ask(&self, looked: &Looked, answers: &mut Answers) -> Result<(), IndexError> {
        // Who is found from now on may not be in these answers.
        answers.found.get_or_insert_with(|| self.found().clone());
        let unasked = (0..looked.faces.len()).filter(|place| !answers.nearest.contains_key(place));
        let probes = unasked.filter_map(|place| Some((place, looked.probe(place)?)));
        let asked = stream::iter(probes.collect::<Vec<_>>())
            .map(|(place, probe)| async move {
                // One alone does not tell whether there is another nearly as near.
                Ok((place, self.collection.nearest(&probe, self.rules.candidates.max(2)).await?))
            })
            .buffer_unordered(AT_ONCE)
            .try_for_each(|(place, nearest)| {
                self.found().extend(nearest.iter().map(|near| near.person));
                answers.nearest.insert(place, nearest);
                async { Ok(()) }
            });
        asked.await
    }

    /// Whom the face is like by its signature: of the newest, or where the service has the same measure, of all, so that nobody is
    /// founded again whom it was never taught.
    fn by_signature(&self, face: &SeenFace, world: &World) -> Vec<Candidate> {
        let Some(signature) = &face.signature else { return Vec::new() };
        if self.rules.learns_by == LearnsBy::Signatures {
            return self.gallery.known().gallery.nearest(&face.model, signature, self.rules.candidates.max(2));
        }
        let recent: Vec<PersonId> = world.recent.iter().map(|(person, _)| *person).collect();
        let mut near = self.gallery.known().gallery.among(&face.model, signature, &recent);
        near.iter_mut().for_each(|near| near.similarity = world.likeness.read(near.similarity));
        near
    }

    /// Whom of the newest the face is like where no signature tells, by the service's own eyes.
    async fn compare(
        &self,
        place: usize,
        looked: &Looked,
        world: &World,
        answers: &mut Answers,
    ) -> Result<Vec<Candidate>, IndexError> {
        let (Some(face), Some(probe)) = (looked.faces.get(place), looked.probe(place)) else { return Ok(Vec::new()) };
        if self.rules.learns_by != LearnsBy::Pictures {
            return Ok(Vec::new());
        }
        let untold = self.untold(face, world, answers);
        let mut others: Vec<(PersonId, Probe)> = Vec::new();
        for (person, shown_by) in &untold {
            if answers.compared.contains_key(&(place, *person)) {
                continue;
            }
            match self.portraits.of(*person, shown_by).await? {
                Some(portrait) => others.push((*person, portrait)),
                None => drop(answers.compared.insert((place, *person), None)),
            }
        }
        if !others.is_empty() {
            let alike = self.collection.compare(&probe, &others).await?;
            for (person, _) in &others {
                let alike = alike.iter().find(|alike| alike.person == *person).map(|alike| alike.similarity);
                answers.compared.insert((place, *person), alike);
            }
        }
        let compared = untold.iter().filter_map(|(person, _)| {
            let similarity = (*answers.compared.get(&(place, *person))?)?;
            Some(Candidate { person: *person, similarity })
        });
        Ok(compared.collect())
    }

    /// The newest whom neither the service has named nor a signature tells from the face.
    fn untold(&self, face: &SeenFace, world: &World, answers: &Answers) -> Vec<(PersonId, FaceId)> {
        let known = self.gallery.known();
        let is_told = |person: PersonId| {
            face.signature.is_some() && known.gallery.knows(&face.model, person)
                || answers.found.as_ref().is_some_and(|found| found.contains(&person))
        };
        world.recent.iter().filter(|(person, _)| !is_told(*person)).cloned().collect()
    }

    /// Remembers whom only the service knows; says whom it has met so far.
    fn foreign(&self, answers: &Answers) -> BTreeSet<u32> {
        let known = self.gallery.known();
        let named = answers.nearest.values().flatten().map(|near| near.person);
        let mut foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        foreign.extend(named.filter(|person| !known.people.has_met(*person)).map(PersonId::number));
        foreign.clone()
    }

    fn found(&self) -> std::sync::MutexGuard<'_, BTreeSet<PersonId>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These persons, and all who were joined into them: the service knows nothing of that.
    fn everybody(&self, persons: &[PersonId]) -> Vec<PersonId> {
        let merges = self.gallery.merges();
        let everybody: BTreeSet<PersonId> = persons
            .iter()
            .flat_map(|person| merges.members(merges.now(*person)))
            .chain(persons.iter().copied())
            .collect();
        everybody.into_iter().collect()
    }

    /// What the service is to learn of these.
    async fn lessons(&self, lessons: &[Lesson]) -> Result<Vec<Lesson>, IndexError> {
        if self.rules.learns_by == LearnsBy::Pictures {
            return Ok(lessons.iter().filter(|lesson| lesson.is_first).cloned().collect());
        }
        let faces: Vec<FaceId> = lessons.iter().map(|lesson| lesson.face.clone()).collect();
        let kept = self.store.signatures(&faces).await?;
        let with_signature = |lesson: &Lesson| {
            let kept = kept.iter().find(|kept| kept.face == lesson.face)?;
            let (model, signature) = (kept.model.clone(), Some(kept.signature.clone()));
            Some(Lesson { probe: Probe { model, signature, ..lesson.probe.clone() }, ..lesson.clone() })
        };
        Ok(lessons.iter().filter_map(with_signature).collect())
    }
}

#[async_trait]
impl FaceIndex for ServiceIndex {
    async fn search(&self, looked: &Looked) -> Result<Found, IndexError> {
        // Before the service is asked: whoever is numbered from now on makes the commit fail.
        let world = self.world();
        let mut answers = looked.answers.lock().await;
        self.ask(looked, &mut answers).await?;
        let mut candidates = Vec::with_capacity(looked.faces.len());
        for (place, face) in looked.faces.iter().enumerate() {
            let mut near = answers.nearest.get(&place).cloned().unwrap_or_default();
            near.retain(|near| !world.forgotten.contains(&near.person));
            near.extend(self.by_signature(face, &world));
            if !near.iter().any(|near| near.similarity >= world.likeness.service) {
                near.extend(self.compare(place, looked, &world, &mut answers).await?);
            }
            candidates.push(nearest(near, &world.merges, self.rules.candidates.max(2)));
        }
        let alike = Search::among(looked.faces.iter().map(|face| (face.model.as_str(), face.signature.as_ref())));
        let alike =
            alike.into_iter().map(|pair| Similarity { similarity: world.likeness.read(pair.similarity), ..pair });
        let search = Search { candidates, alike: alike.collect(), persons: world.persons };
        Ok(Found { search, identity: Identity { taken: self.foreign(&answers), ..world.identity } })
    }

    async fn refresh(&self) -> Result<(), IndexError> {
        self.gallery.refresh().await?;
        let recent: BTreeSet<PersonId> = self.world().recent.into_iter().map(|(person, _)| person).collect();
        self.portraits.retain(&recent);
        self.found().retain(|person| recent.contains(person));
        Ok(())
    }

    fn merges(&self) -> Arc<Merges> {
        self.gallery.merges()
    }

    fn standing(&self, person: PersonId) -> Standing {
        self.gallery.standing(person)
    }

    fn identity(&self) -> Identity {
        self.gallery.identity()
    }

    async fn learn(&self, lessons: &[Lesson], again: bool) -> Result<bool, IndexError> {
        let lessons = self.lessons(lessons).await?;
        if !lessons.is_empty() {
            self.collection.learn(&lessons, again).await?;
        }
        Ok(!lessons.is_empty())
    }

    async fn relearn(&self, lesson: &Lesson) -> Result<(), IndexError> {
        match self.rules.learns_by {
            LearnsBy::Pictures => self.collection.replace(lesson, &self.everybody(&[lesson.person])).await,
            LearnsBy::Signatures => Ok(()),
        }
    }

    async fn promote(&self, faces: &[FaceId]) -> Result<(), IndexError> {
        if self.rules.learns_by == LearnsBy::Pictures || faces.is_empty() {
            return Ok(());
        }
        let lesson = |kept: StoredFace| {
            let nothing = Arc::new(Pixels { width: 0, height: 0, rgb: Vec::new() });
            let (bounds, others) = (FaceBox { x: 0.0, y: 0.0, width: 0.0, height: 0.0 }, Vec::new());
            let probe = Probe { pixels: nothing, bounds, others, model: kept.model, signature: Some(kept.signature) };
            Some(Lesson { person: kept.person?, face: kept.face, is_first: false, probe })
        };
        let lessons: Vec<Lesson> = self.store.signatures(faces).await?.into_iter().filter_map(lesson).collect();
        if lessons.is_empty() { Ok(()) } else { self.collection.learn(&lessons, true).await }
    }

    async fn unlearn(&self, photo: &ImageId, persons: &[PersonId]) -> Result<(), IndexError> {
        self.collection.unlearn(photo, &self.everybody(persons)).await
    }

    async fn forget(&self, persons: &[PersonId]) -> Result<(), IndexError> {
        self.found().retain(|person| !persons.contains(person));
        self.collection.forget(&self.everybody(persons)).await
    }

    fn is_paid(&self) -> bool {
        true
    }

    async fn check(&self) -> Result<(), IndexError> {
        self.collection.check().await
    }
}

/// The `most` nearest as they are now, nobody twice, the lower number first where equally near.
pub(crate) fn nearest(near: Vec<Candidate>, merges: &Merges, most: usize) -> Vec<Candidate> {
    let mut near: Vec<Candidate> =
        near.into_iter().map(|near| Candidate { person: merges.now(near.person), ..near }).collect();
    near.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.person.cmp(&b.person)));
    let mut seen = BTreeSet::new();
    near.retain(|near| seen.insert(near.person));
    near.truncate(most);
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_keeps_thresholds_and_ends() {
        let likeness = Likeness { gallery: 0.6, service: 0.8 };
        let read = |similarity| (likeness.read(similarity) * 1000.0).round() / 1000.0;
        assert_eq!([-0.5, 0.0, 0.3, 0.6, 0.8, 1.0].map(read), [0.0, 0.0, 0.4, 0.8, 0.9, 1.0]);
        assert_eq!(Likeness { gallery: 0.6, service: 0.6 }.read(0.123), 0.123);
    }

    #[test]
    fn the_nearest_are_who_they_are_now() {
        let person = |number| PersonId::new(number).expect("a number");
        let near = |number, similarity| Candidate { person: person(number), similarity };
        let found = nearest(vec![near(3, 0.5), near(1, 0.9), near(3, 0.95), near(2, 0.9)], &Merges::default(), 3);
        assert_eq!(found, [near(3, 0.95), near(1, 0.9), near(2, 0.9)]);
    }
}
