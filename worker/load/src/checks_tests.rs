//! Every check fails on its violation and names it.

use sparks_domain::Timestamp;

use super::*;
use crate::{LoadSpec, PersonRows, Plan};

/// A run that passes: identity n is person n + 1.
struct Run {
    truth: GroundTruth,
    state: FinalState,
}

fn person(number: usize) -> PersonId {
    PersonId::new(u32::try_from(number).unwrap()).unwrap()
}

impl Run {
    fn new() -> Self {
        let spec = LoadSpec {
            photos: 40,
            identities: 6,
            faces_per_photo: 3,
            duplicates: 0,
            corrupt: 4,
            shuffle: false,
            seed: 3,
        };
        let uploader = "load-1@sparks.invalid".parse().unwrap();
        let truth = GroundTruth::of(&Plan::of(&spec), uploader, Timestamp::from_millis(1_754_040_268_957));
        let (mut events, rows): (Vec<_>, _) = truth.photos().iter().map(|photo| (events(photo), rows(photo))).unzip();
        let mut known = BTreeSet::new();
        for events in &mut events {
            let new = events.faces.iter().flatten().copied().filter(|person| known.insert(*person));
            events.new_persons = new.collect();
        }
        let persons = known.iter().map(ToString::to_string).collect();
        let person_rows = Some(PersonRows { persons, counter: 6 });
        let state = FinalState { events, rows, person_rows, deliveries: Some((40, 40)), ..FinalState::default() };
        Self { truth, state }
    }

    /// Returns the number of a photo with this many faces and no new person.
    fn photo(&self, faces: usize) -> usize {
        let fits = |events: &PhotoEvents| events.faces.len() == faces && events.new_persons.is_empty();
        self.state.events.iter().position(fits).unwrap()
    }

    fn damaged(&self) -> usize {
        self.truth.photos().iter().position(|photo| matches!(photo.result, ExpectedResult::Rejected(_))).unwrap()
    }

    fn image(&self, n: usize) -> String {
        self.truth.photos()[n].image.to_string()
    }

    /// Asserts that exactly these checks fail, and that one of the failures contains this text.
    fn fails(&self, names: &[&str], text: &str) {
        let report = CheckReport::of(&self.truth, &self.state);
        assert!(!report.has_passed());
        let failed: Vec<&Check> = report.0.iter().filter(|check| !check.has_passed()).collect();
        assert_eq!(failed.iter().map(|check| check.name).collect::<Vec<_>>(), names, "{failed:#?}");
        let is_named = failed.iter().flat_map(|check| &check.failures).any(|failure| failure.contains(text));
        assert!(is_named, "no failure contains {text:?}: {failed:#?}");
    }
}

fn events(photo: &ExpectedPhoto) -> PhotoEvents {
    let decided_at = Some(Timestamp::from_millis(1_754_040_269_000));
    match &photo.result {
        ExpectedResult::Processed(identities) => {
            let faces = identities.iter().map(|identity| Some(person(identity + 1))).collect();
            PhotoEvents { processed: 1, decided_at, faces, ..PhotoEvents::default() }
        }
        ExpectedResult::Rejected(_) => PhotoEvents { rejected: 1, decided_at, ..PhotoEvents::default() },
    }
}

fn rows(photo: &ExpectedPhoto) -> StoredPhotoRows {
    let ExpectedResult::Processed(identities) = &photo.result else {
        return StoredPhotoRows { persons: Some(BTreeSet::new()), ..StoredPhotoRows::default() };
    };
    let persons: BTreeSet<String> = identities.iter().map(|identity| person(identity + 1).to_string()).collect();
    StoredPhotoRows {
        persons: Some(persons.clone()),
        tagged: persons,
        variants: sparks_domain::object_keys::variants(&photo.image).to_vec(),
        missing: Vec::new(),
    }
}

#[test]
fn a_correct_run_passes() {
    let run = Run::new();
    let report = CheckReport::of(&run.truth, &run.state);
    assert!(report.has_passed(), "{report:#?}");
    assert!(report.0.iter().any(|check| check.about == "6 identities"), "{report:#?}");
}

#[test]
fn a_lost_photo_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.state.events[n] = PhotoEvents::default();
    run.fails(&["every photo is processed once"], &format!("{} is lost", run.image(n)));
}

#[test]
fn a_photo_that_is_processed_twice_is_named() {
    let mut run = Run::new();
    let n = run.photo(2);
    run.state.events[n].processed = 2;
    run.fails(&["every photo is processed once"], &format!("{} was processed 2 times", run.image(n)));
}

#[test]
fn a_damaged_file_that_is_processed_or_lost_or_rejected_twice_is_named() {
    for (processed, rejected, text) in [(1, 0, "was processed 1 times"), (0, 0, "is lost"), (0, 2, "was rejected 2")] {
        let mut run = Run::new();
        let n = run.damaged();
        (run.state.events[n].processed, run.state.events[n].rejected) = (processed, rejected);
        run.fails(&["every damaged file is rejected once"], text);
    }
}

#[test]
fn an_identity_that_is_two_persons_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    let ExpectedResult::Processed(identities) = run.truth.photos()[n].result.clone() else { unreachable!() };
    run.state.events[n].faces = vec![Some(person(99))];
    run.state.rows[n].persons = Some(["person99".to_owned()].into());
    run.state.rows[n].tagged = ["person99".to_owned()].into();
    let names = ["every identity is one person", "every tag is right", "every IMAGE row lists the right persons"];
    run.fails(&names, &format!("identity {} is person{}, person99", identities[0], identities[0] + 1));
}

#[test]
fn a_person_of_two_identities_is_named() {
    let mut run = Run::new();
    for events in &mut run.state.events {
        for face in events.faces.iter_mut().filter(|face| **face == Some(person(2))) {
            *face = Some(person(1));
        }
        events.new_persons.retain(|new| *new != person(2));
    }
    for rows in &mut run.state.rows {
        for names in [&mut rows.tagged].into_iter().chain(&mut rows.persons) {
            if names.remove("person2") {
                names.insert("person1".into());
            }
        }
    }
    let person_rows = run.state.person_rows.as_mut().unwrap();
    (person_rows.counter, _) = (5, person_rows.persons.remove("person2"));
    run.fails(&["every person is one identity"], "person1 is identities 0, 1");
}

#[test]
fn a_new_person_in_no_photo_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.state.events[n].new_persons = vec![person(7)];
    let person_rows = run.state.person_rows.as_mut().unwrap();
    (person_rows.counter, _) = (7, person_rows.persons.insert("person7".into()));
    let text = format!("person7, allocated for {}, is in no photo", run.image(n));
    run.fails(&["every new person is in a photo"], &text);
}

#[test]
fn a_person_that_is_allocated_twice_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.state.events[n].new_persons = vec![person(1)];
    let text = format!("person1 was allocated again for {}", run.image(n));
    run.fails(&["every new person is in a photo"], &text);
}

#[test]
fn person_rows_without_an_event_are_named_where_the_run_is_alone() {
    let run = |without: &str, with: &str, counter: u64| {
        let mut run = Run::new();
        let person_rows = run.state.person_rows.as_mut().unwrap();
        person_rows.persons.remove(without);
        person_rows.persons.insert(with.to_owned());
        person_rows.counter = counter;
        run
    };
    let name = ["the table has one PERSON row per person"];
    let more = run("", "person7", 6);
    more.fails(&name, "person7 has a PERSON row and no event that allocates it");
    run("person3", "person1", 6).fails(&name, "person3 has no PERSON row");
    run("", "person1", 8).fails(&name, "the counter is 8, and 6 persons were allocated");
    let not_alone = FinalState { person_rows: None, ..more.state };
    assert!(CheckReport::of(&more.truth, &not_alone).has_passed(), "the row may belong to another run");
}

#[test]
fn a_wrong_tag_is_named() {
    let mut run = Run::new();
    let n = run.photo(2);
    run.state.rows[n].tagged.insert("person7".into());
    run.fails(&["every tag is right"], &format!("{} is tagged", run.image(n)));
    let mut run = Run::new();
    run.state.rows[n].tagged.pop_first();
    run.fails(&["every tag is right"], &run.image(n));
    let (mut run, damaged) = (Run::new(), Run::new().damaged());
    run.state.rows[damaged].tagged.insert("person1".into());
    run.fails(&["every tag is right"], "is damaged and tagged person1");
}

#[test]
fn a_wrong_or_missing_image_row_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.state.rows[n].persons = Some(BTreeSet::new());
    run.fails(&["every IMAGE row lists the right persons"], "lists none, not person");
    run.state.rows[n].persons = None;
    run.fails(&["every IMAGE row lists the right persons"], "has no IMAGE row");
}

#[test]
fn a_face_that_is_undetected_or_unidentified_is_named() {
    let mut run = Run::new();
    let n = run.photo(3);
    run.state.events[n].faces[1] = None;
    run.fails(&["every face is identified"], "has 1 unidentified faces");
    run.state.events[n].faces.truncate(1);
    run.fails(&["every face is identified"], "has 3 faces, and 1 were detected");
}

#[test]
fn missing_objects_are_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.state.rows[n].missing = vec!["processed/x_large.webp".into()];
    run.fails(&["all variants and crops exist"], "processed/x_large.webp is missing");
    let mut run = Run::new();
    run.state.missing_crops = vec!["persons/person1.jpg".into()];
    run.fails(&["all variants and crops exist"], "persons/person1.jpg is missing");
    let mut run = Run::new();
    run.state.rows[n].variants.pop();
    run.fails(&["all variants and crops exist"], "lists 1 variants of 2");
}

#[test]
fn all_other_violations_are_named() {
    let mut run = Run::new();
    run.state.dead_letters = vec!["000000000007: there is no IMAGE row".into()];
    run.fails(&["the run has no dead letters"], "000000000007");
    let mut run = Run::new();
    run.state.queue_depth = 3;
    run.fails(&["the queue is empty"], "3 messages are in the queue");
    let mut run = Run::new();
    run.state.drift = vec!["a / b: the row is missing".into()];
    run.fails(&["the table matches the event log"], "a / b");
    let mut run = Run::new();
    run.state.deliveries = Some((40, 39));
    run.fails(&["every message is processed"], "40 messages were sent, and the workers processed 39");
    let mut run = Run::new();
    run.state.worker_exits = vec!["worker 2 exited (signal: 9)".into()];
    run.fails(&["no worker exited"], "worker 2");
    let mut run = Run::new();
    run.state.incomplete = Some("timeout: no progress".into());
    run.fails(&["the run is complete"], "no progress");
}
