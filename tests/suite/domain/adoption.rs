//! Adoption of rows that a previous worker wrote.

use serde_json::{Value, json};
use sparks_domain::{
    AdoptionIssue, CropAnalysis, Event, ImageId, Item, Key, Merges, NumbersReserved, PersonId, PersonRegistry,
    PersonRow, PhotoAdopted, PhotoState, PhotoStatus, Projection, RejectCode, Seq, Signature, TaggedPhotoRows,
    TaggingKey, Timestamp, Version,
};

use crate::{
    given_when_then::{BEACH, ada, given, good_face, merged, person, photo, policy, project, small_face, state_of},
    memory_table::fields,
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
    let found = PersonRow::read(&row, now()).unwrap();
    Event::PersonAdopted(found.into_event("synthetic", CropAnalysis::NoCrop, Seq(0)))
}

fn registry(events: &[Event]) -> PersonRegistry {
    let mut registry = PersonRegistry::default();
    events.iter().for_each(|event| registry.evolve(event, now()));
    registry
}

fn beach() -> ImageId {
    BEACH.parse().unwrap()
}

/// Returns the rows of a photo that a previous worker tagged with these persons.
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

fn adopt(
    rows: &[Item],
    state: Option<&PhotoState>,
    registry: &PersonRegistry,
) -> (Option<PhotoAdopted>, Vec<AdoptionIssue>) {
    TaggedPhotoRows { image: &beach(), rows, state, tagging_key: TaggingKey::Large }.adoption_event(registry, now())
}

/// Returns the event that adopts a photo tagged with these persons.
fn adopted_photo(persons: &[&str]) -> Event {
    let known: Vec<Event> = persons.iter().map(|id| adopted_person(id.parse::<PersonId>().unwrap().number())).collect();
    Event::PhotoAdopted(adopt(&tagged(persons), None, &registry(&known)).0.unwrap())
}

#[test]
fn adopted_person_keeps_number_name_and_creation_time() {
    let registry = registry(&[adopted_person(7)]);
    let adopted = registry.get(person(7)).unwrap();
    assert_eq!((adopted.display_name.as_str(), adopted.created.unix_seconds()), ("Nr. 7", 1_700_000_000));
    assert_eq!(registry.highest_number(), 7);
    assert!(adopted.face.image != beach() && adopted.face.n == 0);
}

#[test]
fn creation_times_are_read_in_every_known_format() {
    for (written, seconds) in [
        (json!(1_700_000_000), 1_700_000_000),
        (json!(1_700_000_000_123_i64), 1_700_000_000),
        (json!(1_700_000_000.75), 1_700_000_000),
        (json!("2023-11-14T22:13:20.000Z"), 1_700_000_000),
        (json!("yesterday"), now().unix_seconds()),
        (json!(null), now().unix_seconds()),
    ] {
        let found = PersonRow::read(&person_row(1, json!({ "createdAt": written })), now()).unwrap();
        let event = found.into_event("off", CropAnalysis::NoFace, Seq(0));
        assert_eq!(event.created_at.unix_seconds(), seconds, "{written}");
        assert_eq!(event.display_name, "person1", "default for a row without a name");
    }
}

#[test]
fn rows_without_a_valid_person_id_are_skipped() {
    for (pk, sk) in [("PERSON#grandma", "grandma"), ("PERSON#person07", "person07"), ("PERSON#person7", "person8")] {
        let issues = PersonRow::read(&row(Key::new(pk, sk), json!({})), now()).unwrap_err();
        assert_eq!(issues, AdoptionIssue::NotAPerson(pk.into()));
    }
}

#[test]
fn reserved_numbers_raise_the_counter() {
    let reserved = Event::NumbersReserved(NumbersReserved { v: Version, up_to: 57, identity_seq: Seq(0) });
    let registry = registry(&[reserved.clone(), adopted_person(7)]);
    assert_eq!((registry.highest_number(), registry.len()), (57, 1));
    let counter = project(&reserved, now(), &Merges::default());
    assert_eq!(counter, [Projection::counter_row(57)]);
}

#[test]
fn adoption_leaves_existing_tags_unchanged() {
    let event = adopted_photo(&["person7", "person12"]);
    let state = state_of(&beach(), std::slice::from_ref(&event)).unwrap();
    assert_eq!((state.status, state.projected_seq, state.version.as_str()), (PhotoStatus::Adopted, Some(Seq(1)), ""));
    assert_eq!((&state.persons, &state.adopted), (&vec![person(7), person(12)], &vec![person(7), person(12)]));
    let rows = project(&event, now(), &Merges::default());
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
fn tags_that_cannot_be_adopted_are_reported() {
    let known = registry(&[adopted_person(7)]);
    let (event, issues) = adopt(&tagged(&["person7", "person8", "grandma"]), None, &known);
    assert_eq!(event.unwrap().persons(), [person(7)]);
    let unknown = AdoptionIssue::NotAPerson(format!("{BEACH} / PERSON#grandma"));
    assert_eq!(issues, [AdoptionIssue::NoPerson(beach(), person(8)), unknown]);
    let without_image: Vec<Item> = tagged(&["person7"]).into_iter().take(1).collect();
    assert_eq!(adopt(&without_image, None, &known), (None, vec![AdoptionIssue::NoPhoto(beach(), person(7))]));
}

#[test]
fn recorded_tags_are_not_adopted_again() {
    let event = adopted_photo(&["person7"]);
    let state = state_of(&beach(), std::slice::from_ref(&event));
    assert_eq!(adopt(&tagged(&["person7"]), state.as_ref(), &registry(&[adopted_person(7)])), (None, vec![]));
}

#[test]
fn adopted_tags_are_added_to_a_processed_photo() {
    let ours = photo(BEACH).with_faces([good_face().candidate(1, 0.9)]).into_events();
    let state = state_of(&beach(), &ours).unwrap();
    let known = registry(&[adopted_person(1), adopted_person(7)]);
    let (event, issues) = adopt(&tagged(&["person1", "person7"]), Some(&state), &known);
    assert!(issues.is_empty());
    let event = event.unwrap();
    assert_eq!((event.persons(), event.follows), (vec![person(7)], Some(state.seq)));
    let after = PhotoState::evolve(Some(state.clone()), Seq(9), &Event::PhotoAdopted(event)).unwrap();
    assert_eq!((after.projected_seq, after.status, after.seq), (state.projected_seq, PhotoStatus::Processed, Seq(9)));
    assert_eq!(after.persons, [person(1), person(7)]);
}

#[test]
fn processing_an_adopted_photo_keeps_its_tags() {
    let adopted = adopted_photo(&["person7", "person12"]);
    let again = photo(BEACH).with_faces([good_face().candidate(7, 0.9), good_face()]).counter(57);
    given([adopted]).when(again).then([
        "allocated: person58 crop 1 templates 1",
        "processed: matches person7 (template), creates person58 (template), person12 adopted",
    ]);
}

#[test]
fn adopted_tags_do_not_survive_a_second_processed_version() {
    let mut history = vec![adopted_photo(&["person7"])];
    let first = photo(BEACH).with_faces([]);
    let events = given(history.clone()).when(first).events();
    history.extend(events);
    assert_eq!(state_of(&beach(), &history).unwrap().persons, [person(7)]);
    given(history)
        .when(photo(BEACH).version("v2").with_faces([good_face().candidate(1, 0.9)]))
        .then(["processed: matches person1 (template)"]);
}

#[test]
fn rejected_version_keeps_adopted_tags() {
    let mut history = vec![adopted_photo(&["person7"])];
    history.extend(given(history.clone()).when(photo(BEACH).rejected(RejectCode::Damaged)).events());
    let state = state_of(&beach(), &history).unwrap();
    assert_eq!(
        (state.projected_seq, &state.persons, &state.adopted),
        (Some(Seq(1)), &vec![person(7)], &vec![person(7)])
    );
    given(history).when(photo(BEACH).with_faces([])).then(["processed: person7 adopted"]);
}

#[test]
fn adopted_tags_follow_merges() {
    let event = adopted_photo(&["person7", "person12"]);
    let mut merges = Merges::default();
    merges.evolve(&Event::PersonsMerged(merged(3, 7, Seq(1))));
    let rows = Projection::default().photo_rows(&event, now(), &[person(7), person(12)], &merges).unwrap();
    let keys: Vec<String> = rows.iter().map(|row| row.key().sk.clone()).collect();
    let image = format!("UPLOADED_BY#{}", ada());
    assert_eq!(keys, [image.as_str(), "PERSON#person7", "PERSON#person3", "PERSON#person12"]);
    assert_eq!(rows[1].apply(Some(fields(json!({})))), None, "the tag of the merged person is removed");
    let moved = rows[2].apply(None).unwrap();
    assert_eq!((&moved["createdAt"], &moved["entityType"]), (&json!(1_700_000_001), &json!("TAGGING#person3")));
}

#[test]
fn only_a_good_crop_face_becomes_a_template() {
    let (likeness, signature) = CropAnalysis::new("v1".into(), Vec::new(), &policy());
    assert_eq!((likeness, signature), (CropAnalysis::NoFace, None));
    let signature_of_face = Signature::quantise(&[0.5, -0.25, 0.75]).unwrap();
    let poor = small_face().with_signature(signature_of_face.clone()).face;
    let (likeness, signature) = CropAnalysis::new("v1".into(), vec![poor.clone()], &policy());
    assert!(matches!(likeness, CropAnalysis::TooPoor(_)) && signature.is_none(), "{likeness:?}");
    // The largest face counts.
    let mut aside = good_face().face;
    aside.bounds.width = 0.1;
    let (likeness, signature) = CropAnalysis::new(
        "v1".into(),
        vec![aside, good_face().with_signature(signature_of_face.clone()).face],
        &policy(),
    );
    assert!(matches!(&likeness, CropAnalysis::Usable(face) if face.version == "v1"), "{likeness:?}");
    assert_eq!(signature, Some(signature_of_face));
}
