//! Proptest strategies for arbitrary events, within the range of what analyzers measure.

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};
use sparks_domain::{
    AdoptedTagging, Allocation, Attributes, Candidate, CropAnalysis, CropFace, DeletionCause, Email, Event, EventId,
    Evidence, Face, FaceBox, FaceId, FacesReviewed, ImageId, Level, LevelRaised, MergeReason, MergeUndone,
    NumbersReserved, Origin, PersonAdopted, PersonId, PersonPictured, PersonReinstated, PersonRenamed,
    PersonsAllocated, PersonsForgotten, PersonsMerged, PhotoAdopted, PhotoDeleted, PhotoProcessed, PhotoRejected,
    Point, ProfileProcessed, Quality, RejectCode, Rejection, ReviewedFace, Seq, SourceObject, TakenAt, Timestamp,
    Variant, Variants, Verdict, Version,
};

pub fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => photo_processed().prop_map(Event::PhotoProcessed),
        1 => photo_rejected().prop_map(Event::PhotoRejected),
        1 => persons_allocated().prop_map(Event::PersonsAllocated),
        1 => person_renamed().prop_map(Event::PersonRenamed),
        1 => faces_reviewed().prop_map(Event::FacesReviewed),
        1 => persons_merged().prop_map(Event::PersonsMerged),
        1 => merge_undone().prop_map(Event::MergeUndone),
        1 => photo_deleted().prop_map(Event::PhotoDeleted),
        1 => profile_processed().prop_map(Event::ProfileProcessed),
        1 => persons_forgotten().prop_map(Event::PersonsForgotten),
        1 => person_reinstated().prop_map(Event::PersonReinstated),
        1 => person_pictured().prop_map(Event::PersonPictured),
        1 => any::<(u32, u64)>().prop_map(|(up_to, seq)| {
            Event::NumbersReserved(NumbersReserved { v: Version, up_to, identity_seq: Seq(seq) })
        }),
        1 => (0..=Level::MAX.0, any::<u64>()).prop_map(|(level, seq)| {
            Event::LevelRaised(LevelRaised { v: Version, level: Level(level), identity_seq: Seq(seq) })
        }),
        1 => person_adopted().prop_map(Event::PersonAdopted),
        1 => photo_adopted().prop_map(Event::PhotoAdopted),
    ]
}

fn image_id() -> impl Strategy<Value = ImageId> {
    (any::<Option<u32>>(), any::<[u8; 16]>())
        .prop_map(|(time, content)| ImageId::of_content(time.map(i64::from), content))
}

fn person_id() -> impl Strategy<Value = PersonId> {
    (1..=u32::MAX).prop_map(|number| PersonId::new(number).expect("not zero"))
}

fn face_id() -> impl Strategy<Value = FaceId> {
    (image_id(), any::<u16>()).prop_map(|(image, n)| FaceId { image, n })
}

fn email() -> impl Strategy<Value = Email> {
    "[a-z.+\"\\\\é]{1,12}@[a-z.]{1,12}".prop_map(|text| text.parse().expect("an address"))
}

/// A fraction of the photo's side, with the precision of events.
fn fraction() -> impl Strategy<Value = f32> {
    (-10_000..=110_000_i32).prop_map(|steps| (f64::from(steps) / 1e5) as f32)
}

fn source() -> impl Strategy<Value = SourceObject> {
    let optional = || option::of(any::<String>());
    (any::<String>(), any::<String>(), optional(), any::<u64>(), optional(), optional()).prop_map(
        |(key, version, sequencer, bytes, mime_type, file_name)| SourceObject {
            key,
            version,
            sequencer,
            bytes,
            mime_type,
            file_name,
        },
    )
}

fn variant() -> impl Strategy<Value = Variant> {
    let fields = (any::<String>(), any::<u32>(), any::<u32>(), any::<u64>(), any::<Option<String>>());
    fields.prop_map(|(key, width, height, bytes, sha256)| Variant { key, width, height, bytes, sha256 })
}

fn attribute() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0.0..100.0_f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        (0..99_u8, 0..99_u8).prop_map(|(low, high)| json!({ "low": low, "high": [high] })),
    ]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        person_id().prop_map(Verdict::Matched),
        person_id().prop_map(Verdict::NewPerson),
        Just(Verdict::TooPoor),
        Just(Verdict::Ambiguous),
    ]
}

fn candidate() -> impl Strategy<Value = Candidate> {
    (person_id(), -1.0..1.0_f32).prop_map(|(person, similarity)| Candidate { person, similarity })
}

fn quality() -> impl Strategy<Value = Quality> {
    (0.0..20_000.0_f32, 0.0..1.0_f32, option::of(0.0..1.0_f32)).prop_map(|(size, sharpness, turn)| Quality {
        size,
        sharpness,
        turn,
    })
}

fn face() -> impl Strategy<Value = Face> {
    let bounds = [fraction(), fraction(), fraction(), fraction()].prop_map(FaceBox::from);
    let landmarks = vec([fraction(), fraction()].prop_map(Point::from), 0..6);
    let attributes = prop::collection::btree_map(any::<String>(), attribute(), 0..4);
    let detected = (bounds, landmarks, quality(), 0.0..1.0_f32, attributes, any::<String>());
    let decided = (vec(candidate(), 0..4), 0.0..1.0_f32, verdict(), any::<bool>());
    (detected, decided).prop_map(|((bounds, landmarks, quality, confidence, attributes, model), decided)| {
        let (candidates, threshold, verdict, template) = decided;
        Face { bounds, landmarks, quality, confidence, attributes, model, candidates, threshold, verdict, template }
    })
}

fn photo_processed() -> impl Strategy<Value = PhotoProcessed> {
    let photo = (image_id(), email(), source(), any::<(u32, u32)>(), option::of(any::<String>()));
    let result = (variant(), variant(), any::<String>(), any::<u64>(), vec(face(), 0..4), vec(person_id(), 0..3));
    (photo, result).prop_map(|((image_id, uploader, source, (width, height), taken_at), result)| {
        let (large, medium, analyzer, seq, faces, adopted) = result;
        PhotoProcessed {
            v: Version,
            image_id,
            uploader,
            source,
            width,
            height,
            taken_at: taken_at.map(TakenAt),
            variants: Variants { large, medium },
            analyzer,
            identity_seq: Seq(seq),
            first_face: 0,
            adopted,
            follows: None,
            faces,
        }
    })
}

fn photo_rejected() -> impl Strategy<Value = PhotoRejected> {
    let code = prop::sample::select(vec![
        RejectCode::Empty,
        RejectCode::TooManyBytes,
        RejectCode::TooManyPixels,
        RejectCode::TooMuchMetadata,
        RejectCode::UnsupportedFormat,
        RejectCode::Damaged,
    ]);
    (image_id(), email(), source(), code, any::<String>()).prop_map(|(image_id, uploader, source, code, message)| {
        PhotoRejected { v: Version, image_id, uploader, source, reason: Rejection { code, message }, follows: None }
    })
}

fn persons_allocated() -> impl Strategy<Value = PersonsAllocated> {
    let allocation = (person_id(), face_id(), vec(face_id(), 0..4)).prop_map(|(person, face, templates)| Allocation {
        person,
        face,
        templates,
    });
    (image_id(), any::<String>(), any::<u32>(), vec(allocation, 0..4)).prop_map(
        |(image_id, subject, counter, persons)| PersonsAllocated {
            v: Version,
            image_id,
            photo_event: EventId::about("PhotoProcessed", &subject),
            counter,
            persons,
        },
    )
}

fn person_renamed() -> impl Strategy<Value = PersonRenamed> {
    (person_id(), any::<u64>(), any::<String>(), any::<String>()).prop_map(|(person, seq, from, to)| PersonRenamed {
        v: Version,
        person,
        identity_seq: Seq(seq),
        from,
        to,
    })
}

fn evidence() -> impl Strategy<Value = Evidence> {
    let measure = || -20.0..20.0_f32;
    (-1.0..1.0_f32, measure(), measure(), measure(), any::<u32>()).prop_map(
        |(similarity, distinction, lead, beyond, pairs)| Evidence { similarity, distinction, lead, beyond, pairs },
    )
}

fn faces_reviewed() -> impl Strategy<Value = FacesReviewed> {
    let face = (any::<u16>(), vec(candidate(), 0..4), 0.0..1.0_f32, option::of(evidence()), verdict()).prop_map(
        |(n, candidates, threshold, evidence, verdict)| ReviewedFace { n, candidates, threshold, evidence, verdict },
    );
    (image_id(), any::<(u64, u64)>(), vec(face, 0..4)).prop_map(|(image_id, (seq, follows), faces)| FacesReviewed {
        v: Version,
        image_id,
        identity_seq: Seq(seq),
        faces,
        follows: Seq(follows),
    })
}

fn persons_merged() -> impl Strategy<Value = PersonsMerged> {
    let grounds = prop_oneof![Just(MergeReason::Requested), evidence().prop_map(MergeReason::SimilarFaces)];
    let row = prop::collection::btree_map(any::<String>(), attribute(), 0..4).prop_map(|row| row.into_iter().collect());
    (person_id(), person_id(), any::<u64>(), grounds, row, vec(email(), 0..3)).prop_map(
        |(into, from, seq, grounds, row, users)| PersonsMerged {
            v: Version,
            into,
            from,
            identity_seq: Seq(seq),
            grounds,
            row,
            users,
        },
    )
}

fn merge_undone() -> impl Strategy<Value = MergeUndone> {
    (person_id(), person_id(), any::<u64>(), any::<String>()).prop_map(|(into, from, seq, subject)| MergeUndone {
        v: Version,
        merge: EventId::about("PersonsMerged", &subject),
        into,
        from,
        identity_seq: Seq(seq),
    })
}

fn photo_deleted() -> impl Strategy<Value = PhotoDeleted> {
    let cause = prop_oneof![Just(DeletionCause::Requested), Just(DeletionCause::OriginalRemoved)];
    let photo = (image_id(), cause, option::of(email()), any::<String>(), option::of(any::<String>()));
    let lists = (vec(any::<String>(), 0..4), vec(person_id(), 0..4), vec(face_id(), 0..4), option::of(any::<u64>()));
    let requested = option::of((0..4_000_000_000_000_i64).prop_map(Timestamp::from_millis));
    (photo, lists, requested).prop_map(|((image_id, cause, uploader, version, sequencer), lists, requested)| {
        let (objects, persons, known_by, follows) = lists;
        PhotoDeleted {
            v: Version,
            image_id,
            cause,
            uploader,
            version,
            sequencer,
            objects,
            persons,
            known_by,
            original: requested.map(|requested| requested.as_millis().to_string()),
            requested,
            follows: follows.map(Seq),
        }
    })
}

fn profile_processed() -> impl Strategy<Value = ProfileProcessed> {
    let decided = (any::<u64>(), any::<u16>(), option::of(face()), option::of(any::<u64>()));
    (email(), source(), any::<String>(), decided).prop_map(|(email, source, analyzer, decided)| {
        let (seq, first_face, face, follows) = decided;
        ProfileProcessed {
            v: Version,
            image_id: ImageId::of_profile(&email),
            email,
            source,
            analyzer,
            identity_seq: Seq(seq),
            first_face,
            face,
            follows: follows.map(Seq),
        }
    })
}

fn persons_forgotten() -> impl Strategy<Value = PersonsForgotten> {
    (vec(person_id(), 0..4), any::<u64>()).prop_map(|(persons, seq)| PersonsForgotten {
        v: Version,
        persons,
        identity_seq: Seq(seq),
    })
}

fn person_reinstated() -> impl Strategy<Value = PersonReinstated> {
    (person_id(), face_id(), any::<u64>()).prop_map(|(person, face, seq)| PersonReinstated {
        v: Version,
        person,
        face,
        identity_seq: Seq(seq),
    })
}

fn person_pictured() -> impl Strategy<Value = PersonPictured> {
    (person_id(), face_id(), any::<u64>()).prop_map(|(person, face, seq)| PersonPictured {
        v: Version,
        person,
        face,
        identity_seq: Seq(seq),
    })
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    (0..4_000_000_000_000_i64).prop_map(Timestamp::from_millis)
}

fn crop_analysis() -> impl Strategy<Value = CropAnalysis> {
    let crop = (any::<String>(), face()).prop_map(|(version, face)| CropFace {
        version,
        bounds: face.bounds,
        landmarks: face.landmarks,
        quality: face.quality,
        confidence: face.confidence,
        model: face.model,
    });
    (crop, any::<String>(), 0..5).prop_map(|(crop, reason, kind)| match kind {
        0 => CropAnalysis::NoCrop,
        1 => CropAnalysis::Unreadable(reason),
        2 => CropAnalysis::NoFace,
        3 => CropAnalysis::TooPoor(crop),
        _ => CropAnalysis::Usable(crop),
    })
}

fn person_adopted() -> impl Strategy<Value = PersonAdopted> {
    let row = (person_id(), any::<String>(), timestamp(), any::<String>());
    (row, any::<String>(), crop_analysis(), any::<u64>()).prop_map(|(row, analyzer, likeness, seq)| {
        let (person, display_name, created_at, crop_key) = row;
        PersonAdopted {
            v: Version,
            person,
            display_name,
            created_at,
            crop_key,
            origin: Origin::Table,
            face: FaceId::of_crop(person),
            analyzer,
            likeness,
            identity_seq: Seq(seq),
        }
    })
}

fn images() -> impl Strategy<Value = Attributes> {
    prop::collection::btree_map(any::<String>(), attribute(), 0..4).prop_map(|images| images.into_iter().collect())
}

fn photo_adopted() -> impl Strategy<Value = PhotoAdopted> {
    let tagging = (person_id(), option::of(any::<String>()), images(), timestamp());
    let tagging =
        tagging.prop_map(|(person, s3_key, images, created_at)| AdoptedTagging { person, s3_key, images, created_at });
    let row = (image_id(), email(), option::of(any::<String>()), images());
    (row, vec(tagging, 0..4), option::of(any::<u64>())).prop_map(|(row, taggings, follows)| {
        let (image_id, uploader, original_key, images) = row;
        let follows = follows.map(Seq);
        PhotoAdopted { v: Version, image_id, uploader, original_key, images, origin: Origin::Table, taggings, follows }
    })
}
