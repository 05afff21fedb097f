//! Consolidation: agglomerative clustering of persons whose faces are so similar that they are one person.
//!
//! A single face may resemble another person by chance; several faces seldom do. So the match rule for one face is
//! strict and leaves some persons split, and consolidation proposes to merge them. Two persons are compared by the mean
//! similarity over all pairs of their faces: average linkage, UPGMA (Sokal and Michener 1958). A linkage over the nearest
//! faces merges persons with many faces by chance, and they grow; mean vectors drift towards what all faces have in common.

mod clustering;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use crate::{Evidence, Gallery, PersonId, Scale, Signature, Template, photo::round};

pub use search::ConsolidationSearch;

/// Two persons that may be one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MergeProposal {
    /// The person with the lower number.
    pub into: PersonId,
    /// The other.
    pub from: PersonId,
    /// The evidence.
    pub evidence: Evidence,
}

/// The persons that are one, judging by the enrolled faces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Consolidation {
    /// Pairs with sufficient evidence, in the order in which they are to be merged.
    pub merges: Vec<MergeProposal>,
    /// Pairs with nearly sufficient evidence after those merges, best first.
    pub suggestions: Vec<MergeProposal>,
}

/// Required deviations of the mean over many pairs of faces.
const REQUIRED: f32 = 3.0;
/// Further deviations of a single pair. The mean over n pairs scatters less, by the square root of n.
const REQUIRED_OF_ONE_PAIR: f32 = 0.5;
/// Further deviations each time the number of persons is ten times as large: among more pairs of persons, one is more likely
/// to be similar by chance.
const REQUIRED_PER_TENFOLD: f32 = 0.35;
/// The number of persons up to which nothing is added.
const FEW_PERSONS: usize = 5;
/// How far a suggestion may be from sufficient.
const SUGGESTION_MARGIN: f32 = 1.0;
/// Pairs of persons whose nearest faces are below this are not compared: the mean is not above the maximum.
const COMPARISON_FLOOR: f32 = 2.0;
/// Required deviations to identify a face that was left unidentified, by the mean over all templates of a person.
const REQUIRED_OF_FACE: f32 = 2.45;
/// A person with fewer templates is not compared with such a face: a single pair at this similarity proves nothing.
const MIN_TEMPLATES: usize = 3;
/// The minimum lead of the person of such a face over the next person.
const FACE_LEAD: f32 = 0.33;
/// The number of nearest persons that a face is compared with.
const NEAREST_PERSONS: usize = 12;

/// Finds the persons of this model that are one. Pairs of `apart` are never merged. If `fresh` is given, only pairs
/// with one of these persons are compared.
pub fn consolidate(
    gallery: &Gallery,
    model: &str,
    scale: Scale,
    apart: &BTreeSet<(PersonId, PersonId)>,
    fresh: Option<&BTreeSet<PersonId>>,
) -> Consolidation {
    let mut search = ConsolidationSearch::new(gallery, model, scale, apart, fresh);
    loop {
        if let Some(found) = search.step(usize::MAX) {
            return found;
        }
    }
}

/// Identifies a face by all templates of a person together, where the nearest template alone is below the threshold.
pub struct TemplateEvidence<'a> {
    gallery: &'a Gallery,
    model: &'a str,
    scale: Scale,
    persons: BTreeMap<PersonId, Vec<Template<'a>>>,
}

impl<'a> TemplateEvidence<'a> {
    /// Returns the evidence of all persons with templates of this model.
    pub fn new(gallery: &'a Gallery, model: &'a str, scale: Scale) -> Self {
        Self { gallery, model, scale, persons: gallery.persons(model) }
    }

    /// Returns the person of the face, if the evidence is clear; never a person who is `present` in its photo already.
    pub fn identify(&self, signature: &Signature, present: &[PersonId]) -> Option<(PersonId, Evidence)> {
        let near = self.gallery.nearest(self.model, signature, present.len() + NEAREST_PERSONS);
        let near = near.iter().map(|candidate| candidate.person).filter(|person| !present.contains(person));
        let face = [Template::from(signature)];
        let mut links: Vec<_> = near.map(|person| (person, Link::between(&face, &self.persons[&person]))).collect();
        links.sort_by(|(_, a), (_, b)| b.similarity().total_cmp(&a.similarity()));
        let (person, link) = links.first().filter(|(_, link)| link.pairs >= MIN_TEMPLATES)?;
        let next = links.get(1).map_or(0.0, |(_, next)| next.distinction(self.scale).max(0.0));
        let evidence = link.evidence_for_face(self.scale, next, self.persons.len());
        (evidence.beyond >= 0.0).then_some((*person, evidence))
    }
}

/// The similarities of all pairs of faces of two persons.
#[derive(Debug, Clone, Copy)]
struct Link {
    sum: f64,
    pairs: usize,
}

impl Link {
    fn between(a: &[Template<'_>], b: &[Template<'_>]) -> Self {
        let sum = a.iter().flat_map(|face| b.iter().map(|other| f64::from(face.similarity(*other)))).sum();
        Self { sum, pairs: a.len() * b.len() }
    }

    /// Returns the link of both together to the same person.
    fn and(self, other: Self) -> Self {
        Self { sum: self.sum + other.sum, pairs: self.pairs + other.pairs }
    }

    /// Returns the mean similarity.
    fn similarity(self) -> f32 {
        (self.sum / self.pairs as f64) as f32
    }

    /// Returns the mean similarity in deviations.
    fn distinction(self, scale: Scale) -> f32 {
        scale.deviations(self.similarity())
    }

    /// Returns the deviations required to merge two of so many persons with this link.
    fn required(self, persons: usize) -> f32 {
        REQUIRED + REQUIRED_OF_ONE_PAIR / (self.pairs as f32).sqrt() + REQUIRED_PER_TENFOLD * tenfolds(persons)
    }

    /// Returns the evidence that two of so many persons are one, where the next similar person of either is at `rival`. It is
    /// sufficient only if the two are nearest to each other.
    fn evidence(self, scale: Scale, rival: f32, persons: usize) -> Evidence {
        self.evidence_from(scale, rival, 0.0, self.required(persons))
    }

    /// Returns the evidence that a single face is a person, where the next similar person is at `rival`.
    fn evidence_for_face(self, scale: Scale, rival: f32, persons: usize) -> Evidence {
        self.evidence_from(scale, rival, FACE_LEAD, required_of_face(persons))
    }

    fn evidence_from(self, scale: Scale, rival: f32, required_lead: f32, required: f32) -> Evidence {
        let distinction = self.distinction(scale);
        let lead = distinction - rival;
        Evidence {
            similarity: round(self.similarity(), 1e4),
            distinction: round(distinction, 1e2),
            lead: round(lead, 1e2),
            beyond: round((lead - required_lead).min(distinction - required), 1e2),
            pairs: u32::try_from(self.pairs).unwrap_or(u32::MAX),
        }
    }
}

/// Returns the deviations required to identify a single face among so many persons.
fn required_of_face(persons: usize) -> f32 {
    REQUIRED_OF_FACE + REQUIRED_PER_TENFOLD * tenfolds(persons)
}

/// Returns how many times ten the number of persons is, beyond a few.
fn tenfolds(persons: usize) -> f32 {
    (persons.max(FEW_PERSONS) as f32 / FEW_PERSONS as f32).log10()
}
