//! Every event type as the log stores it: rich, with all optional fields, and minimal, without them.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};
use sparks_domain::{
    AdoptedTagging, Allocation, Attributes, Candidate, CropAnalysis, CropFace, DeletionCause, Event, Evidence, Face,
    FaceId, FacesReviewed, ImageId, Level, LevelRaised, MergeReason, MergeUndone, NumbersReserved, Origin,
    PersonAdopted, PersonPictured, PersonReinstated, PersonRenamed, PersonsAllocated, PersonsForgotten, PersonsMerged,
    PhotoAdopted, PhotoDeleted, PhotoProcessed, PhotoRejected, ProfileProcessed, Quality, RejectCode, Rejection,
    ReviewedFace, Seq, SourceObject, TakenAt, Timestamp, UnreadableEvent, Variant, Variants, Verdict, Version,
};

use crate::{
    given_when_then::{BEACH, PARTY, ada, person},
    golden_file,
    memory_table::fields,
};

fn source(rich: bool) -> SourceObject {
    SourceObject {
        key: format!("originals/{BEACH}.jpg"),
        version: "9b2cf535f27731c974343645a3985328".into(),
        sequencer: rich.then(|| "0055AED6DCD90281E5".into()),
        bytes: 3_145_728,
        mime_type: rich.then(|| "image/jpeg".into()),
        file_name: rich.then(|| "beach at noon.jpg".into()),
    }
}

fn variant(name: &str, width: u32, height: u32, bytes: u64, rich: bool) -> Variant {
    let sha256 = rich.then(|| "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into());
    Variant { key: format!("processed/{BEACH}_{name}.webp"), width, height, bytes, sha256 }
}

fn candidate(number: u32, similarity: f32) -> Candidate {
    Candidate { person: person(number), similarity }
}

fn rich_face() -> Face {
    let landmarks = [[0.31, 0.2], [0.42, 0.2], [0.365, 0.26], [0.32, 0.31], [0.41, 0.31]];
    Face {
        bounds: [0.25, 0.125, 0.22, 0.29333].into(),
        landmarks: landmarks.map(Into::into).to_vec(),
        quality: Quality { size: 422.4, sharpness: 0.87, turn: Some(0.125) },
        confidence: 0.9987,
        attributes: BTreeMap::from([
            ("age".into(), json!({ "low": 28, "high": 36 })),
            ("emotion".into(), json!("calm")),
        ]),
        model: "synthetic-1".into(),
        candidates: vec![candidate(3, 0.4321), candidate(1, 0.1)],
        threshold: 0.5,
        verdict: Verdict::NewPerson(person(12)),
        template: true,
    }
}

fn minimal_face(verdict: Verdict) -> Face {
    Face {
        bounds: [0.5, 0.5, 0.02, 0.03].into(),
        landmarks: Vec::new(),
        quality: Quality { size: 21.0, sharpness: 0.25, turn: None },
        confidence: 0.5,
        attributes: BTreeMap::new(),
        model: "synthetic-1".into(),
        candidates: Vec::new(),
        threshold: 0.5,
        verdict,
        template: false,
    }
}

/// A photo with a new person, a known one, and an unidentified face.
pub fn photo_processed(rich: bool) -> PhotoProcessed {
    let known = Face { candidates: vec![candidate(3, 0.9001)], ..minimal_face(Verdict::Matched(person(3))) };
    let unidentified = minimal_face(Verdict::TooPoor);
    PhotoProcessed {
        v: Version,
        image_id: BEACH.parse().unwrap(),
        uploader: ada(),
        source: source(rich),
        width: 4032,
        height: 3024,
        taken_at: rich.then(|| TakenAt("2025-07-31T12:34:56+02:00".into())),
        variants: Variants {
            large: variant("large", 1920, 1440, 412_345, rich),
            medium: variant("medium", 400, 400, 23_456, rich),
        },
        analyzer: "synthetic".into(),
        identity_seq: Seq(41),
        first_face: if rich { 2 } else { 0 },
        adopted: Vec::new(),
        follows: rich.then_some(Seq(17)),
        faces: if rich { vec![rich_face(), known, unidentified] } else { vec![unidentified] },
    }
}

/// The allocation of its new person; rich with a second one.
pub fn persons_allocated(rich: bool) -> PersonsAllocated {
    let face = |n| FaceId { image: BEACH.parse().unwrap(), n };
    let first = Allocation { person: person(12), face: face(0), templates: vec![face(0)] };
    let second = Allocation { person: person(14), face: face(4), templates: vec![face(3), face(4)] };
    PersonsAllocated {
        v: Version,
        image_id: BEACH.parse().unwrap(),
        photo_event: Event::PhotoProcessed(photo_processed(rich)).id(),
        counter: 11,
        persons: if rich { vec![first, second] } else { vec![first] },
    }
}

fn photo_rejected(rich: bool) -> PhotoRejected {
    let message = "60000 x 60000 pixels are more than the limit of 50 megapixels".into();
    PhotoRejected {
        v: Version,
        image_id: BEACH.parse().unwrap(),
        uploader: ada(),
        source: source(rich),
        reason: Rejection { code: RejectCode::TooManyPixels, message },
        follows: rich.then_some(Seq(17)),
    }
}

fn person_renamed(rich: bool) -> PersonRenamed {
    let to = if rich { "Ada \u{201c}Countess\u{201d} Lovelace" } else { "" };
    PersonRenamed { v: Version, person: person(12), identity_seq: Seq(42), from: "person12".into(), to: to.into() }
}

fn evidence() -> Evidence {
    Evidence { similarity: 0.8123, distinction: 5.25, lead: 2.5, beyond: 1.75, pairs: 12 }
}

fn faces_reviewed(rich: bool) -> FacesReviewed {
    let known = Verdict::Matched(person(3));
    let near = ReviewedFace {
        n: 4,
        candidates: vec![candidate(3, 0.9001), candidate(12, 0.4321)],
        threshold: 0.5,
        evidence: None,
        verdict: known,
    };
    let by_all_templates = ReviewedFace { n: 7, evidence: Some(evidence()), ..near.clone() };
    let bare = ReviewedFace { candidates: Vec::new(), ..near.clone() };
    FacesReviewed {
        v: Version,
        image_id: BEACH.parse().unwrap(),
        identity_seq: Seq(43),
        faces: if rich { vec![near, by_all_templates] } else { vec![bare] },
        follows: Seq(18),
    }
}

fn persons_merged(rich: bool) -> PersonsMerged {
    let row = json!({ "displayName": "Ada", "entityType": "PERSON", "hobbies": ["engines"] });
    PersonsMerged {
        v: Version,
        into: person(3),
        from: person(12),
        identity_seq: Seq(44),
        grounds: if rich { MergeReason::SimilarFaces(evidence()) } else { MergeReason::Requested },
        row: if rich { fields(row) } else { fields(json!({})) },
        users: if rich { vec![ada()] } else { Vec::new() },
    }
}

fn merge_undone(rich: bool) -> MergeUndone {
    let merge = Event::PersonsMerged(persons_merged(rich)).id();
    MergeUndone { v: Version, merge, into: person(3), from: person(12), identity_seq: Seq(45) }
}

fn photo_deleted(rich: bool) -> PhotoDeleted {
    let face = |n| FaceId { image: PARTY.parse().unwrap(), n };
    PhotoDeleted {
        v: Version,
        image_id: BEACH.parse().unwrap(),
        cause: if rich { DeletionCause::Requested } else { DeletionCause::OriginalRemoved },
        uploader: rich.then(ada),
        version: if rich { source(true).version } else { String::new() },
        sequencer: rich.then(|| "0055AED6DCD90281E5".into()),
        objects: if rich { vec![source(true).key, format!("processed/{BEACH}_large.webp")] } else { Vec::new() },
        persons: if rich { vec![person(3), person(12)] } else { Vec::new() },
        known_by: if rich { vec![face(0), face(2)] } else { Vec::new() },
        requested: rich.then(|| Timestamp::from_millis(1_760_000_000_123)),
        original: rich.then(|| "9f86d081884c7d65".into()),
        follows: rich.then_some(Seq(18)),
    }
}

/// A profile picture of a new person, or without a face.
pub fn profile_processed(rich: bool) -> ProfileProcessed {
    ProfileProcessed {
        v: Version,
        image_id: ImageId::of_profile(&ada()),
        email: ada(),
        source: SourceObject { key: "profiles/ada@example.org/1.jpg".into(), sequencer: None, ..source(rich) },
        analyzer: "synthetic".into(),
        identity_seq: Seq(41),
        first_face: if rich { 2 } else { 0 },
        face: rich.then(rich_face),
        follows: rich.then_some(Seq(17)),
    }
}

fn persons_forgotten(rich: bool) -> PersonsForgotten {
    let persons = if rich { vec![person(3), person(12)] } else { vec![person(3)] };
    PersonsForgotten { v: Version, persons, identity_seq: Seq(46) }
}

fn shown_face(rich: bool) -> FaceId {
    FaceId { image: PARTY.parse().unwrap(), n: if rich { 2 } else { 0 } }
}

fn person_reinstated(rich: bool) -> PersonReinstated {
    PersonReinstated { v: Version, person: person(3), face: shown_face(rich), identity_seq: Seq(47) }
}

fn person_pictured(rich: bool) -> PersonPictured {
    PersonPictured { v: Version, person: person(3), face: shown_face(rich), identity_seq: Seq(48) }
}

fn numbers_reserved() -> NumbersReserved {
    NumbersReserved { v: Version, up_to: 57, identity_seq: Seq(0) }
}

fn person_adopted(rich: bool) -> PersonAdopted {
    let Face { bounds, landmarks, quality, confidence, model, .. } = rich_face();
    let crop_face =
        CropFace { version: "0f343b0931126a20f133d67c2b018a3b".into(), bounds, landmarks, quality, confidence, model };
    PersonAdopted {
        v: Version,
        person: person(7),
        display_name: if rich { "Ada's aunt".into() } else { "person7".into() },
        created_at: Timestamp::from_millis(1_754_040_268_000),
        crop_key: "persons/person7.jpg".into(),
        origin: Origin::Table,
        face: FaceId::of_crop(person(7)),
        analyzer: "local".into(),
        likeness: if rich { CropAnalysis::Usable(crop_face) } else { CropAnalysis::NoCrop },
        identity_seq: Seq(1),
    }
}

fn photo_adopted(rich: bool) -> PhotoAdopted {
    let [large, medium] = ["large", "medium"].map(|name| format!("processed/{BEACH}_{name}.webp"));
    let images = fields(json!({ "large": large, "medium": medium }));
    let tagging = |number| AdoptedTagging {
        person: person(number),
        s3_key: rich.then(|| large.clone()),
        images: if rich { images.clone() } else { Attributes::new() },
        created_at: Timestamp::from_millis(1_754_040_269_000),
    };
    let processed = fields(json!({ "large": large, "medium": medium, "processedAt": "2025-08-01T09:24:28.957Z" }));
    PhotoAdopted {
        v: Version,
        image_id: BEACH.parse().unwrap(),
        uploader: ada(),
        original_key: rich.then(|| format!("originals/{BEACH}.jpg")),
        images: if rich { processed } else { Attributes::new() },
        origin: Origin::Table,
        taggings: if rich { vec![tagging(7), tagging(12)] } else { vec![tagging(7)] },
        follows: rich.then_some(Seq(17)),
    }
}

fn level_raised() -> LevelRaised {
    LevelRaised { v: Version, level: Level(2), identity_seq: Seq(49) }
}

pub fn every_event(rich: bool) -> [Event; 16] {
    [
        Event::PhotoProcessed(photo_processed(rich)),
        Event::PhotoRejected(photo_rejected(rich)),
        Event::PersonsAllocated(persons_allocated(rich)),
        Event::PersonRenamed(person_renamed(rich)),
        Event::FacesReviewed(faces_reviewed(rich)),
        Event::PersonsMerged(persons_merged(rich)),
        Event::MergeUndone(merge_undone(rich)),
        Event::PhotoDeleted(photo_deleted(rich)),
        Event::ProfileProcessed(profile_processed(rich)),
        Event::PersonsForgotten(persons_forgotten(rich)),
        Event::PersonReinstated(person_reinstated(rich)),
        Event::PersonPictured(person_pictured(rich)),
        Event::NumbersReserved(numbers_reserved()),
        Event::PersonAdopted(person_adopted(rich)),
        Event::PhotoAdopted(photo_adopted(rich)),
        Event::LevelRaised(level_raised()),
    ]
}

fn file(event: &Event, rich: bool) -> String {
    let suffix = if rich { "" } else { ".minimal" };
    format!("events/{}.v{}{suffix}.json", event.event_type(), event.version())
}

fn data(event: &Event) -> Value {
    serde_json::from_str(&event.to_data()).unwrap()
}

#[test]
fn golden_files_cover_every_event_type() {
    assert_eq!(every_event(true).map(|event| event.event_type()), Event::TYPES);
    for event in every_event(true) {
        assert_eq!(event.version(), 1, "{}: a new version needs files beside the old ones", event.event_type());
    }
}

#[test]
fn every_event_is_written_as_in_its_golden_file() {
    for rich in [true, false] {
        for event in every_event(rich) {
            golden_file::check(&file(&event, rich), &data(&event));
        }
    }
}

#[test]
fn every_golden_file_reads_as_its_event() {
    for rich in [true, false] {
        for event in every_event(rich) {
            let text = golden_file::read(&file(&event, rich)).to_string();
            assert_eq!(Event::parse(event.event_type(), &text), Ok(event));
        }
    }
}

#[test]
fn every_golden_file_round_trips() {
    let files = fs::read_dir(golden_file::path("events")).unwrap().map(|entry| entry.unwrap().file_name());
    let files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    assert!(files.len() >= 34, "{files:?}");
    for name in files {
        let event_type = name.split('.').next().unwrap();
        let written = golden_file::read(&format!("events/{name}"));
        let event = Event::parse(event_type, &written.to_string()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(data(&event), written, "{name}");
        assert_eq!(event.event_type(), event_type);
    }
}

#[test]
fn minimal_photo_files_omit_optional_fields() {
    let minimal = golden_file::read("events/PhotoProcessed.v1.minimal.json");
    let rich = golden_file::read("events/PhotoProcessed.v1.json");
    for optional in
        ["/taken_at", "/first_face", "/follows", "/source/sequencer", "/source/mime_type", "/source/file_name"]
            .into_iter()
            .chain(["/faces/0/landmarks", "/faces/0/attributes", "/faces/0/candidates", "/faces/0/template"])
            .chain(["/faces/0/quality/turn"])
    {
        assert!(rich.pointer(optional).is_some(), "{optional} is not in the rich file");
        assert!(minimal.pointer(optional).is_none(), "{optional} is in the minimal file");
    }
}

#[test]
fn ambiguous_face_matches_its_golden_file() {
    let candidates = vec![candidate(3, 0.9001), candidate(12, 0.8999)];
    let ambiguous = Face { candidates, ..minimal_face(Verdict::Ambiguous) };
    let event = Event::PhotoProcessed(PhotoProcessed { faces: vec![ambiguous], ..photo_processed(false) });
    let name = "events/PhotoProcessed.v1.ambiguous.json";
    golden_file::check(name, &data(&event));
    assert_eq!(Event::parse(event.event_type(), &golden_file::read(name).to_string()), Ok(event));
}

#[test]
fn adopted_tag_matches_its_golden_file() {
    let event = Event::PhotoProcessed(PhotoProcessed { adopted: vec![person(7)], ..photo_processed(false) });
    let name = "events/PhotoProcessed.v1.adopted.json";
    golden_file::check(name, &data(&event));
    assert_eq!(Event::parse(event.event_type(), &golden_file::read(name).to_string()), Ok(event));
}

#[test]
fn minimal_person_files_omit_optional_fields() {
    for (event_type, optional) in [("FacesReviewed", "/faces/1/evidence"), ("FacesReviewed", "/faces/0/candidates/0")]
        .into_iter()
        .chain([("PersonsMerged", "/row"), ("PersonsMerged", "/users"), ("PersonsMerged", "/grounds/alike")])
    {
        let rich = golden_file::read(&format!("events/{event_type}.v1.json"));
        let minimal = golden_file::read(&format!("events/{event_type}.v1.minimal.json"));
        assert!(rich.pointer(optional).is_some(), "{optional} is not in the rich file");
        assert!(minimal.pointer(optional).is_none(), "{optional} is in the minimal file");
    }
}

#[test]
fn minimal_deletion_files_omit_optional_fields() {
    let deleted = ["/uploader", "/sequencer", "/objects", "/persons", "/known_by", "/follows"];
    let deleted = deleted.map(|name| ("PhotoDeleted", name));
    let adopted = ["/original_key", "/images", "/taggings/0/s3_key", "/taggings/0/images", "/follows"];
    let adopted = adopted.map(|name| ("PhotoAdopted", name));
    let profile = ["/first_face", "/face", "/follows"].map(|name| ("ProfileProcessed", name));
    for (event_type, optional) in deleted.into_iter().chain(profile).chain(adopted) {
        let rich = golden_file::read(&format!("events/{event_type}.v1.json"));
        let minimal = golden_file::read(&format!("events/{event_type}.v1.minimal.json"));
        assert!(rich.pointer(optional).is_some(), "{optional} is not in the rich file");
        assert!(minimal.pointer(optional).is_none(), "{optional} is in the minimal file");
    }
}

#[test]
fn event_ids_never_change() {
    let ids = every_event(true).map(|event| format!("{} {}", event.event_type(), event.id()));
    assert_eq!(
        ids,
        [
            "PhotoProcessed 381102b0-9a54-56d3-b555-20b93b57201b",
            "PhotoRejected 183019b7-8188-5ca2-8139-0614eb3ca489",
            "PersonsAllocated 2824d52d-e479-5778-8392-961d0271d082",
            "PersonRenamed 3aa89908-fb1b-5a8e-9247-df397d6363c0",
            "FacesReviewed 9255e2ed-5d73-54cc-a90a-057265e1cb56",
            "PersonsMerged 9b8c6fe5-b74d-5cf0-8853-e091c742273c",
            "MergeUndone 28cfe461-3a07-50e5-a75f-c5b4cb3d6e84",
            "PhotoDeleted 704436a4-44d1-5150-9f2e-08c2962dfe65",
            "ProfileProcessed cbf2f623-82d7-5592-acb3-20ccd00db431",
            "PersonsForgotten e653ac5f-fedf-5dc6-b606-07b0e2d20113",
            "PersonReinstated c5cf6d65-ae01-52e9-b960-8434f24dc400",
            "PersonPictured ca3c5f79-dec0-54d1-9e47-a202ca51d13e",
            "NumbersReserved 66d2996a-5985-5d07-a88e-6926bb6d30a1",
            "PersonAdopted 7af6fb75-c77e-52ac-acd6-b015c2d7b8ef",
            "PhotoAdopted 840d9a17-f8f5-5a87-86a6-ed871576e0f8",
            "LevelRaised 6e9c922d-82f0-59c8-aa06-4c3cb3db8607",
        ]
    );
}

#[test]
fn event_id_depends_on_the_subject_only() {
    let (mut analyzed_again, mut newer) = (photo_processed(true), photo_processed(true));
    analyzed_again.faces.clear();
    newer.source.version = "another".into();
    let id = |event| Event::PhotoProcessed(event).id();
    assert_eq!(id(analyzed_again), id(photo_processed(true)));
    assert_ne!(id(newer), id(photo_processed(true)));

    // A merge, its undo and a second merge are three events.
    let requested = PersonsMerged { grounds: MergeReason::Requested, users: Vec::new(), ..persons_merged(true) };
    let again = PersonsMerged { identity_seq: Seq(46), ..persons_merged(true) };
    let id = |event| Event::PersonsMerged(event).id();
    assert_eq!(id(requested), id(persons_merged(true)));
    assert_ne!(id(again), id(persons_merged(true)));
    let (later, review) = (FacesReviewed { follows: Seq(19), ..faces_reviewed(true) }, faces_reviewed(true));
    assert_ne!(Event::FacesReviewed(later).id(), Event::FacesReviewed(review).id());

    // A second deletion is another event, and so is a second forgetting.
    let again = PhotoDeleted { follows: Some(Seq(25)), ..photo_deleted(true) };
    assert_ne!(Event::PhotoDeleted(again).id(), Event::PhotoDeleted(photo_deleted(true)).id());
    let bare = PhotoDeleted { objects: Vec::new(), uploader: None, ..photo_deleted(true) };
    assert_eq!(Event::PhotoDeleted(bare).id(), Event::PhotoDeleted(photo_deleted(true)).id());
    let again = PersonsForgotten { identity_seq: Seq(49), ..persons_forgotten(true) };
    assert_ne!(Event::PersonsForgotten(again).id(), Event::PersonsForgotten(persons_forgotten(true)).id());
}

#[test]
fn unknown_type_is_unreadable_and_named() {
    let unreadable = Event::parse("PhotoTeleported", "{}").unwrap_err();
    assert_eq!(unreadable, UnreadableEvent::UnknownType("PhotoTeleported".into()));
    assert!(unreadable.to_string().contains("\"PhotoTeleported\""), "{unreadable}");
}

#[test]
fn other_or_missing_version_is_unreadable_and_named() {
    for event in every_event(true) {
        let mut newer = data(&event);
        newer["v"] = json!(2);
        let unreadable = Event::parse(event.event_type(), &newer.to_string()).unwrap_err();
        assert!(matches!(&unreadable, UnreadableEvent::BadData { event_type, .. } if event_type == event.event_type()));
        let text = unreadable.to_string();
        assert!(text.starts_with(event.event_type()) && text.contains("schema version 2, expected 1"), "{text}");

        newer.as_object_mut().unwrap().remove("v");
        assert!(Event::parse(event.event_type(), &newer.to_string()).is_err(), "{newer}");
    }
}

#[test]
fn damaged_data_is_unreadable_and_unknown_fields_are_ignored() {
    for event in every_event(true) {
        let whole = event.to_data();
        assert!(Event::parse(event.event_type(), &whole[..whole.len() - 1]).is_err());
        let mut later = data(&event);
        later["added_later"] = json!({ "by": "a later release" });
        assert_eq!(Event::parse(event.event_type(), &later.to_string()), Ok(event));
    }
}
