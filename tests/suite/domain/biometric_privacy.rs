//! Signatures are biometric data: no event contains one, in any encoding.

use std::collections::BTreeSet;

use sparks_domain::{
    Event, Gallery, MergeReason, PersonsMerged, ReviewInput, Scale, Seq, Signature, UnidentifiedFace, consolidate,
    review,
};

use crate::given_when_then::{BEACH, events_of, good_face, merged, person, photo, policy, small_face, undone};

fn signature(phase: f32) -> Signature {
    let vector: Vec<f32> = (0..32_u8).map(|i| (f32::from(i) * 0.7 + phase).sin()).collect();
    Signature::quantise(&vector).expect("a direction")
}

/// Returns short pieces of every encoding of the bytes, so that even a part is found.
fn encodings(signature: &Signature) -> Vec<String> {
    let bytes = signature.to_bytes();
    let list = |numbers: &[String]| numbers.join(",");
    let signed: Vec<String> = signature.as_slice().iter().map(ToString::to_string).collect();
    let unsigned: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let numbers = signed.windows(3).chain(unsigned.windows(3)).map(list);
    let digits = hex.windows(4).map(<[String]>::concat);
    let base64 = (0..3).flat_map(|start| {
        let groups: Vec<&[u8]> = bytes[start..].chunks_exact(3).collect();
        groups.windows(2).map(base64).collect::<Vec<_>>()
    });
    numbers.chain(digits).chain(base64).collect()
}

/// Encodes whole groups of three bytes in base 64.
fn base64(groups: &[&[u8]]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &&[u8]| {
        let bits = bytes.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63]))
    };
    groups.iter().flat_map(group).collect()
}

/// Returns the first piece of the signature in the text.
fn find_signature(text: &str, signature: &Signature) -> Option<String> {
    let text: String = text.split_whitespace().collect();
    let url_safe = text.replace('-', "+").replace('_', "/");
    let lower = text.to_ascii_lowercase();
    encodings(signature).into_iter().find(|piece| [&text, &url_safe, &lower].iter().any(|text| text.contains(piece)))
}

#[test]
fn photo_events_contain_no_signature() {
    let faces = [
        good_face().with_signature(signature(0.0)),
        good_face().with_signature(signature(1.0)),
        small_face().with_signature(signature(2.0)),
    ];
    let events = events_of(photo(BEACH).with_faces(faces).similar(1, 2, 0.9));
    assert_eq!(events.len(), 2);
    let profile = events_of(
        photo(BEACH).with_faces([good_face().with_signature(signature(0.0))]).into_profile_of("ada@example.org"),
    );
    for event in events.iter().chain(&profile) {
        for phase in [0.0, 1.0, 2.0] {
            assert_eq!(find_signature(&event.to_data(), &signature(phase)), None, "{}", event.to_data());
            assert_eq!(find_signature(&format!("{event:?}"), &signature(phase)), None);
        }
    }
}

/// Events about persons are derived from signatures, too.
#[test]
fn person_events_contain_no_signature() {
    let scale = Scale { median: 0.0, spread: 0.1, match_from: 4.1 };
    let (gallery, phases) = (&mut Gallery::default(), [0.0, 0.1, 2.0]);
    for (number, phase) in (1..).zip(phases) {
        gallery.enroll(person(number), "test-1", &signature(phase));
    }
    let found = consolidate(gallery, "test-1", scale, &BTreeSet::new(), None);
    let proposal = found.merges.first().expect("two similar persons");
    let merge = PersonsMerged { grounds: MergeReason::SimilarFaces(proposal.evidence), ..merged(1, 2, Seq(1)) };
    let candidates = gallery.nearest("test-1", &signature(0.05), 3);
    let by_all_templates = Some((person(1), proposal.evidence));
    let unidentified = ReviewInput {
        image_id: BEACH.parse().unwrap(),
        follows: Seq(1),
        identity_seq: Seq(1),
        faces: vec![UnidentifiedFace { n: 0, candidates, scale: None, by_all_templates }],
        persons: 3,
    };
    let reviewed = review(unidentified, &policy()).expect("an identified face");
    for event in [Event::PersonsMerged(merge.clone()), undone(&merge, Seq(2)), reviewed] {
        for phase in phases.into_iter().chain([0.05]) {
            assert_eq!(find_signature(&event.to_data(), &signature(phase)), None, "{}", event.to_data());
        }
    }
}

#[test]
fn debug_output_contains_no_signature() {
    let command = sparks_domain::Command::from(photo(BEACH).with_faces([good_face().with_signature(signature(0.0))]));
    assert_eq!(find_signature(&format!("{command:?}"), &signature(0.0)), None);
    assert_eq!(find_signature(&format!("{command:#?}"), &signature(0.0)), None);
}

/// The search itself must find what it looks for.
#[test]
fn signature_search_finds_every_encoding() {
    let secret = signature(0.0);
    let bytes = secret.to_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    let base64 = base64(&bytes.chunks_exact(3).collect::<Vec<_>>());
    let shifted = self::base64(&bytes[1..].chunks_exact(3).collect::<Vec<_>>());
    let leaks = [
        format!("{:?}", secret.as_slice()),
        format!("{bytes:?}"),
        format!("{bytes:#?}"),
        hex.to_lowercase(),
        hex,
        base64.replace('+', "-").replace('/', "_"),
        base64,
        shifted,
    ];
    for leak in leaks {
        assert!(find_signature(&format!("{{\"face\":\"{leak}\"}}"), &secret).is_some(), "{leak}");
    }
    assert_eq!(find_signature("no signature", &secret), None);
}
