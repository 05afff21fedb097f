//! Whether what came of a run is what had to come of it.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::PersonId;

use super::{Evidence, Fate, Logged, Made, Shown, Truth};

/// Something that must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What must hold.
    pub name: &'static str,
    /// What was looked at.
    pub about: String,
    /// Where it does not hold.
    pub failures: Vec<String>,
}

/// Everything that must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome(pub Vec<Check>);

impl Outcome {
    /// Judges what there is by the truth.
    pub fn of(truth: &Truth, evidence: &Evidence) -> Self {
        let case = Case { truth, evidence };
        let persons = case.persons();
        Self(vec![
            case.finished(),
            case.processed(),
            case.rejected(),
            case.faces(),
            case.nobody_doubled(&persons),
            case.nobody_mixed(&persons),
            case.founded(),
            case.census(),
            case.tags(&persons),
            case.rows(&persons),
            case.pictures(),
            check("no dead letter is ours", String::new(), evidence.letters.clone()),
            case.queue(),
            check("the table is what the log says", String::new(), evidence.drift.clone()),
            case.deliveries(),
            check("no worker ended by itself", String::new(), evidence.deaths.clone()),
        ])
    }

    /// Whether all of it holds.
    pub fn holds(&self) -> bool {
        self.0.iter().all(Check::holds)
    }
}

impl Check {
    /// Whether it holds everywhere.
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
    }
}

/// The truth, and what was found.
struct Case<'a> {
    truth: &'a Truth,
    evidence: &'a Evidence,
}

/// Who the faces of each identity were decided to be, and how often.
type Persons = BTreeMap<usize, BTreeMap<PersonId, usize>>;

impl<'a> Case<'a> {
    fn photos(&self) -> impl Iterator<Item = (&'a Made, &'a Logged, &'a Shown)> {
        let found = self.evidence.logged.iter().zip(&self.evidence.shown);
        self.truth.photos().iter().zip(found).map(|(made, (logged, shown))| (made, logged, shown))
    }

    fn taken(&self) -> impl Iterator<Item = (&'a Made, &'a [usize], &'a Logged, &'a Shown)> {
        self.photos().filter_map(|(made, logged, shown)| match &made.fate {
            Fate::Taken(identities) => Some((made, identities.as_slice(), logged, shown)),
            Fate::Rejected(_) => None,
        })
    }

    fn finished(&self) -> Check {
        check("everything came to its end", String::new(), self.evidence.unfinished.iter().cloned().collect())
    }

    fn processed(&self) -> Check {
        let failures = self.taken().filter_map(|(made, _, logged, _)| match (logged.processed, logged.rejected) {
            (1, 0) => None,
            (0, 0) => Some(format!("{} is lost: the log says nothing of it", made.image)),
            (0, _) => Some(format!("{} was rejected", made.image)),
            (n, 0) => Some(format!("{} was processed {n} times", made.image)),
            (n, m) => Some(format!("{} was processed {n} times and rejected {m} times", made.image)),
        });
        check("every photo is processed once", count(self.taken().count(), "photo"), failures.collect())
    }

    fn rejected(&self) -> Check {
        let damaged = |(made, logged, _): (&'a Made, &'a Logged, &'a Shown)| match made.fate {
            Fate::Rejected(damage) => Some((made, damage, logged)),
            Fate::Taken(_) => None,
        };
        let failures = self.photos().filter_map(damaged).filter_map(|(made, damage, logged)| {
            let (image, what) = (&made.image, damage.name());
            match (logged.processed, logged.rejected) {
                (0, 1) => None,
                (0, 0) => Some(format!("{image} ({what}) is lost: the log says nothing of it")),
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
        for (made, identities, logged, _) in self.taken().filter(|(_, _, logged, _)| logged.processed > 0) {
            faces += identities.len();
            if logged.faces.len() != identities.len() {
                let (seen, drawn) = (logged.faces.len(), identities.len());
                failures.push(format!("{} has {drawn} faces, and {seen} were found", made.image));
            }
            let nobody = logged.faces.iter().filter(|person| person.is_none()).count();
            if nobody > 0 {
                failures.push(format!("{} has {nobody} faces that are nobody's", made.image));
            }
        }
        check("every face is somebody's", count(faces, "face"), failures)
    }

    fn persons(&self) -> Persons {
        let mut persons = Persons::new();
        for (_, identities, logged, _) in self.taken().filter(|(_, all, logged, _)| all.len() == logged.faces.len()) {
            for (identity, person) in identities.iter().zip(&logged.faces) {
                let known = persons.entry(*identity).or_default();
                person.iter().for_each(|person| *known.entry(*person).or_default() += 1);
            }
        }
        persons
    }

    /// Whoever was joined afterwards was doubled before.
    fn nobody_doubled(&self, persons: &Persons) -> Check {
        let doubled = persons.iter().filter(|(_, persons)| persons.len() > 1);
        let failures = doubled.map(|(identity, persons)| format!("identity {identity} is {}", list(persons.keys())));
        check("nobody is two persons", count(persons.len(), "identity"), failures.collect())
    }

    fn nobody_mixed(&self, persons: &Persons) -> Check {
        let mut identities: BTreeMap<PersonId, BTreeSet<usize>> = BTreeMap::new();
        for (identity, person) in persons.iter().flat_map(|(i, persons)| persons.keys().map(move |p| (i, p))) {
            identities.entry(*person).or_default().insert(*identity);
        }
        let mixed = identities.iter().filter(|(_, identities)| identities.len() > 1);
        let failures = mixed.map(|(person, identities)| format!("{person} is identities {}", list(identities)));
        check("no two are one person", count(identities.len(), "person"), failures.collect())
    }

    fn founded(&self) -> Check {
        let seen: BTreeSet<PersonId> =
            self.evidence.logged.iter().flat_map(|logged| logged.faces.iter().flatten()).copied().collect();
        let (mut failures, mut founded) = (Vec::new(), BTreeSet::new());
        let each = |(made, logged, _): (&'a Made, &'a Logged, _)| logged.founded.iter().map(move |p| (made, p));
        for (made, person) in self.photos().flat_map(each) {
            if !founded.insert(person) {
                failures.push(format!("{person} was founded again, with {}", made.image));
            }
            if !seen.contains(person) {
                failures.push(format!("{person}, who was founded with {}, is in no photo", made.image));
            }
        }
        check("everybody who is founded is in a photo", count(founded.len(), "person"), failures)
    }

    /// Where nobody else works, the table has exactly those who were founded, less those who were joined.
    fn census(&self) -> Check {
        let name = "the table has everybody once";
        let Some(census) = &self.evidence.census else {
            return check(name, "not counted, others may work here".into(), Vec::new());
        };
        let founded: BTreeSet<PersonId> =
            self.evidence.logged.iter().flat_map(|logged| &logged.founded).copied().collect();
        let left = founded.iter().filter(|person| !self.evidence.merges.is_absorbed(**person));
        let expected: BTreeSet<String> = left.map(ToString::to_string).collect();
        let (rows, words) = (&census.persons, "has a PERSON row, and the log knows nobody of that name");
        let strangers = rows.difference(&expected).map(|person| format!("{person} {words}"));
        let missing = expected.difference(rows).map(|person| format!("{person} has no PERSON row"));
        let counter = (census.counter != founded.len() as u64)
            .then(|| format!("the counter is {}, and {} persons were founded", census.counter, founded.len()));
        check(name, count(rows.len(), "PERSON row"), strangers.chain(missing).chain(counter).collect())
    }

    /// The persons that a photo has to show: those that its identities mostly are, as they are called now.
    fn expected(&self, identities: &[usize], persons: &Persons) -> BTreeSet<String> {
        let mostly = |identity: &usize| persons.get(identity)?.iter().max_by_key(|(_, faces)| **faces);
        let now = |(person, _): (&PersonId, &usize)| self.evidence.merges.now(*person).to_string();
        identities.iter().filter_map(mostly).map(now).collect()
    }

    fn tags(&self, persons: &Persons) -> Check {
        let (mut failures, mut tags) = (Vec::new(), 0);
        for (made, identities, _, shown) in self.taken() {
            let expected = self.expected(identities, persons);
            tags += expected.len();
            if shown.tagged != expected {
                failures.push(format!("{} is tagged {}, not {}", made.image, list(&shown.tagged), list(&expected)));
            }
        }
        for (made, _, shown) in self.photos().filter(|(made, ..)| matches!(made.fate, Fate::Rejected(_))) {
            if !shown.tagged.is_empty() {
                failures.push(format!("{} is damaged and tagged {}", made.image, list(&shown.tagged)));
            }
        }
        check("every tag is right", count(tags, "tag"), failures)
    }

    fn rows(&self, persons: &Persons) -> Check {
        let failures = self.taken().filter_map(|(made, identities, _, shown)| {
            let (image, expected) = (&made.image, self.expected(identities, persons));
            match &shown.persons {
                None => Some(format!("{image} has no IMAGE row")),
                Some(found) if *found != expected => {
                    Some(format!("the IMAGE row of {image} names {}, not {}", list(found), list(&expected)))
                }
                Some(_) => None,
            }
        });
        check("every IMAGE row names who is in it", count(self.taken().count(), "row"), failures.collect())
    }

    fn pictures(&self) -> Check {
        let mut failures = Vec::new();
        for (made, _, _, shown) in self.taken() {
            if shown.pictures.len() != 2 {
                failures.push(format!("the IMAGE row of {} names {} pictures of 2", made.image, shown.pictures.len()));
            }
            failures.extend(shown.missing.iter().map(|key| format!("{key} is missing")));
        }
        failures.extend(self.evidence.missing_crops.iter().map(|key| format!("{key} is missing")));
        check("all pictures are there", count(self.taken().count() * 2, "variant"), failures)
    }

    fn queue(&self) -> Check {
        let left = self.evidence.left;
        let failures = (left > 0).then(|| format!("{left} messages are not settled")).into_iter().collect();
        check("the queue is empty", String::new(), failures)
    }

    fn deliveries(&self) -> Check {
        let name = "every message is worked off";
        let Some((sent, done)) = self.evidence.deliveries else {
            return check(name, "not counted, others may work here".into(), Vec::new());
        };
        let lost = (done < sent).then(|| format!("{sent} were sent, and workers say that {done} are done"));
        check(name, count(usize::try_from(sent).unwrap_or(usize::MAX), "message"), lost.into_iter().collect())
    }
}

fn check(name: &'static str, about: String, failures: Vec<String>) -> Check {
    Check { name, about, failures }
}

fn count(number: usize, what: &str) -> String {
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {what}s"),
    }
}

fn list<T: ToString>(things: impl IntoIterator<Item = T>) -> String {
    let things: Vec<String> = things.into_iter().map(|thing| thing.to_string()).collect();
    if things.is_empty() { "nobody".into() } else { things.join(", ") }
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
