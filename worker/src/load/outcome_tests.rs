//! The check can fail, and says what is wrong.

use sparks_domain::Timestamp;

use super::*;
use crate::{
    load::{Census, Plan, Wish},
    share::Share,
};

/// A run of which everything holds: identity n is person n + 1.
struct Run {
    truth: Truth,
    evidence: Evidence,
}

fn person(number: usize) -> PersonId {
    PersonId::new(u32::try_from(number).unwrap()).unwrap()
}

impl Run {
    fn new() -> Self {
        let corrupt: Share = "10%".parse().unwrap();
        let wish = Wish {
            photos: 40,
            identities: 6,
            faces_per_photo: 3,
            duplicates: Share::default(),
            corrupt,
            shuffle: false,
            seed: 3,
        };
        let uploader = "load-1@sparks.invalid".parse().unwrap();
        let truth = Truth::of(&Plan::of(&wish), uploader, Timestamp::from_millis(1_754_040_268_957));
        let (mut logged, shown): (Vec<_>, _) = truth.photos().iter().map(|made| (logged(made), shown(made))).unzip();
        let mut known = BTreeSet::new();
        for logged in &mut logged {
            logged.founded = logged.faces.iter().flatten().copied().filter(|person| known.insert(*person)).collect();
        }
        let persons = known.iter().map(ToString::to_string).collect();
        let census = Some(Census { persons, counter: 6 });
        let evidence = Evidence { logged, shown, census, deliveries: Some((40, 40)), ..Evidence::default() };
        Self { truth, evidence }
    }

    /// The number of a photo in which so many are, all of whom are known already.
    fn photo(&self, faces: usize) -> usize {
        let fits = |logged: &Logged| logged.faces.len() == faces && logged.founded.is_empty();
        self.evidence.logged.iter().position(fits).unwrap()
    }

    fn damaged(&self) -> usize {
        self.truth.photos().iter().position(|made| matches!(made.fate, Fate::Rejected(_))).unwrap()
    }

    fn image(&self, n: usize) -> String {
        self.truth.photos()[n].image.to_string()
    }

    /// Exactly these checks fail, and one of their failures says this.
    fn fails(&self, names: &[&str], words: &str) {
        let outcome = Outcome::of(&self.truth, &self.evidence);
        assert!(!outcome.holds());
        let failed: Vec<&Check> = outcome.0.iter().filter(|check| !check.holds()).collect();
        assert_eq!(failed.iter().map(|check| check.name).collect::<Vec<_>>(), names, "{failed:#?}");
        let said = failed.iter().flat_map(|check| &check.failures).any(|failure| failure.contains(words));
        assert!(said, "nobody says {words:?}: {failed:#?}");
    }
}

fn logged(made: &Made) -> Logged {
    let decided = Some(Timestamp::from_millis(1_754_040_269_000));
    match &made.fate {
        Fate::Taken(identities) => {
            let faces = identities.iter().map(|identity| Some(person(identity + 1))).collect();
            Logged { processed: 1, decided, faces, ..Logged::default() }
        }
        Fate::Rejected(_) => Logged { rejected: 1, decided, ..Logged::default() },
    }
}

fn shown(made: &Made) -> Shown {
    let Fate::Taken(identities) = &made.fate else {
        return Shown { persons: Some(BTreeSet::new()), ..Shown::default() };
    };
    let persons: BTreeSet<String> = identities.iter().map(|identity| person(identity + 1).to_string()).collect();
    let picture = |size: &str| format!("processed/{}_{size}.webp", made.image);
    Shown {
        persons: Some(persons.clone()),
        tagged: persons,
        pictures: vec![picture("large"), picture("medium")],
        missing: Vec::new(),
    }
}

#[test]
fn what_is_right_is_found_right() {
    let run = Run::new();
    let outcome = Outcome::of(&run.truth, &run.evidence);
    assert!(outcome.holds(), "{outcome:#?}");
    assert!(outcome.0.iter().any(|check| check.about == "6 identities"), "{outcome:#?}");
}

#[test]
fn a_lost_photo_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.evidence.logged[n] = Logged::default();
    run.fails(&["every photo is processed once"], &format!("{} is lost", run.image(n)));
}

#[test]
fn a_photo_that_is_processed_twice_is_named() {
    let mut run = Run::new();
    let n = run.photo(2);
    run.evidence.logged[n].processed = 2;
    run.fails(&["every photo is processed once"], &format!("{} was processed 2 times", run.image(n)));
}

#[test]
fn a_damaged_file_that_is_taken_or_lost_or_rejected_twice_is_named() {
    for (processed, rejected, words) in [(1, 0, "was processed 1 times"), (0, 0, "is lost"), (0, 2, "was rejected 2")] {
        let mut run = Run::new();
        let n = run.damaged();
        (run.evidence.logged[n].processed, run.evidence.logged[n].rejected) = (processed, rejected);
        run.fails(&["every damaged file is rejected once"], words);
    }
}

#[test]
fn somebody_who_is_two_persons_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    let Fate::Taken(identities) = run.truth.photos()[n].fate.clone() else { unreachable!() };
    run.evidence.logged[n].faces = vec![Some(person(99))];
    run.evidence.shown[n].persons = Some(["person99".to_owned()].into());
    run.evidence.shown[n].tagged = ["person99".to_owned()].into();
    let names = ["nobody is two persons", "every tag is right", "every IMAGE row names who is in it"];
    run.fails(&names, &format!("identity {} is person{}, person99", identities[0], identities[0] + 1));
}

#[test]
fn two_who_are_one_person_are_named() {
    let mut run = Run::new();
    for logged in &mut run.evidence.logged {
        for face in logged.faces.iter_mut().filter(|face| **face == Some(person(2))) {
            *face = Some(person(1));
        }
        logged.founded.retain(|founded| *founded != person(2));
    }
    for shown in &mut run.evidence.shown {
        for names in [&mut shown.tagged].into_iter().chain(&mut shown.persons) {
            if names.remove("person2") {
                names.insert("person1".into());
            }
        }
    }
    let census = run.evidence.census.as_mut().unwrap();
    (census.counter, _) = (5, census.persons.remove("person2"));
    run.fails(&["no two are one person"], "person1 is identities 0, 1");
}

#[test]
fn somebody_who_is_founded_and_in_no_photo_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.evidence.logged[n].founded = vec![person(7)];
    let census = run.evidence.census.as_mut().unwrap();
    (census.counter, _) = (7, census.persons.insert("person7".into()));
    let words = format!("person7, who was founded with {}, is in no photo", run.image(n));
    run.fails(&["everybody who is founded is in a photo"], &words);
}

#[test]
fn somebody_who_is_founded_twice_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.evidence.logged[n].founded = vec![person(1)];
    let words = format!("person1 was founded again, with {}", run.image(n));
    run.fails(&["everybody who is founded is in a photo"], &words);
}

#[test]
fn persons_whom_the_log_does_not_know_are_named_where_all_are_ours() {
    let run = |without: &str, with: &str, counter: u64| {
        let mut run = Run::new();
        let census = run.evidence.census.as_mut().unwrap();
        census.persons.remove(without);
        census.persons.insert(with.to_owned());
        census.counter = counter;
        run
    };
    let name = ["the table has everybody once"];
    let more = run("", "person7", 6);
    more.fails(&name, "person7 has a PERSON row, and the log knows nobody of that name");
    run("person3", "person1", 6).fails(&name, "person3 has no PERSON row");
    run("", "person1", 8).fails(&name, "the counter is 8, and 6 persons were founded");
    let among_others = Evidence { census: None, ..more.evidence };
    assert!(Outcome::of(&more.truth, &among_others).holds(), "others may have put them there");
}

#[test]
fn a_wrong_tag_is_named() {
    let mut run = Run::new();
    let n = run.photo(2);
    run.evidence.shown[n].tagged.insert("person7".into());
    run.fails(&["every tag is right"], &format!("{} is tagged", run.image(n)));
    let mut run = Run::new();
    run.evidence.shown[n].tagged.pop_first();
    run.fails(&["every tag is right"], &run.image(n));
    let (mut run, damaged) = (Run::new(), Run::new().damaged());
    run.evidence.shown[damaged].tagged.insert("person1".into());
    run.fails(&["every tag is right"], "is damaged and tagged person1");
}

#[test]
fn a_row_that_names_others_or_is_gone_is_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.evidence.shown[n].persons = Some(BTreeSet::new());
    run.fails(&["every IMAGE row names who is in it"], "names nobody, not person");
    run.evidence.shown[n].persons = None;
    run.fails(&["every IMAGE row names who is in it"], "has no IMAGE row");
}

#[test]
fn a_face_that_is_not_found_or_nobodys_is_named() {
    let mut run = Run::new();
    let n = run.photo(3);
    run.evidence.logged[n].faces[1] = None;
    run.fails(&["every face is somebody's"], "has 1 faces that are nobody's");
    run.evidence.logged[n].faces.truncate(1);
    run.fails(&["every face is somebody's"], "has 3 faces, and 1 were found");
}

#[test]
fn missing_pictures_are_named() {
    let mut run = Run::new();
    let n = run.photo(1);
    run.evidence.shown[n].missing = vec!["processed/x_large.webp".into()];
    run.fails(&["all pictures are there"], "processed/x_large.webp is missing");
    let mut run = Run::new();
    run.evidence.missing_crops = vec!["persons/person1.jpg".into()];
    run.fails(&["all pictures are there"], "persons/person1.jpg is missing");
    let mut run = Run::new();
    run.evidence.shown[n].pictures.pop();
    run.fails(&["all pictures are there"], "names 1 pictures of 2");
}

#[test]
fn everything_else_that_is_wrong_is_told_as_it_was_found() {
    let mut run = Run::new();
    run.evidence.letters = vec!["000000000007: there is no IMAGE row".into()];
    run.fails(&["no dead letter is ours"], "000000000007");
    let mut run = Run::new();
    run.evidence.left = 3;
    run.fails(&["the queue is empty"], "3 messages are not settled");
    let mut run = Run::new();
    run.evidence.drift = vec!["a / b: the row is missing".into()];
    run.fails(&["the table is what the log says"], "a / b");
    let mut run = Run::new();
    run.evidence.deliveries = Some((40, 39));
    run.fails(&["every message is worked off"], "40 were sent, and workers say that 39 are done");
    let mut run = Run::new();
    run.evidence.deaths = vec!["worker 2 ended (signal: 9)".into()];
    run.fails(&["no worker ended by itself"], "worker 2");
    let mut run = Run::new();
    run.evidence.unfinished = Some("nothing happened any more".into());
    run.fails(&["everything came to its end"], "nothing happened");
}
