//! Faces that nobody knew, looked at again when more is known.

use crate::{Candidate, Event, FacesReviewed, ImageId, Policy, ReviewedFace, Seq, Version};

/// The faces of one photo that are nobody's, and whom they are like by now.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// The photo.
    pub image_id: ImageId,
    /// Its last event.
    pub follows: Seq,
    /// The identity event up to which the known persons were considered.
    pub identity_seq: Seq,
    /// Each face's number, and the nearest persons.
    pub faces: Vec<(u16, Vec<Candidate>)>,
    /// Among how many persons the nearest were looked for.
    pub persons: usize,
}

/// The event that says who they are, if any of them is somebody.
pub fn review(photo: Review, policy: &Policy) -> Option<Event> {
    let rules = policy.among(photo.persons);
    let identified = photo.faces.into_iter().filter_map(|(n, candidates)| {
        let verdict = rules.recognise(&candidates).filter(|verdict| verdict.person().is_some())?;
        Some(ReviewedFace { n, candidates: rules.kept(candidates), threshold: rules.threshold, verdict })
    });
    let faces: Vec<_> = identified.collect();
    let Review { image_id, follows, identity_seq, .. } = photo;
    (!faces.is_empty()).then_some(Event::FacesReviewed(FacesReviewed {
        v: Version,
        image_id,
        identity_seq,
        faces,
        follows,
    }))
}
