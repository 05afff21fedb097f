//! What a face looks like is biometric: no event tells it, in no spelling.

use std::collections::BTreeSet;

use sparks_domain::{
    Event, Gallery, Grounds, PersonsMerged, Review, Scale, Seq, Signature, UnknownFace, consolidate, review,
};

use crate::story::{BEACH, good, happened, merged, person, photo, policy, small, undone};

fn signature(phase: f32) -> Signature {
    let vector: Vec<f32> = (0..32_u8).map(|i| (f32::from(i) * 0.7 + phase).sin()).collect();
    Signature::quantise(&vector).expect("a direction")
}

/// Every way the bytes might be written, in pieces short enough that a part gives them away.
fn spellings(signature: &Signature) -> Vec<String> {
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

/// Whole groups of three bytes in base 64, both alphabets read as one.
fn base64(groups: &[&[u8]]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &&[u8]| {
        let bits = bytes.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63]))
    };
    groups.iter().flat_map(group).collect()
}

/// The first trace of the signature in the text.
fn trace(text: &str, signature: &Signature) -> Option<String> {
    let text: String = text.split_whitespace().collect();
    let url_safe = text.replace('-', "+").replace('_', "/");
    let lower = text.to_ascii_lowercase();
    spellings(signature).into_iter().find(|piece| [&text, &url_safe, &lower].iter().any(|text| text.contains(piece)))
}

#[test]
fn no_event_has_a_trace_of_a_signature() {
    let faces = [good().looking(signature(0.0)), good().looking(signature(1.0)), small().looking(signature(2.0))];
    let events = happened(photo(BEACH).of(faces).alike(1, 2, 0.9));
    assert_eq!(events.len(), 2);
    let profile = happened(photo(BEACH).of([good().looking(signature(0.0))]).of_user("ada@example.org"));
    for event in events.iter().chain(&profile) {
        for phase in [0.0, 1.0, 2.0] {
            assert_eq!(trace(&event.to_data(), &signature(phase)), None, "{}", event.to_data());
            assert_eq!(trace(&format!("{event:?}"), &signature(phase)), None);
        }
    }
}

/// What is said about persons comes from signatures, too.
#[test]
fn no_event_about_persons_has_a_trace_of_a_signature() {
    let scale = Scale { unrelated: 0.0, spread: 0.1, skew: 1.0 };
    let (gallery, phases) = (&mut Gallery::default(), [0.0, 0.1, 2.0]);
    for (number, phase) in (1..).zip(phases) {
        gallery.learn(person(number), "test-1", &signature(phase));
    }
    let found = consolidate(gallery, "test-1", scale, &BTreeSet::new(), None);
    let join = found.joins.first().expect("two persons who look alike");
    let merge = PersonsMerged { grounds: Grounds::Alike(join.evidence), ..merged(1, 2, Seq(1)) };
    let candidates = gallery.nearest("test-1", &signature(0.05), 3);
    let witnessed = Some((person(1), join.evidence));
    let unknown = Review {
        image_id: BEACH.parse().unwrap(),
        follows: Seq(1),
        identity_seq: Seq(1),
        faces: vec![UnknownFace { n: 0, candidates, witnessed }],
        persons: 3,
    };
    let reviewed = review(unknown, &policy()).expect("somebody");
    for event in [Event::PersonsMerged(merge.clone()), undone(&merge, Seq(2)), reviewed] {
        for phase in phases.into_iter().chain([0.05]) {
            assert_eq!(trace(&event.to_data(), &signature(phase)), None, "{}", event.to_data());
        }
    }
}

#[test]
fn no_debug_text_has_a_trace_of_a_signature() {
    let command = sparks_domain::Command::from(photo(BEACH).of([good().looking(signature(0.0))]));
    assert_eq!(trace(&format!("{command:?}"), &signature(0.0)), None);
    assert_eq!(trace(&format!("{command:#?}"), &signature(0.0)), None);
}

/// The search itself must see what it looks for.
#[test]
fn a_trace_would_be_seen() {
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
        assert!(trace(&format!("{{\"face\":\"{leak}\"}}"), &secret).is_some(), "{leak}");
    }
    assert_eq!(trace("nothing to see", &secret), None);
}
