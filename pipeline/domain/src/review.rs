//! Faces that nobody knew, looked at again when more is known.

use std::collections::BTreeSet;

use crate::{
    Candidate, Event, Evidence, FacesReviewed, ImageId, PersonId, Policy, ReviewedFace, Seq, Verdict, Version,
};

/// The faces of one photo that are nobody's.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// The photo.
    pub image_id: ImageId,
    /// Its last event.
    pub follows: Seq,
    /// The identity event up to which the known persons were considered.
    pub identity_seq: Seq,
    /// The faces, and whom they are like by now.
    pub faces: Vec<UnknownFace>,
    /// Among how many persons the nearest were looked for.
    pub persons: usize,
}

/// A face that is nobody's.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownFace {
    /// Its number in the photo.
    pub n: u16,
    /// The nearest persons.
    pub candidates: Vec<Candidate>,
    /// Whose it is by all of a person's faces, if that is clear.
    pub witnessed: Option<(PersonId, Evidence)>,
}

/// The event that says who they are, if any of them is somebody: by the rule for any face, or else by evidence.
pub fn review(photo: Review, policy: &Policy) -> Option<Event> {
    let rules = policy.among(photo.persons);
    let mut taken = BTreeSet::new();
    let identified = photo.faces.into_iter().filter_map(|UnknownFace { n, candidates, witnessed }| {
        let near = rules.recognise(&candidates).filter(|verdict| verdict.person().is_some());
        let (verdict, evidence) = match (near, witnessed) {
            (Some(verdict), _) => (verdict, None),
            (None, Some((person, evidence))) => (Verdict::Matched(person), Some(evidence)),
            (None, None) => return None,
        };
        // Two faces of one photo are two persons.
        verdict.person().filter(|person| taken.insert(*person))?;
        Some(ReviewedFace { n, candidates: rules.kept(candidates), threshold: rules.threshold, evidence, verdict })
    });
    let faces: Vec<_> = identified.collect();
    let Review { image_id, follows, identity_seq, .. } = photo;
    let event = FacesReviewed { v: Version, image_id, identity_seq, faces, follows };
    (!event.faces.is_empty()).then_some(Event::FacesReviewed(event))
}
