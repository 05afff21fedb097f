//! Detection of adopted persons that may be one.

use sparks_domain::{Gallery, PersonId, Policy, Signature};

use super::SuspectedDuplicate;
use crate::GalleryIndex;

/// Compares adopted persons with each other and with all persons of the gallery.
pub(super) struct DuplicateDetector<'a> {
    index: &'a GalleryIndex,
    policy: &'a Policy,
    adopted: Gallery,
    persons: usize,
    pairs: Vec<SuspectedDuplicate>,
}

impl<'a> DuplicateDetector<'a> {
    /// Creates a detector beside the persons of this index.
    pub fn new(index: &'a GalleryIndex, policy: &'a Policy) -> Self {
        let persons = index.state().people.len();
        Self { index, policy, adopted: Gallery::default(), persons, pairs: Vec::new() }
    }

    /// Adds an adopted person with the template of their crop.
    pub fn add(&mut self, person: PersonId, model: &str, signature: &Signature) {
        self.persons += 1;
        let threshold = self.policy.threshold.among(self.persons);
        let known = self.index.state().gallery.nearest(model, signature, 1);
        let candidates = known.into_iter().chain(self.adopted.nearest(model, signature, 1));
        let similar = candidates.filter(|candidate| candidate.person != person && candidate.similarity >= threshold);
        self.pairs.extend(similar.map(|candidate| SuspectedDuplicate {
            into: person.min(candidate.person),
            from: person.max(candidate.person),
            similarity: candidate.similarity,
        }));
        self.adopted.enroll(person, model, signature);
    }

    /// Returns the pairs, the most similar first.
    pub fn into_pairs(mut self) -> Vec<SuspectedDuplicate> {
        self.pairs.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then((a.into, a.from).cmp(&(b.into, b.from))));
        self.pairs
    }
}
