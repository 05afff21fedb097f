//! Review of unidentified faces when more templates are enrolled.

use std::collections::{BTreeSet, HashMap};

use crate::{
    Candidate, Event, Evidence, FacesReviewed, Gallery, ImageId, PersonId, Policy, ReviewedFace, Scale, Seq, Signature,
    TemplateEvidence, Verdict, Version,
};

/// The unidentified faces of one photo.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewInput {
    /// The photo.
    pub image_id: ImageId,
    /// Its last event.
    pub follows: Seq,
    /// The identity event up to which persons were considered.
    pub identity_seq: Seq,
    /// The faces, with their candidates now.
    pub faces: Vec<UnidentifiedFace>,
    /// The number of persons that were searched.
    pub persons: usize,
}

/// An unidentified face.
#[derive(Debug, Clone, PartialEq)]
pub struct UnidentifiedFace {
    /// Its number in the photo.
    pub n: u16,
    /// The nearest persons.
    pub candidates: Vec<Candidate>,
    /// The scale of its model, if that has one: models of several installations may be in one gallery.
    pub scale: Option<Scale>,
    /// The person that all their templates together identify, if that is clear.
    pub by_all_templates: Option<(PersonId, Evidence)>,
}

/// Searches the gallery for unidentified faces.
pub struct Reviewer<'a> {
    gallery: &'a Gallery,
    evidence: HashMap<&'a str, TemplateEvidence<'a>>,
    scale: fn(&str) -> Option<Scale>,
    candidates: usize,
}

impl<'a> Reviewer<'a> {
    /// Returns a reviewer over the gallery as it is now. Models without a scale are searched by the nearest template
    /// only.
    pub fn new(gallery: &'a Gallery, scale: fn(&str) -> Option<Scale>, policy: &Policy) -> Self {
        let models = gallery.models().filter_map(|model| Some((model, scale(model)?)));
        let evidence = models.map(|(model, scale)| (model, TemplateEvidence::new(gallery, model, scale))).collect();
        Self { gallery, evidence, scale, candidates: policy.candidates.max(2) }
    }

    /// Searches for this face. Persons who are `present` in the photo are excluded: two faces are two persons.
    pub fn search(&self, n: u16, model: &str, signature: &Signature, present: &[PersonId]) -> UnidentifiedFace {
        let mut candidates = self.gallery.nearest(model, signature, self.candidates + present.len());
        candidates.retain(|candidate| !present.contains(&candidate.person));
        let by_all_templates = self.evidence.get(model).and_then(|evidence| evidence.identify(signature, present));
        UnidentifiedFace { n, candidates, scale: (self.scale)(model), by_all_templates }
    }
}

/// Returns the event that identifies faces of the photo, if any is identified: by the match rule, or else by all
/// templates of a person together.
pub fn review(photo: ReviewInput, policy: &Policy) -> Option<Event> {
    let mut used = BTreeSet::new();
    let identified =
        photo.faces.into_iter().filter_map(|UnidentifiedFace { n, candidates, scale, by_all_templates }| {
            let policy = scale.map_or_else(|| policy.clone(), |scale| policy.for_scale(scale));
            let rule = policy.match_rule(photo.persons);
            let matched = rule.identify(&candidates).filter(|verdict| verdict.person().is_some());
            let (verdict, evidence) = match (matched, by_all_templates) {
                (Some(verdict), _) => (verdict, None),
                (None, Some((person, evidence))) => (Verdict::Matched(person), Some(evidence)),
                (None, None) => return None,
            };
            // Two faces of one photo are two persons.
            verdict.person().filter(|person| used.insert(*person))?;
            let candidates = rule.recorded_candidates(candidates);
            Some(ReviewedFace { n, candidates, threshold: rule.threshold, evidence, verdict })
        });
    let faces: Vec<_> = identified.collect();
    let ReviewInput { image_id, follows, identity_seq, .. } = photo;
    let event = FacesReviewed { v: Version, image_id, identity_seq, faces, follows };
    (!event.faces.is_empty()).then_some(Event::FacesReviewed(event))
}
