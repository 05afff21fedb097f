//! What holds whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use sparks_domain::{
    Event, ImageId, Key, Merges, Mutation, People, PhotoState, Projection, Recorded, Refusal, Timestamp, drift,
};

use crate::{
    story::{ada, given, good, nothing, person, photo, processed, small},
    table::Table,
    world::{Step, World, image, steps},
};

fn bounded() -> ProptestConfig {
    ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() }
}

/// What the log holds of an event, read back.
fn read_back(recorded: &Recorded) -> Recorded {
    let event = Event::parse(recorded.event.event_type(), &recorded.event.to_data()).expect("a readable event");
    Recorded { event, ..recorded.clone() }
}

fn states(log: &[Recorded]) -> BTreeMap<ImageId, PhotoState> {
    let mut states = BTreeMap::new();
    for recorded in log {
        if let Some(image) = recorded.event.image() {
            let state = PhotoState::evolve(states.remove(image), recorded.seq, &recorded.event);
            states.insert(image.clone(), state.expect("a state"));
        }
    }
    states
}

/// Everything that is ours, from the log alone: of a photo only the event it shows counts; everybody is folded first.
fn rebuild(log: &[Recorded], mut table: Table) -> Table {
    let log: Vec<_> = log.iter().map(read_back).collect();
    let (states, projection) = (states(&log), Projection::default());
    let mut people = People::default();
    for Recorded { when, event, .. } in &log {
        people.evolve(event, *when);
    }
    let merges = people.merges();
    for Recorded { seq, when, event, .. } in &log {
        let is_shown = event.image().is_some_and(|image| states[image].shows == Some(*seq));
        match event {
            Event::PhotoProcessed(photo) if is_shown => {
                table.mend(&projection.photo(photo, *when, &states[&photo.image_id].persons, &[], merges));
            }
            Event::PhotoProcessed(photo) => {
                table.mend(&projection.superseded(&states[&photo.image_id], photo, merges));
            }
            Event::ProfileProcessed(profile) if is_shown => {
                table.mend(projection.profile(profile, *when, merges).as_slice());
            }
            _ => {}
        }
    }
    let persons: Vec<_> = people.iter().map(|(id, person)| Projection::person(id, &person)).collect();
    table.mend(&persons);
    let gone = merges.absorbed().map(|(id, _)| id).chain(people.forgotten());
    let gone: Vec<_> = gone.map(|id| Mutation::Delete { key: Key::person(id) }).collect();
    table.mend(&gone);
    if people.highest() > 0 {
        table.mend(&[Projection::counter(people.highest())]);
    }
    table
}

/// The table of an earlier moment after the platform's part of what has happened since: rows of photos came and went.
fn with_rows_of_now(mut table: Table, earlier: &World, now: &World) -> Table {
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

/// Photos of strangers, each photo with its own, after so many known persons; some known ones may come along.
fn unrelated_photos() -> impl Strategy<Value = Vec<Vec<Event>>> {
    let photo_of = (0..3_usize, prop::collection::vec(1..6_u32, 0..3));
    prop::collection::vec(photo_of, 1..8).prop_map(|photos| {
        let mut counter = 5;
        let events = (0..).zip(photos).map(|(n, (strangers, known))| {
            let faces =
                std::iter::repeat_n(good(), strangers).chain(known.iter().map(|number| small().like(*number, 0.9)));
            let events = photo(image(n).as_str()).of(faces).counter(counter).happened();
            counter += u32::try_from(strangers).unwrap();
            events
        });
        events.collect()
    })
}

/// The rows after these photos, each committed at a time of its own.
fn table_after(photos: &[(i64, Vec<Event>)]) -> String {
    let images: Vec<ImageId> = (0..8).map(image).collect();
    let mut table = Table::of_platform(&images);
    for (second, events) in photos {
        for event in events {
            table.commit(&Projection::default().project(
                None,
                event,
                Timestamp::from_millis(1_750_000_000_000 + second * 1000),
                &Merges::default(),
            ));
        }
    }
    table.text()
}

proptest! {
    #![proptest_config(bounded())]

    #[test]
    fn the_same_input_gives_the_same_events(steps in steps()) {
        let (one, other) = (World::after(&steps), World::after(&steps));
        prop_assert_eq!(&one.log, &other.log);
        prop_assert_eq!(one.table.text(), other.table.text());
        for step in steps.iter().filter(|step| step.is_photo()) {
            prop_assert_eq!(one.decide(step), other.decide(step));
        }
    }

    #[test]
    fn replay_equals_incremental(steps in steps()) {
        let world = World::after(&steps);
        prop_assert_eq!(rebuild(&world.log, world.platform.clone()).text(), world.table.text());
    }

    #[test]
    fn whoever_is_there_is_counted(steps in steps()) {
        let people = World::after(&steps).people;
        prop_assert_eq!(people.len(), people.iter().count());
        for person in people.forgotten() {
            prop_assert_eq!(people.get(person), None);
            prop_assert!(people.remembered(person).is_some());
        }
    }

    #[test]
    fn whoever_is_tagged_and_whoever_is_a_user_is_known(steps in steps()) {
        let world = World::after(&steps);
        for row in world.table.rows.values() {
            let tagged = row.get("entityType").and_then(|kind| kind.as_str()?.strip_prefix("TAGGING#"));
            for person in tagged.into_iter().chain(row.get("personId").and_then(|person| person.as_str())) {
                let key = Key::person(person.parse().unwrap());
                prop_assert!(world.table.rows.contains_key(&key), "{} has no row", person);
            }
        }
    }

    #[test]
    fn a_rebuild_mends_the_table_of_any_earlier_moment(steps in steps(), part in 0.0..1.0_f64) {
        let (earlier, _) = steps.split_at((steps.len() as f64 * part) as usize);
        let (earlier, world) = (World::after(earlier), World::after(&steps));
        let before = with_rows_of_now(earlier.table.clone(), &earlier, &world);
        prop_assert_eq!(rebuild(&world.log, before).text(), world.table.text());
        prop_assert_eq!(rebuild(&world.log, world.table.clone()).text(), world.table.text());
    }

    #[test]
    fn a_merge_taken_back_leaves_every_row_as_it_was(steps in steps(), a in 1..7_u32, b in 1..7_u32) {
        let mut world = World::after(&steps);
        let (before, rows) = (world.people.clone(), world.table.text());
        let joined = world.take(&Step::Joined { a, b }).unwrap();
        if let Some(Event::PersonsMerged(merge)) = joined.first() {
            prop_assert_ne!(world.table.text(), rows.as_str());
            let at = world.people.merges().absorbed().position(|(from, _)| from == merge.from).unwrap();
            world.take(&Step::Parted { merge: at }).unwrap();
        }
        prop_assert_eq!(world.table.text(), rows);
        prop_assert_eq!(world.people.iter().collect::<Vec<_>>(), before.iter().collect::<Vec<_>>());
        prop_assert_eq!(rebuild(&world.log, world.platform.clone()).text(), world.table.text());
    }

    #[test]
    fn a_duplicate_adds_nothing(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            let first = world.take(step);
            // What was decided beside a deletion is another photo.
            let step = match step {
                Step::Gone { photo, asked, .. } => &Step::Gone { photo: *photo, asked: *asked, beside: None },
                step if step.is_photo() => step,
                _ => continue,
            };
            let (events, rows) = (world.log.len(), world.table.text());
            let again = world.take(step);
            // What is gone stays gone; everything else is committed.
            let as_before = match first {
                Err(Refusal::Deleted) => matches!(again, Err(Refusal::Deleted)),
                _ => matches!(again, Err(Refusal::AlreadyCommitted(_))),
            };
            prop_assert!(as_before, "{:?} after {:?}", again, first);
            prop_assert_eq!(world.log.len(), events);
            prop_assert_eq!(world.table.text(), rows);
        }
    }

    #[test]
    fn asserting_a_photo_again_changes_nothing(steps in steps()) {
        let world = World::after(&steps);
        let states = states(&world.log);
        for Recorded { seq, when, event, .. } in &world.log {
            if event.image().is_some_and(|image| states[image].shows == Some(*seq)) {
                let (before, merges) = (&states[event.image().unwrap()], world.people.merges());
                let mutations = Projection::default().project(Some(before), event, *when, merges);
                let mut table = world.table.clone();
                table.mend(&mutations);
                prop_assert_eq!(table.text(), world.table.text());
                for mutation in &mutations {
                    prop_assert_eq!(drift(mutation, world.table.rows.get(mutation.key())), vec![]);
                }
            }
        }
    }

    #[test]
    fn every_number_is_new_and_follows_the_last(steps in steps()) {
        let world = World::after(&steps);
        let numbers = world.log.iter().filter_map(|recorded| match &recorded.event {
            Event::PersonsAllocated(allocated) => Some(allocated.persons.iter().map(|new| new.person.number())),
            _ => None,
        });
        let numbers: Vec<u32> = numbers.flatten().collect();
        prop_assert_eq!(&numbers, &(1..).take(numbers.len()).collect::<Vec<u32>>());
        prop_assert_eq!(world.ever.len(), numbers.len(), "everybody is one person, and nobody is two");
        let known: BTreeSet<_> = world.known.values().collect();
        prop_assert_eq!(known.len(), world.known.len(), "everybody is one person, and nobody is two");
    }

    #[test]
    fn taken_numbers_are_skipped_and_no_others(
        counter in 0..20_u32,
        taken in prop::collection::btree_set(1..30_u32, 0..12),
        strangers in 0..6_usize,
    ) {
        let crowd = photo(image(0).as_str()).of(vec![good(); strangers]).counter(counter).taken(taken.clone());
        let persons = processed(&given(nothing()).when(crowd).events()).persons();
        let expected = (counter + 1..).filter(|number| !taken.contains(number)).take(strangers).map(person);
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
    fn rows_of_the_platform_keep_what_is_theirs(steps in steps()) {
        let world = World::after(&steps);
        let ours = ["images", "persons", "lastModified", "personId", "updatedAt"];
        for (key, before) in world.platform.rows {
            let mut after = world.table.rows[&key].clone();
            after.retain(|name, _| !ours.contains(&name.as_str()));
            let mut before = before;
            before.retain(|name, _| !["lastModified", "updatedAt"].contains(&name.as_str()));
            prop_assert_eq!(serde_json::to_string(&after).unwrap(), serde_json::to_string(&before).unwrap());
        }
    }

    #[test]
    fn events_read_back_as_themselves(event in crate::random_events::event()) {
        let read = Event::parse(event.event_type(), &event.to_data());
        prop_assert_eq!(read.as_ref(), Ok(&event));
        prop_assert_eq!(read.unwrap().to_data(), event.to_data());
    }
}

#[test]
fn the_world_has_all_that_the_properties_speak_of() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..64 {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        let world = World::after(&steps);
        let states = states(&world.log);
        seen.extend(world.log.iter().map(|recorded| recorded.event.event_type()));
        let replaced = |r: &Recorded| r.event.image().is_some_and(|image| states[image].shows > Some(r.seq));
        seen.extend(world.log.iter().any(replaced).then_some("replaced"));
        let back = |r: &Recorded| {
            let later = |other: &&Recorded| other.seq > r.seq && other.event.image() == r.event.image();
            matches!(r.event, Event::PhotoDeleted(_))
                && world.log.iter().filter(later).any(|other| matches!(other.event, Event::PhotoProcessed(_)))
        };
        seen.extend(world.log.iter().any(back).then_some("back"));
        let merges = world.people.merges();
        let is_chained = |(person, _)| {
            merges.absorbed().any(|(_, merge)| merges.get(*merge).is_some_and(|(into, _)| into == person))
        };
        seen.extend(merges.absorbed().any(is_chained).then_some("chain"));
        seen.extend(states.values().any(|state| state.shows.is_some_and(|shows| shows < state.seq)).then_some("kept"));
    }
    let about_persons = ["PersonPictured", "PersonReinstated", "PersonRenamed", "PersonsAllocated", "PersonsForgotten"];
    let about_photos = ["PersonsMerged", "PhotoDeleted", "PhotoProcessed", "PhotoRejected", "ProfileProcessed"];
    let events = [&["MergeUndone"][..], &about_persons, &about_photos].concat();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [&events[..], &["back", "chain", "kept", "replaced"]].concat());
}
