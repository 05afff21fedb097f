//! Consolidation: agglomerative clustering of persons whose faces are so similar that they are one person.
//!
//! A single face may resemble another person by chance; several faces seldom do. So the match rule for one face is
//! strict and leaves some persons split, and consolidation proposes to merge them. All similarities are measured in
//! deviations from what is usual between these very faces and all other persons: grainy old prints all resemble each
//! other, and that must not make them one person. Linkage is over pairs of faces, never over mean vectors, which drift
//! towards what all faces have in common.

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

/// Required deviations where the better known of two persons has two faces.
const REQUIRED: f32 = 2.9;
/// Further deviations each time the number of persons is ten times as large.
const REQUIRED_PER_TENFOLD: f32 = 0.6;
/// Further deviations by the number of faces of the better known person: one, two, more.
const REQUIRED_BY_FACES: [f32; 3] = [0.6, 0.0, -0.4];
/// The lead over the runner-up from which it counts as evidence, and up to which.
const LEAD: (f32, f32) = (0.8, 2.3);
/// How many deviations of evidence one deviation of lead is worth.
const LEAD_WEIGHT: f32 = 0.3;
/// The minimum lead of a single face.
const SINGLE_FACE_LEAD: f32 = 1.2;
/// A person whose link to the candidate is at most this far from sufficient is not a runner-up: it may be the same
/// person.
const SAME_PERSON_MARGIN: f32 = 1.0;
/// How far the similarity to another person may be below a person's own cohesion, in deviations.
const COHESION_TOLERANCE: f32 = 2.5;
/// The minimum number of faces for which cohesion is computed.
const COHESION_FACES: usize = 3;
/// How far a suggestion may be from sufficient.
const SUGGESTION_MARGIN: f32 = 1.0;
/// Pairs of persons whose nearest faces are below this are not compared.
const COMPARISON_FLOOR: f32 = 2.0;
/// The number of nearest persons that a single face is compared with.
const NEAREST_PERSONS: usize = 6;
/// The maximum number of persons that a face is compared with to measure its usual similarity.
const COHORT_SIZE: usize = 256;
/// The weight of the model's own scale, as a number of persons.
const PRIOR_WEIGHT: f32 = 20.0;

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
        let near = near.iter().filter(|candidate| candidate.similarity >= self.scale.above(COMPARISON_FLOOR));
        let near = near.map(|candidate| candidate.person).filter(|person| !present.contains(person));
        let cohort: Vec<_> = self.persons.iter().step_by(cohort_step(self.persons.len())).collect();
        let face = [self.calibrate(signature.into(), None, &cohort)];
        let link_with = |person: PersonId| {
            let templates = &self.persons[&person];
            let faces: Vec<_> = templates.iter().map(|t| self.calibrate(*t, Some(person), &cohort)).collect();
            (person, link(&face, &faces), faces)
        };
        let mut links: Vec<_> = near.map(link_with).collect();
        links.sort_by(|(_, a, _), (_, b, _)| b.distinction.total_cmp(&a.distinction));
        let (person, link, faces) = links.first()?;
        let next = links.get(1).map_or(0.0, |(_, next, _)| next.distinction.max(0.0));
        let required = required(self.persons.len(), faces.len());
        let evidence = link.evidence(link.distinction - next, required, faces.len());
        let is_clear =
            evidence.beyond >= 0.0 && evidence.lead >= SINGLE_FACE_LEAD && faces.len() >= REQUIRED_BY_FACES.len();
        (is_clear && link.fits_cohesion(cohesion(faces), self.scale)).then_some((*person, evidence))
    }

    fn calibrate<'t>(
        &self,
        template: Template<'t>,
        owner: Option<PersonId>,
        cohort: &[(&PersonId, &Vec<Template<'a>>)],
    ) -> CalibratedFace<'t> {
        let others = cohort.iter().filter(|(person, _)| Some(**person) != owner);
        let similarities = others.map(|(_, theirs)| mean_similarity(template, theirs.iter().copied()));
        let (usual, spread) = calibrate(similarities.collect(), self.scale);
        CalibratedFace { template, usual, spread }
    }
}

/// A face with its usual similarity to persons it is not.
struct CalibratedFace<'a> {
    template: Template<'a>,
    usual: f32,
    spread: f32,
}

impl CalibratedFace<'_> {
    /// Returns how far the similarity of the two exceeds what is usual for each, in deviations.
    fn distinction(&self, other: &CalibratedFace<'_>) -> f32 {
        let similarity = self.template.similarity(other.template);
        ((similarity - self.usual) / self.spread + (similarity - other.usual) / other.spread) / 2.0
    }
}

/// How two persons compare.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// Over the faces of the person with fewer, the mean distinction to the nearest three of the other's.
    distinction: f32,
    /// The mean similarity over all pairs.
    similarity: f32,
}

impl Link {
    /// Returns whether the similarity is about that of the person's faces among themselves.
    fn fits_cohesion(&self, cohesion: Option<f32>, scale: Scale) -> bool {
        cohesion.is_none_or(|own| self.similarity >= own - COHESION_TOLERANCE * scale.spread)
    }

    fn evidence(&self, lead: f32, required: f32, pairs: usize) -> Evidence {
        let beyond = self.distinction + LEAD_WEIGHT * (lead.clamp(LEAD.0, LEAD.1) - LEAD.0) - required;
        Evidence {
            similarity: round(self.similarity, 1e4),
            distinction: round(self.distinction, 1e2),
            lead: round(lead, 1e2),
            beyond: round(beyond, 1e2),
            pairs: u32::try_from(pairs).unwrap_or(u32::MAX),
        }
    }
}

/// Returns the deviations required to merge two of so many persons, where the better known has so many faces.
fn required(persons: usize, faces: usize) -> f32 {
    let by_faces = REQUIRED_BY_FACES[faces.clamp(1, REQUIRED_BY_FACES.len()) - 1];
    REQUIRED + REQUIRED_PER_TENFOLD * (persons.max(5) as f32).log10() + by_faces
}

fn link(a: &[CalibratedFace<'_>], b: &[CalibratedFace<'_>]) -> Link {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let (mut distinction, mut similarity) = (0.0, 0.0);
    for face in few {
        let mut nearest = [f32::NEG_INFINITY; 3];
        for other in many {
            similarity += face.template.similarity(other.template);
            let mut next = face.distinction(other);
            for slot in &mut nearest {
                if next > *slot {
                    std::mem::swap(slot, &mut next);
                }
            }
        }
        let found = many.len().min(nearest.len());
        distinction += nearest[..found].iter().sum::<f32>() / found as f32;
    }
    Link { distinction: distinction / few.len() as f32, similarity: similarity / (few.len() * many.len()) as f32 }
}

/// Returns the mean similarity among the faces of one person; `None` if they are too few.
fn cohesion(faces: &[CalibratedFace<'_>]) -> Option<f32> {
    if faces.len() < COHESION_FACES {
        return None;
    }
    let mut sum = 0.0;
    for (n, face) in faces.iter().enumerate() {
        sum += faces[..n].iter().map(|other| face.template.similarity(other.template)).sum::<f32>();
    }
    Some(sum / (faces.len() * (faces.len() - 1) / 2) as f32)
}

/// Returns the step of an even sample of so many persons, against which faces are calibrated (cohort score
/// normalization).
fn cohort_step(persons: usize) -> usize {
    persons.div_ceil(COHORT_SIZE).max(1)
}

fn mean_similarity<'a>(template: Template<'_>, theirs: impl ExactSizeIterator<Item = Template<'a>>) -> f32 {
    let count = theirs.len() as f32;
    theirs.map(|other| template.similarity(other)).sum::<f32>() / count
}

/// Returns the usual similarity of a face to persons it is not, and its spread, from its mean similarities to a cohort;
/// blended with the model's scale where they are few.
fn calibrate(mut similarities: Vec<f32>, scale: Scale) -> (f32, f32) {
    if similarities.len() < 3 {
        return (scale.median, scale.spread);
    }
    similarities.sort_unstable_by(f32::total_cmp);
    // Only the lower half: the upper half may contain the same person under another number.
    let (median, low) = (quantile(&similarities, 0.5), quantile(&similarities, 0.16));
    let weight = similarities.len() as f32 / (similarities.len() as f32 + PRIOR_WEIGHT);
    let blend = |measured: f32, usual: f32| weight * measured + (1.0 - weight) * usual;
    let spread = ((median - low) * scale.skew).clamp(0.5 * scale.spread, 1.7 * scale.spread);
    (blend(median, scale.median), blend(spread, scale.spread))
}

/// Returns the quantile by linear interpolation.
fn quantile(sorted: &[f32], share: f32) -> f32 {
    let index = share * (sorted.len() - 1) as f32;
    let below = index.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (index - below as f32)
}
