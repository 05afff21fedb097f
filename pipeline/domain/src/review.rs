//! Faces that nobody knew, looked at again when more is known.

use std::collections::{BTreeSet, HashMap};

use crate::{
    Candidate, Event, Evidence, FacesReviewed, Gallery, ImageId, PersonId, Policy, ReviewedFace, Scale, Seq, Signature,
    Verdict, Version, Witnesses,
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

/// Everybody known, for looking at faces again that nobody knew.
pub struct SecondLook<'a> {
    gallery: &'a Gallery,
    witnesses: HashMap<&'a str, Witnesses<'a>>,
    candidates: usize,
}

impl<'a> SecondLook<'a> {
    /// With what is known by now. Of models without a scale only the nearest are asked.
    pub fn new(gallery: &'a Gallery, scale: fn(&str) -> Option<Scale>, policy: &Policy) -> Self {
        let models = gallery.models().filter_map(|model| Some((model, scale(model)?)));
        let witnesses = models.map(|(model, scale)| (model, Witnesses::new(gallery, model, scale))).collect();
        Self { gallery, witnesses, candidates: policy.candidates.max(2) }
    }

    /// Whom this face of a photo is like, except for those who are `present` in it: two faces are two persons.
    pub fn face(&self, n: u16, model: &str, signature: &Signature, present: &[PersonId]) -> UnknownFace {
        let mut candidates = self.gallery.nearest(model, signature, self.candidates + present.len());
        candidates.retain(|candidate| !present.contains(&candidate.person));
        let witnessed = self.witnesses.get(model).and_then(|witnesses| witnesses.identify(signature, present));
        UnknownFace { n, candidates, witnessed }
    }
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
