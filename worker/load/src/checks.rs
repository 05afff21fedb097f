//! Compares the final state with the ground truth.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::PersonId;

use super::{ExpectedPhoto, ExpectedResult, FinalState, GroundTruth, PhotoEvents, StoredPhotoRows};

/// A condition that must hold after the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The condition.
    pub name: &'static str,
    /// What was checked, such as a count.
    pub about: String,
    /// The violations found.
    pub failures: Vec<String>,
}

/// The result of all checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport(pub Vec<Check>);

impl CheckReport {
    /// Runs all checks.
    pub fn of(truth: &GroundTruth, state: &FinalState) -> Self {
        let checker = Checker { truth, state };
        let persons = checker.persons_by_identity();
        Self(vec![
            checker.complete(),
            checker.processed(),
            checker.rejected(),
            checker.faces(),
            checker.no_split_identity(&persons),
            checker.no_mixed_person(&persons),
            checker.new_persons(),
            checker.person_rows(),
            checker.tags(&persons),
            checker.image_rows(&persons),
            checker.objects(),
            check("the run has no dead letters", String::new(), state.dead_letters.clone()),
            checker.queue(),
            check("the table matches the event log", String::new(), state.drift.clone()),
            checker.deliveries(),
            check("no worker exited", String::new(), state.worker_exits.clone()),
        ])
    }

    /// Returns the report of a run that was interrupted; its unfinished photos are no violations.
    pub fn interrupted(reason: String) -> Self {
        Self(vec![check(COMPLETE, String::new(), vec![reason])])
    }

    /// Returns whether all checks passed.
    pub fn has_passed(&self) -> bool {
        self.0.iter().all(Check::has_passed)
    }

    /// Returns the result in words.
    pub fn verdict(&self) -> &'static str {
        if self.has_passed() { "all checks passed" } else { "some checks failed" }
    }
}

impl Check {
    /// Returns whether there are no violations.
    pub fn has_passed(&self) -> bool {
        self.failures.is_empty()
    }
}

const COMPLETE: &str = "the run is complete";
const NOT_ALONE: &str = "not checked, other runs may use this backend";

struct Checker<'a> {
    truth: &'a GroundTruth,
    state: &'a FinalState,
}

/// The persons that the faces of each identity were identified as, with the number of faces.
type PersonsByIdentity = BTreeMap<usize, BTreeMap<PersonId, usize>>;

impl<'a> Checker<'a> {
    fn photos(&self) -> impl Iterator<Item = (&'a ExpectedPhoto, &'a PhotoEvents, &'a StoredPhotoRows)> {
        let found = self.state.events.iter().zip(&self.state.rows);
        self.truth.photos().iter().zip(found).map(|(photo, (events, rows))| (photo, events, rows))
    }

    /// Returns the photos that must be processed, with their identities.
    fn intact(&self) -> impl Iterator<Item = (&'a ExpectedPhoto, &'a [usize], &'a PhotoEvents, &'a StoredPhotoRows)> {
        self.photos().filter_map(|(photo, events, rows)| match &photo.result {
            ExpectedResult::Processed(identities) => Some((photo, identities.as_slice(), events, rows)),
            ExpectedResult::Rejected(_) => None,
        })
    }

    fn complete(&self) -> Check {
        check(COMPLETE, String::new(), self.state.incomplete.iter().cloned().collect())
    }

    fn processed(&self) -> Check {
        let failures = self.intact().filter_map(|(photo, _, events, _)| match (events.processed, events.rejected) {
            (1, 0) => None,
            (0, 0) => Some(format!("{} is lost: it has no event", photo.image)),
            (0, _) => Some(format!("{} was rejected", photo.image)),
            (n, 0) => Some(format!("{} was processed {n} times", photo.image)),
            (n, m) => Some(format!("{} was processed {n} times and rejected {m} times", photo.image)),
        });
        check("every photo is processed once", count(self.intact().count(), "photo"), failures.collect())
    }

    fn rejected(&self) -> Check {
        let damaged = |(photo, events, _): (&'a ExpectedPhoto, &'a PhotoEvents, &'a StoredPhotoRows)| match photo.result
        {
            ExpectedResult::Rejected(damage) => Some((photo, damage, events)),
            ExpectedResult::Processed(_) => None,
        };
        let failures = self.photos().filter_map(damaged).filter_map(|(photo, damage, events)| {
            let (image, what) = (&photo.image, damage.name());
            match (events.processed, events.rejected) {
                (0, 1) => None,
                (0, 0) => Some(format!("{image} ({what}) is lost: it has no event")),
                (0, n) => Some(format!("{image} ({what}) was rejected {n} times")),
                (n, _) => Some(format!("{image} ({what}) was processed {n} times")),
            }
        });
        let files = self.photos().filter_map(damaged).count();
        check("every damaged file is rejected once", count(files, "file"), failures.collect())
    }

    fn faces(&self) -> Check {
        let mut failures = Vec::new();
        let mut faces = 0;
        for (photo, identities, events, _) in self.intact().filter(|(_, _, events, _)| events.processed > 0) {
            faces += identities.len();
            if events.faces.len() != identities.len() {
                let (detected, drawn) = (events.faces.len(), identities.len());
                failures.push(format!("{} has {drawn} faces, and {detected} were detected", photo.image));
            }
            let unidentified = events.faces.iter().filter(|person| person.is_none()).count();
            if unidentified > 0 {
                failures.push(format!("{} has {unidentified} unidentified faces", photo.image));
            }
        }
        check("every face is identified", count(faces, "face"), failures)
    }

    fn persons_by_identity(&self) -> PersonsByIdentity {
        let mut persons = PersonsByIdentity::new();
        let complete = self.intact().filter(|(_, identities, events, _)| identities.len() == events.faces.len());
        for (_, identities, events, _) in complete {
            for (identity, person) in identities.iter().zip(&events.faces) {
                let known = persons.entry(*identity).or_default();
                person.iter().for_each(|person| *known.entry(*person).or_default() += 1);
            }
        }
        persons
    }

    /// Persons that were merged later count as a split, too.
    fn no_split_identity(&self, persons: &PersonsByIdentity) -> Check {
        let split = persons.iter().filter(|(_, persons)| persons.len() > 1);
        let failures = split.map(|(identity, persons)| format!("identity {identity} is {}", list(persons.keys())));
        check("every identity is one person", count(persons.len(), "identity"), failures.collect())
    }

    fn no_mixed_person(&self, persons: &PersonsByIdentity) -> Check {
        let mut identities: BTreeMap<PersonId, BTreeSet<usize>> = BTreeMap::new();
        for (identity, person) in persons.iter().flat_map(|(i, persons)| persons.keys().map(move |p| (i, p))) {
            identities.entry(*person).or_default().insert(*identity);
        }
        let mixed = identities.iter().filter(|(_, identities)| identities.len() > 1);
        let failures = mixed.map(|(person, identities)| format!("{person} is identities {}", list(identities)));
        check("every person is one identity", count(identities.len(), "person"), failures.collect())
    }

    fn new_persons(&self) -> Check {
        let identified: BTreeSet<PersonId> =
            self.state.events.iter().flat_map(|events| events.faces.iter().flatten()).copied().collect();
        let (mut failures, mut allocated) = (Vec::new(), BTreeSet::new());
        let each = |(photo, events, _): (&'a ExpectedPhoto, &'a PhotoEvents, _)| {
            events.new_persons.iter().map(move |p| (photo, p))
        };
        for (photo, person) in self.photos().flat_map(each) {
            if !allocated.insert(person) {
                failures.push(format!("{person} was allocated again for {}", photo.image));
            }
            if !identified.contains(person) {
                failures.push(format!("{person}, allocated for {}, is in no photo", photo.image));
            }
        }
        check("every new person is in a photo", count(allocated.len(), "person"), failures)
    }

    /// Where the run has the backend to itself, the PERSON rows are those of the allocated persons that are not merged.
    fn person_rows(&self) -> Check {
        let name = "the table has one PERSON row per person";
        let Some(person_rows) = &self.state.person_rows else {
            return check(name, NOT_ALONE.into(), Vec::new());
        };
        let allocated: BTreeSet<PersonId> =
            self.state.events.iter().flat_map(|events| &events.new_persons).copied().collect();
        let left = allocated.iter().filter(|person| !self.state.merges.is_absorbed(**person));
        let expected: BTreeSet<String> = left.map(ToString::to_string).collect();
        let rows = &person_rows.persons;
        let unknown = rows
            .difference(&expected)
            .map(|person| format!("{person} has a PERSON row and no event that allocates it"));
        let missing = expected.difference(rows).map(|person| format!("{person} has no PERSON row"));
        let counter = (person_rows.counter != allocated.len() as u64)
            .then(|| format!("the counter is {}, and {} persons were allocated", person_rows.counter, allocated.len()));
        check(name, count(rows.len(), "PERSON row"), unknown.chain(missing).chain(counter).collect())
    }

    /// Returns the persons that a photo of these identities must show: for each identity the most frequent one, after
    /// merges.
    fn expected_persons(&self, identities: &[usize], persons: &PersonsByIdentity) -> BTreeSet<String> {
        let most_frequent = |identity: &usize| persons.get(identity)?.iter().max_by_key(|(_, faces)| **faces);
        let current = |(person, _): (&PersonId, &usize)| self.state.merges.current(*person).to_string();
        identities.iter().filter_map(most_frequent).map(current).collect()
    }

    fn tags(&self, persons: &PersonsByIdentity) -> Check {
        let (mut failures, mut tags) = (Vec::new(), 0);
        for (photo, identities, _, rows) in self.intact() {
            let expected = self.expected_persons(identities, persons);
            tags += expected.len();
            if rows.tagged != expected {
                failures.push(format!("{} is tagged {}, not {}", photo.image, list(&rows.tagged), list(&expected)));
            }
        }
        for (photo, _, rows) in self.photos().filter(|(photo, ..)| matches!(photo.result, ExpectedResult::Rejected(_)))
        {
            if !rows.tagged.is_empty() {
                failures.push(format!("{} is damaged and tagged {}", photo.image, list(&rows.tagged)));
            }
        }
        check("every tag is right", count(tags, "tag"), failures)
    }

    fn image_rows(&self, persons: &PersonsByIdentity) -> Check {
        let failures = self.intact().filter_map(|(photo, identities, _, rows)| {
            let (image, expected) = (&photo.image, self.expected_persons(identities, persons));
            match &rows.persons {
                None => Some(format!("{image} has no IMAGE row")),
                Some(found) if *found != expected => {
                    Some(format!("the IMAGE row of {image} lists {}, not {}", list(found), list(&expected)))
                }
                Some(_) => None,
            }
        });
        check("every IMAGE row lists the right persons", count(self.intact().count(), "row"), failures.collect())
    }

    fn objects(&self) -> Check {
        let mut failures = Vec::new();
        for (photo, _, _, rows) in self.intact() {
            if rows.variants.len() != 2 {
                failures.push(format!("the IMAGE row of {} lists {} variants of 2", photo.image, rows.variants.len()));
            }
            failures.extend(rows.missing.iter().map(|key| format!("{key} is missing")));
        }
        failures.extend(self.state.missing_crops.iter().map(|key| format!("{key} is missing")));
        check("all variants and crops exist", count(self.intact().count() * 2, "variant"), failures)
    }

    fn queue(&self) -> Check {
        let depth = self.state.queue_depth;
        let failures = (depth > 0).then(|| format!("{depth} messages are in the queue")).into_iter().collect();
        check("the queue is empty", String::new(), failures)
    }

    fn deliveries(&self) -> Check {
        let name = "every message is processed";
        let Some((sent, done)) = self.state.deliveries else {
            return check(name, NOT_ALONE.into(), Vec::new());
        };
        let lost = (done < sent).then(|| format!("{sent} messages were sent, and the workers processed {done}"));
        check(name, count(usize::try_from(sent).unwrap_or(usize::MAX), "message"), lost.into_iter().collect())
    }
}

fn check(name: &'static str, about: String, failures: Vec<String>) -> Check {
    Check { name, about, failures }
}

/// Returns the number with the noun in singular or plural.
fn count(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "none".into() } else { items.join(", ") }
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
