//! Properties that hold for every sequence of events.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use sparks_domain::{
    Event, ImageId, Key, Merges, Mutation, PersonRegistry, PhotoState, Projection, ProjectionContext, RecordedEvent,
    Refusal, Timestamp, drift,
};

use crate::{
    given_when_then::{ada, given, good_face, no_events, person, photo, processed, small_face},
    memory_table::Table,
    simulation::{Simulation, Step, image, steps},
};

fn bounded() -> ProptestConfig {
    ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() }
}

/// Returns the event as it is read back from the log.
fn read_back(recorded: &RecordedEvent) -> RecordedEvent {
    let event = Event::parse(recorded.event.event_type(), &recorded.event.to_data()).expect("a readable event");
    RecordedEvent { event, ..recorded.clone() }
}

fn states(log: &[RecordedEvent]) -> BTreeMap<ImageId, PhotoState> {
    let mut states = BTreeMap::new();
    for recorded in log {
        if let Some(image) = recorded.event.image() {
            let state = PhotoState::evolve(states.remove(image), recorded.seq, &recorded.event);
            states.insert(image.clone(), state.expect("a state"));
        }
    }
    states
}

/// Rebuilds all projected rows from the log alone, persons first.
fn rebuild(log: &[RecordedEvent], mut table: Table) -> Table {
    let log: Vec<_> = log.iter().map(read_back).collect();
    let (states, projection) = (states(&log), Projection::default());
    let mut registry = PersonRegistry::default();
    for RecordedEvent { when, event, .. } in &log {
        registry.evolve(event, *when);
    }
    let merges = registry.merges();
    for recorded in &log {
        if let Some(image) = recorded.event.image() {
            table.repair(&projection.reproject(recorded, &states[image], merges));
        }
    }
    let persons: Vec<_> = registry.iter().map(|(id, person)| Projection::person_row(id, &person)).collect();
    table.repair(&persons);
    let removed = merges.absorbed().map(|(id, _)| id).chain(registry.forgotten());
    let removed: Vec<_> = removed.map(|id| Mutation::Delete { key: Key::person(id) }).collect();
    table.repair(&removed);
    if registry.highest_number() > 0 {
        table.repair(&[Projection::counter_row(registry.highest_number())]);
    }
    table
}

/// Returns the table of an earlier time with the platform's changes since: created and deleted rows of photos.
fn with_platform_changes(mut table: Table, earlier: &Simulation, now: &Simulation) -> Table {
    for recorded in &now.log[earlier.log.len()..] {
        if let Event::PhotoDeleted(deleted) = &recorded.event {
            table.rows.remove(&Key::image(&deleted.image_id, &ada()));
        }
    }
    for (key, row) in &now.platform.rows {
        table.rows.entry(key.clone()).or_insert_with(|| row.clone());
    }
    table.rows.insert(Key::limit(&ada()), now.platform.rows[&Key::limit(&ada())].clone());
    table
}

/// Photos with new persons, different ones in each photo, and some known persons.
fn unrelated_photos() -> impl Strategy<Value = Vec<Vec<Event>>> {
    let photo_of = (0..3_usize, prop::collection::vec(1..6_u32, 0..3));
    prop::collection::vec(photo_of, 1..8).prop_map(|photos| {
        let mut counter = 5;
        let events = (0..).zip(photos).map(|(n, (new_persons, known))| {
            let faces = std::iter::repeat_n(good_face(), new_persons)
                .chain(known.iter().map(|number| small_face().candidate(*number, 0.9)));
            let events = photo(image(n).as_str()).with_faces(faces).counter(counter).into_events();
            counter += u32::try_from(new_persons).unwrap();
            events
        });
        events.collect()
    })
}

/// Returns the rows after these photos, each committed at its own time.
fn table_after(photos: &[(i64, Vec<Event>)]) -> String {
    let images: Vec<ImageId> = (0..8).map(image).collect();
    let mut table = Table::of_platform(&images);
    for (second, events) in photos {
        for event in events {
            let when = Timestamp::from_millis(1_750_000_000_000 + second * 1000);
            let merges = Merges::default();
            table.commit(&Projection::default().project(event, &ProjectionContext::new(when, &merges)));
        }
    }
    table.text()
}

proptest! {
    #![proptest_config(bounded())]

    #[test]
    fn same_input_gives_the_same_events(steps in steps()) {
        let (one, other) = (Simulation::after(&steps), Simulation::after(&steps));
        prop_assert_eq!(&one.log, &other.log);
        prop_assert_eq!(one.table.text(), other.table.text());
        for step in steps.iter().filter(|step| step.is_photo()) {
            prop_assert_eq!(one.decide(step), other.decide(step));
        }
    }

    #[test]
    fn rebuild_equals_incremental_projection(steps in steps()) {
        let simulation = Simulation::after(&steps);
        prop_assert_eq!(rebuild(&simulation.log, simulation.platform.clone()).text(), simulation.table.text());
    }

    #[test]
    fn person_count_equals_listed_persons(steps in steps()) {
        let registry = Simulation::after(&steps).registry;
        prop_assert_eq!(registry.len(), registry.iter().count());
        for person in registry.forgotten() {
            prop_assert_eq!(registry.get(person), None);
            prop_assert!(registry.get_forgotten(person).is_some());
        }
    }

    #[test]
    fn every_tagged_person_and_user_has_a_person_row(steps in steps()) {
        let simulation = Simulation::after(&steps);
        for row in simulation.table.rows.values() {
            let tagged = row.get("entityType").and_then(|kind| kind.as_str()?.strip_prefix("TAGGING#"));
            for person in tagged.into_iter().chain(row.get("personId").and_then(|person| person.as_str())) {
                let key = Key::person(person.parse().unwrap());
                prop_assert!(simulation.table.rows.contains_key(&key), "{} has no row", person);
            }
        }
    }

    #[test]
    fn rebuild_repairs_the_table_of_any_earlier_time(steps in steps(), part in 0.0..1.0_f64) {
        let (earlier, _) = steps.split_at((steps.len() as f64 * part) as usize);
        let (earlier, simulation) = (Simulation::after(earlier), Simulation::after(&steps));
        let before = with_platform_changes(earlier.table.clone(), &earlier, &simulation);
        prop_assert_eq!(rebuild(&simulation.log, before).text(), simulation.table.text());
        prop_assert_eq!(rebuild(&simulation.log, simulation.table.clone()).text(), simulation.table.text());
    }

    #[test]
    fn merge_and_undo_leave_every_row_unchanged(steps in steps(), a in 1..7_u32, b in 1..7_u32) {
        let mut simulation = Simulation::after(&steps);
        let (before, rows) = (simulation.registry.clone(), simulation.table.text());
        let events = simulation.run(&Step::Merge { a, b }).unwrap();
        if let Some(Event::PersonsMerged(merge)) = events.first() {
            prop_assert_ne!(simulation.table.text(), rows.as_str());
            let index = simulation.registry.merges().absorbed().position(|(from, _)| from == merge.from).unwrap();
            simulation.run(&Step::Undo { merge: index }).unwrap();
        }
        prop_assert_eq!(simulation.table.text(), rows);
        prop_assert_eq!(simulation.registry.iter().collect::<Vec<_>>(), before.iter().collect::<Vec<_>>());
        prop_assert_eq!(rebuild(&simulation.log, simulation.platform.clone()).text(), simulation.table.text());
    }

    #[test]
    fn repeated_command_adds_nothing(steps in steps()) {
        let mut simulation = Simulation::new();
        for step in &steps {
            let first = simulation.run(step);
            // The concurrent decision is about another photo.
            let step = match step {
                Step::Delete { photo, requested, .. } => {
                    &Step::Delete { photo: *photo, requested: *requested, concurrent: None }
                }
                step if step.is_photo() => step,
                _ => continue,
            };
            let (events, rows) = (simulation.log.len(), simulation.table.text());
            let again = simulation.run(step);
            // A deleted photo stays deleted; everything else is committed already.
            let is_refused = match first {
                Err(Refusal::Deleted) => matches!(again, Err(Refusal::Deleted)),
                _ => matches!(again, Err(Refusal::AlreadyCommitted(_))),
            };
            prop_assert!(is_refused, "{:?} after {:?}", again, first);
            prop_assert_eq!(simulation.log.len(), events);
            prop_assert_eq!(simulation.table.text(), rows);
        }
    }

    #[test]
    fn projecting_a_photo_again_changes_nothing(steps in steps()) {
        let simulation = Simulation::after(&steps);
        let states = states(&simulation.log);
        for RecordedEvent { seq, when, event, .. } in &simulation.log {
            if event.image().is_some_and(|image| states[image].projected_seq == Some(*seq)) {
                let (before, merges) = (&states[event.image().unwrap()], simulation.registry.merges());
                let context = ProjectionContext { before: Some(before), ..ProjectionContext::new(*when, merges) };
                let mutations = Projection::default().project(event, &context);
                let mut table = simulation.table.clone();
                table.repair(&mutations);
                prop_assert_eq!(table.text(), simulation.table.text());
                for mutation in &mutations {
                    prop_assert_eq!(drift(mutation, simulation.table.rows.get(mutation.key())), vec![]);
                }
            }
        }
    }

    #[test]
    fn person_numbers_are_consecutive_and_never_reused(steps in steps()) {
        let simulation = Simulation::after(&steps);
        let numbers = simulation.log.iter().filter_map(|recorded| match &recorded.event {
            Event::PersonsAllocated(allocated) => Some(allocated.persons.iter().map(|new| new.person.number())),
            _ => None,
        });
        let numbers: Vec<u32> = numbers.flatten().collect();
        prop_assert_eq!(&numbers, &(1..).take(numbers.len()).collect::<Vec<u32>>());
        prop_assert_eq!(simulation.identified.len(), numbers.len(), "each identity is one person");
        let persons: BTreeSet<_> = simulation.persons.values().collect();
        prop_assert_eq!(persons.len(), simulation.persons.len(), "each identity is one person");
    }

    #[test]
    fn only_taken_numbers_are_skipped(
        counter in 0..20_u32,
        taken in prop::collection::btree_set(1..30_u32, 0..12),
        new_persons in 0..6_usize,
    ) {
        let crowd = photo(image(0).as_str()).with_faces(vec![good_face(); new_persons]).counter(counter).taken_numbers(taken.clone());
        let persons = processed(&given(no_events()).when(crowd).events()).persons();
        let expected = (counter + 1..).filter(|number| !taken.contains(number)).take(new_persons).map(person);
        prop_assert_eq!(persons, expected.collect::<Vec<_>>());
    }

    #[test]
    fn rows_do_not_depend_on_the_order_of_unrelated_photos(
        (photos, shuffled) in unrelated_photos()
            .prop_map(|photos| (0..).zip(photos).collect::<Vec<_>>())
            .prop_flat_map(|photos| (Just(photos.clone()), Just(photos).prop_shuffle())),
    ) {
        prop_assert_eq!(table_after(&photos), table_after(&shuffled));
    }

    #[test]
    fn foreign_attributes_of_platform_rows_are_kept(steps in steps()) {
        let simulation = Simulation::after(&steps);
        let ours = ["images", "persons", "lastModified", "personId", "updatedAt"];
        for (key, before) in simulation.platform.rows {
            let mut after = simulation.table.rows[&key].clone();
            after.retain(|name, _| !ours.contains(&name.as_str()));
            let mut before = before;
            before.retain(|name, _| !["lastModified", "updatedAt"].contains(&name.as_str()));
            prop_assert_eq!(serde_json::to_string(&after).unwrap(), serde_json::to_string(&before).unwrap());
        }
    }

    #[test]
    fn events_read_back_unchanged(event in crate::random_events::event()) {
        let read = Event::parse(event.event_type(), &event.to_data());
        prop_assert_eq!(read.as_ref(), Ok(&event));
        prop_assert_eq!(read.unwrap().to_data(), event.to_data());
    }
}

#[test]
fn simulation_covers_all_cases_of_the_properties() {
    let mut runner = TestRunner::deterministic();
    let mut cases = BTreeSet::new();
    for _ in 0..64 {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        let simulation = Simulation::after(&steps);
        let states = states(&simulation.log);
        cases.extend(simulation.log.iter().map(|recorded| recorded.event.event_type()));
        let replaced =
            |r: &RecordedEvent| r.event.image().is_some_and(|image| states[image].projected_seq > Some(r.seq));
        cases.extend(simulation.log.iter().any(replaced).then_some("replaced"));
        let is_processed_again = |r: &RecordedEvent| {
            let later = |other: &&RecordedEvent| other.seq > r.seq && other.event.image() == r.event.image();
            matches!(r.event, Event::PhotoDeleted(_))
                && simulation.log.iter().filter(later).any(|other| matches!(other.event, Event::PhotoProcessed(_)))
        };
        cases.extend(simulation.log.iter().any(is_processed_again).then_some("processed after deletion"));
        let merges = simulation.registry.merges();
        let is_chained = |(person, _)| {
            merges.absorbed().any(|(_, merge)| merges.get(*merge).is_some_and(|(into, _)| into == person))
        };
        cases.extend(merges.absorbed().any(is_chained).then_some("chain"));
        cases.extend(
            states
                .values()
                .any(|state| state.projected_seq.is_some_and(|projected| projected < state.seq))
                .then_some("kept"),
        );
    }
    let about_persons = ["PersonPictured", "PersonReinstated", "PersonRenamed", "PersonsAllocated", "PersonsForgotten"];
    let about_photos = ["PersonsMerged", "PhotoDeleted", "PhotoProcessed", "PhotoRejected", "ProfileProcessed"];
    let events = [&["MergeUndone"][..], &about_persons, &about_photos].concat();
    assert_eq!(
        cases.into_iter().collect::<Vec<_>>(),
        [&events[..], &["chain", "kept", "processed after deletion", "replaced"]].concat()
    );
}
