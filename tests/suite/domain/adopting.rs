//! What somebody else decided before us.

use serde_json::{Value, json};
use sparks_domain::{
    Event, FoundPerson, FoundPhoto, ImageId, Item, Key, Likeness, Merges, NumbersReserved, Outcome, People, PersonId,
    PhotoAdopted, PhotoState, Projection, RejectCode, Seq, Signature, Strange, TaggingKey, Timestamp, Version,
};

use crate::{
    story::{BEACH, ada, given, good, merged, person, photo, policy, small, state_of},
    table::fields,
};

fn now() -> Timestamp {
    Timestamp::from_millis(1_760_000_000_000)
}

fn row(key: Key, attributes: Value) -> Item {
    Item { key, attributes: fields(attributes) }
}

fn person_row(number: u32, attributes: Value) -> Item {
    row(Key::person(person(number)), attributes)
}

fn adopted_person(number: u32) -> Event {
    let row = person_row(number, json!({ "displayName": format!("Nr. {number}"), "createdAt": 1_700_000_000 }));
    let found = FoundPerson::read(&row, now()).unwrap();
    Event::PersonAdopted(found.adopted("synthetic", Likeness::NoCrop, Seq(0)))
}

fn people(events: &[Event]) -> People {
    let mut people = People::default();
    events.iter().for_each(|event| people.evolve(event, now()));
    people
}

fn beach() -> ImageId {
    BEACH.parse().unwrap()
}

/// The rows of a photo that another worker tagged with these persons.
fn tagged(persons: &[&str]) -> Vec<Item> {
    let images = json!({ "large": "processed/l.webp", "medium": "processed/m.webp" });
    let image = json!({ "entityType": "IMAGE", "s3Key": "originals/o.jpg", "images": images, "stars": 5 });
    let tag = |person: &&str| {
        let attributes = json!({ "entityType": format!("TAGGING#{person}"), "s3Key": "processed/l.webp", "images": images,
            "createdAt": 1_700_000_001, "score": 0.75 });
        row(Key::new(BEACH, format!("PERSON#{person}")), attributes)
    };
    persons.iter().map(tag).chain([row(Key::image(&beach(), &ada()), image)]).collect()
}

fn adopt(rows: &[Item], state: Option<&PhotoState>, people: &People) -> (Option<PhotoAdopted>, Vec<Strange>) {
    FoundPhoto { image: &beach(), rows, state, tagging_key: TaggingKey::Large }.adopted(people, now())
}

/// The photo, tagged with these persons before us.
fn tags(persons: &[&str]) -> Event {
    let known: Vec<Event> = persons.iter().map(|id| adopted_person(id.parse::<PersonId>().unwrap().number())).collect();
    Event::PhotoAdopted(adopt(&tagged(persons), None, &people(&known)).0.unwrap())
}

#[test]
fn a_person_keeps_number_name_and_time() {
    let people = people(&[adopted_person(7)]);
    let adopted = people.get(person(7)).unwrap();
    assert_eq!((adopted.display_name.as_str(), adopted.created.unix_seconds()), ("Nr. 7", 1_700_000_000));
    assert_eq!(people.highest(), 7);
    assert!(adopted.face.image != beach() && adopted.face.n == 0);
}

#[test]
fn times_are_read_as_they_can_only_be_meant() {
    for (written, seconds) in [
        (json!(1_700_000_000), 1_700_000_000),
        (json!(1_700_000_000_123_i64), 1_700_000_000),
        (json!(1_700_000_000.75), 1_700_000_000),
        (json!("2023-11-14T22:13:20.000Z"), 1_700_000_000),
        (json!("yesterday"), now().unix_seconds()),
        (json!(null), now().unix_seconds()),
    ] {
        let found = FoundPerson::read(&person_row(1, json!({ "createdAt": written })), now()).unwrap();
        let event = found.adopted("off", Likeness::NoFace, Seq(0));
        assert_eq!(event.created_at.unix_seconds(), seconds, "{written}");
        assert_eq!(event.display_name, "person1", "a row without a name");
    }
}

#[test]
fn what_is_not_a_person_of_ours_is_left_alone() {
    for (pk, sk) in [("PERSON#grandma", "grandma"), ("PERSON#person07", "person07"), ("PERSON#person7", "person8")] {
        let strange = FoundPerson::read(&row(Key::new(pk, sk), json!({})), now()).unwrap_err();
        assert_eq!(strange, Strange::NotAPerson(pk.into()));
    }
}

#[test]
fn numbers_that_were_given_out_are_never_given_out_again() {
    let reserved = Event::NumbersReserved(NumbersReserved { v: Version, up_to: 57, identity_seq: Seq(0) });
    let people = people(&[reserved.clone(), adopted_person(7)]);
    assert_eq!((people.highest(), people.len()), (57, 1));
    let counter = Projection::default().project(None, &reserved, now(), &Merges::default());
    assert_eq!(counter, [Projection::counter(57)]);
}

#[test]
fn a_photo_shows_its_tags_as_they_stood() {
    let event = tags(&["person7", "person12"]);
    let state = state_of(&beach(), std::slice::from_ref(&event)).unwrap();
    assert_eq!((state.outcome, state.shows, state.version.as_str()), (Outcome::Adopted, Some(Seq(1)), ""));
    assert_eq!((&state.persons, &state.adopted), (&vec![person(7), person(12)], &vec![person(7), person(12)]));
    let rows = Projection::default().project(None, &event, now(), &Merges::default());
    let before = tagged(&["person7", "person12"]);
    for change in rows {
        let row = before.iter().find(|row| row.key == *change.key()).unwrap();
        let after = change.apply(Some(row.attributes.clone())).unwrap();
        let mut expected = row.attributes.clone();
        if row.key.sk.starts_with("UPLOADED_BY#") {
            expected.insert("persons".into(), json!(["person7", "person12"]));
        }
        assert_eq!(after, expected, "{}", row.key);
    }
}

#[test]
fn tags_that_cannot_be_ours_are_named() {
    let known = people(&[adopted_person(7)]);
    let (event, strange) = adopt(&tagged(&["person7", "person8", "grandma"]), None, &known);
    assert_eq!(event.unwrap().persons(), [person(7)]);
    let unknown = Strange::NotAPerson(format!("{BEACH} / PERSON#grandma"));
    assert_eq!(strange, [Strange::NoPerson(beach(), person(8)), unknown]);
    let without_image: Vec<Item> = tagged(&["person7"]).into_iter().take(1).collect();
    assert_eq!(adopt(&without_image, None, &known), (None, vec![Strange::NoPhoto(beach(), person(7))]));
}

#[test]
fn what_the_log_names_is_ours_already() {
    let event = tags(&["person7"]);
    let state = state_of(&beach(), std::slice::from_ref(&event));
    assert_eq!(adopt(&tagged(&["person7"]), state.as_ref(), &people(&[adopted_person(7)])), (None, vec![]));
}

#[test]
fn a_tag_beside_our_own_decision_is_shown_with_it() {
    let ours = photo(BEACH).of([good().like(1, 0.9)]).happened();
    let state = state_of(&beach(), &ours).unwrap();
    let known = people(&[adopted_person(1), adopted_person(7)]);
    let (event, strange) = adopt(&tagged(&["person1", "person7"]), Some(&state), &known);
    assert!(strange.is_empty());
    let event = event.unwrap();
    assert_eq!((event.persons(), event.follows), (vec![person(7)], Some(state.seq)));
    let after = PhotoState::evolve(Some(state.clone()), Seq(9), &Event::PhotoAdopted(event)).unwrap();
    assert_eq!((after.shows, after.outcome, after.seq), (state.shows, Outcome::Processed, Seq(9)));
    assert_eq!(after.persons, [person(1), person(7)]);
}

#[test]
fn an_upload_of_an_adopted_photo_keeps_the_tags_and_adds_what_we_see() {
    let adopted = tags(&["person7", "person12"]);
    let again = photo(BEACH).of([good().like(7, 0.9), good()]).counter(57);
    given([adopted]).when(again).then([
        "allocated: person58 shown by 1 known by 1",
        "processed: is person7 (template), founds person58 (template), person12 as before us",
    ]);
}

#[test]
fn once_we_have_looked_a_later_version_is_decided_by_us_alone() {
    let mut history = vec![tags(&["person7"])];
    let first = photo(BEACH).of([]);
    let events = given(history.clone()).when(first).events();
    history.extend(events);
    assert_eq!(state_of(&beach(), &history).unwrap().persons, [person(7)]);
    given(history)
        .when(photo(BEACH).version("v2").of([good().like(1, 0.9)]))
        .then(["processed: is person1 (template)"]);
}

#[test]
fn a_version_that_cannot_be_taken_takes_no_tag_away() {
    let mut history = vec![tags(&["person7"])];
    history.extend(given(history.clone()).when(photo(BEACH).rejected(RejectCode::Damaged)).events());
    let state = state_of(&beach(), &history).unwrap();
    assert_eq!((state.shows, &state.persons, &state.adopted), (Some(Seq(1)), &vec![person(7)], &vec![person(7)]));
    given(history).when(photo(BEACH).of([])).then(["processed: person7 as before us"]);
}

#[test]
fn tags_follow_whoever_their_person_is_by_now_and_go_back() {
    let event = tags(&["person7", "person12"]);
    let mut merges = Merges::default();
    merges.evolve(&Event::PersonsMerged(merged(3, 7, Seq(1))));
    let rows = Projection::default().shown(&event, now(), &[person(7), person(12)], &merges).unwrap();
    let keys: Vec<String> = rows.iter().map(|row| row.key().sk.clone()).collect();
    let image = format!("UPLOADED_BY#{}", ada());
    assert_eq!(keys, [image.as_str(), "PERSON#person7", "PERSON#person3", "PERSON#person12"]);
    assert_eq!(rows[1].apply(Some(fields(json!({})))), None, "the tag of who they were goes");
    let moved = rows[2].apply(None).unwrap();
    assert_eq!((&moved["createdAt"], &moved["entityType"]), (&json!(1_700_000_001), &json!("TAGGING#person3")));
}

#[test]
fn only_a_good_face_is_known_by() {
    let (likeness, signature) = Likeness::of("v1".into(), Vec::new(), &policy());
    assert_eq!((likeness, signature), (Likeness::NoFace, None));
    let look = Signature::quantise(&[0.5, -0.25, 0.75]).unwrap();
    let poor = small().looking(look.clone()).face;
    let (likeness, signature) = Likeness::of("v1".into(), vec![poor.clone()], &policy());
    assert!(matches!(likeness, Likeness::TooPoor(_)) && signature.is_none(), "{likeness:?}");
    // The largest face is theirs, whatever else is in the picture.
    let mut aside = good().face;
    aside.bounds.width = 0.1;
    let (likeness, signature) = Likeness::of("v1".into(), vec![aside, good().looking(look.clone()).face], &policy());
    assert!(matches!(&likeness, Likeness::Known(face) if face.version == "v1"), "{likeness:?}");
    assert_eq!(signature, Some(look));
}
