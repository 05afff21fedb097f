//! The consolidation as it was before it was done in steps, slow and simple: the result must be the same.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{Consolidation, Evidence, Gallery, MergeProposal, PersonId, Scale, Template};

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
/// The maximum number of persons that a face is compared with to measure its usual similarity.
const COHORT_SIZE: usize = 256;
/// The weight of the model's own scale, as a number of persons.
const PRIOR_WEIGHT: f32 = 20.0;

/// Finds the persons of this model that are one. Pairs of `apart` are never merged. If `fresh` is given, only pairs
/// with one of these persons are compared.
pub fn consolidate_at_once(
    gallery: &Gallery,
    model: &str,
    scale: Scale,
    apart: &BTreeSet<(PersonId, PersonId)>,
    fresh: Option<&BTreeSet<PersonId>>,
) -> Consolidation {
    let mut persons = gallery.persons(model);
    let mut found = Consolidation::default();
    let mut apart: BTreeSet<_> = apart.iter().map(|(a, b)| ordered(*a, *b)).collect();
    let mut fresh = fresh.cloned();
    loop {
        let mut clustering = Clustering::new(&persons, scale, apart, fresh.as_ref());
        let before = found.merges.len();
        while let Some(merge) = clustering.best() {
            found.merges.push(merge);
            clustering.merge(merge);
        }
        if found.merges.len() == before {
            found.suggestions = clustering.suggestions();
            return found;
        }
        // With fewer persons the usual similarity is known better, so everything is measured again.
        for merge in &found.merges[before..] {
            let faces = persons.remove(&merge.from).unwrap_or_default();
            persons.entry(merge.into).or_default().extend(faces);
            fresh.as_mut().map(|fresh| fresh.insert(merge.into));
        }
        apart = clustering.apart;
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

/// The state of the clustering: persons, and the links between those that are similar enough to compare.
struct Clustering<'a> {
    scale: Scale,
    persons: BTreeMap<PersonId, Vec<CalibratedFace<'a>>>,
    links: BTreeMap<(PersonId, PersonId), Link>,
    neighbours: BTreeMap<PersonId, BTreeSet<PersonId>>,
    apart: BTreeSet<(PersonId, PersonId)>,
}

/// How two persons compare.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// Over the faces of the person with fewer, the mean distinction to the nearest three of the other's.
    distinction: f32,
    /// The mean similarity over all pairs.
    similarity: f32,
}

impl<'a> Clustering<'a> {
    fn new(
        templates: &BTreeMap<PersonId, Vec<Template<'a>>>,
        scale: Scale,
        apart: BTreeSet<(PersonId, PersonId)>,
        fresh: Option<&BTreeSet<PersonId>>,
    ) -> Self {
        let (links, neighbours) = (BTreeMap::new(), BTreeMap::new());
        let mut clustering = Self { scale, persons: calibrate_all(templates, scale), links, neighbours, apart };
        let ids: Vec<PersonId> = clustering.persons.keys().copied().collect();
        let floor = scale.above(COMPARISON_FLOOR);
        for (n, b) in ids.iter().enumerate() {
            for a in &ids[..n] {
                let is_included = fresh.is_none_or(|fresh| fresh.contains(a) || fresh.contains(b));
                if is_included && clustering.are_comparable(*a, *b, floor) {
                    clustering.connect(*a, *b);
                }
            }
        }
        clustering
    }

    fn are_comparable(&self, a: PersonId, b: PersonId, floor: f32) -> bool {
        let (a, b) = (&self.persons[&a], &self.persons[&b]);
        a.iter().any(|face| b.iter().any(|other| face.template.similarity(other.template) >= floor))
    }

    fn connect(&mut self, a: PersonId, b: PersonId) {
        let link = link(&self.persons[&a], &self.persons[&b]);
        self.links.insert(ordered(a, b), link);
        self.neighbours.entry(a).or_default().insert(b);
        self.neighbours.entry(b).or_default().insert(a);
    }

    /// Returns the merge with the best evidence, if any is sufficient.
    fn best(&self) -> Option<MergeProposal> {
        let proposals = self.links.keys().filter_map(|(a, b)| self.propose(*a, *b));
        let sufficient = proposals.filter(|proposal| proposal.evidence.beyond >= 0.0);
        sufficient.max_by(|a, b| a.evidence.beyond.total_cmp(&b.evidence.beyond).then(b.from.cmp(&a.from)))
    }

    /// Returns the merges with nearly sufficient evidence, best first.
    fn suggestions(&self) -> Vec<MergeProposal> {
        let proposals = self.links.keys().filter_map(|(a, b)| self.propose(*a, *b));
        let mut near: Vec<_> = proposals.filter(|proposal| proposal.evidence.beyond >= -SUGGESTION_MARGIN).collect();
        near.sort_by(|a, b| b.evidence.beyond.total_cmp(&a.evidence.beyond));
        near
    }

    /// Returns the evidence for merging the two; `None` if they must not be merged or are far from it.
    fn propose(&self, a: PersonId, b: PersonId) -> Option<MergeProposal> {
        let link = self.links[&(a, b)];
        let (faces_a, faces_b) = (self.persons[&a].len(), self.persons[&b].len());
        let required = required(self.persons.len(), faces_a.max(faces_b));
        let is_too_far = link.distinction + LEAD_WEIGHT * (LEAD.1 - LEAD.0) < required - SUGGESTION_MARGIN;
        if is_too_far || self.apart.contains(&(a, b)) || !self.is_cohesive(a, b) {
            return None;
        }
        let mut lead = f32::INFINITY;
        if faces_a <= faces_b {
            lead = lead.min(link.distinction - self.runner_up(a, b));
        }
        if faces_b <= faces_a {
            lead = lead.min(link.distinction - self.runner_up(b, a));
        }
        Some(MergeProposal { into: a, from: b, evidence: link.evidence(lead, required, faces_a * faces_b) })
    }

    /// Returns the distinction of the person most similar to `person`, except for `candidate` and those who may be the
    /// candidate.
    fn runner_up(&self, person: PersonId, candidate: PersonId) -> f32 {
        let same_person = required(self.persons.len(), 2) - SAME_PERSON_MARGIN;
        let is_another_person = |rival: PersonId| {
            self.links.get(&ordered(rival, candidate)).is_none_or(|link| link.distinction < same_person)
        };
        let rivals = self.neighbours.get(&person).into_iter().flatten().filter(|rival| **rival != candidate);
        let rivals = rivals.filter(|rival| is_another_person(**rival));
        rivals.map(|rival| self.links[&ordered(person, *rival)].distinction).fold(0.0, f32::max)
    }

    /// Returns whether the two are about as similar to each other as each person's faces are among themselves.
    fn is_cohesive(&self, a: PersonId, b: PersonId) -> bool {
        let link = self.links[&(a, b)];
        [a, b].iter().all(|person| link.fits_cohesion(&self.persons[person], self.scale))
    }

    fn merge(&mut self, MergeProposal { into, from, .. }: MergeProposal) {
        let faces = self.persons.remove(&from).unwrap_or_default();
        self.persons.entry(into).or_default().extend(faces);
        let mut neighbours = self.neighbours.remove(&from).unwrap_or_default();
        neighbours.extend(self.neighbours.remove(&into).unwrap_or_default());
        for other in &neighbours {
            self.links.remove(&ordered(from, *other));
            if let Some(theirs) = self.neighbours.get_mut(other) {
                theirs.remove(&from);
            }
        }
        let inherited = self.apart.iter().filter_map(|(a, b)| match (*a == from, *b == from) {
            (true, _) => Some(ordered(into, *b)),
            (_, true) => Some(ordered(into, *a)),
            _ => None,
        });
        let inherited: Vec<_> = inherited.collect();
        self.apart.extend(inherited);
        neighbours.retain(|other| *other != into && *other != from);
        for other in neighbours {
            self.connect(into, other);
        }
    }
}

impl Link {
    /// Returns whether the similarity is about that of the person's faces among themselves.
    fn fits_cohesion(&self, person: &[CalibratedFace<'_>], scale: Scale) -> bool {
        cohesion(person).is_none_or(|own| self.similarity >= own - COHESION_TOLERANCE * scale.spread)
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

fn calibrate_all<'a>(
    templates: &BTreeMap<PersonId, Vec<Template<'a>>>,
    scale: Scale,
) -> BTreeMap<PersonId, Vec<CalibratedFace<'a>>> {
    let cohort = cohort(templates);
    let faces = |(person, templates): (&PersonId, &Vec<Template<'a>>)| {
        let calibrate = |template: &Template<'a>| calibrate(*template, Some(*person), &cohort, scale);
        (*person, templates.iter().map(calibrate).collect())
    };
    templates.iter().map(faces).collect()
}

/// Returns an even sample of the persons, against which faces are calibrated (cohort score normalization).
fn cohort<'k, 'a>(templates: &'k BTreeMap<PersonId, Vec<Template<'a>>>) -> Vec<(PersonId, &'k [Template<'a>])> {
    let step = templates.len().div_ceil(COHORT_SIZE).max(1);
    templates.iter().step_by(step).map(|(person, templates)| (*person, templates.as_slice())).collect()
}

/// Measures a face's usual similarity to other persons, blended with the model's scale where they are few.
fn calibrate<'a>(
    template: Template<'a>,
    owner: Option<PersonId>,
    cohort: &[(PersonId, &[Template<'a>])],
    scale: Scale,
) -> CalibratedFace<'a> {
    let others = cohort.iter().filter(|(person, _)| Some(*person) != owner);
    let mean = |theirs: &[Template<'a>]| {
        theirs.iter().map(|other| template.similarity(*other)).sum::<f32>() / theirs.len() as f32
    };
    let mut similarities: Vec<f32> = others.map(|(_, theirs)| mean(theirs)).collect();
    if similarities.len() < 3 {
        return CalibratedFace { template, usual: scale.median, spread: scale.spread };
    }
    similarities.sort_unstable_by(f32::total_cmp);
    // Only the lower half: the upper half may contain the same person under another number.
    let (median, low) = (quantile(&similarities, 0.5), quantile(&similarities, 0.16));
    let weight = similarities.len() as f32 / (similarities.len() as f32 + PRIOR_WEIGHT);
    let blend = |measured: f32, usual: f32| weight * measured + (1.0 - weight) * usual;
    let spread = ((median - low) * scale.skew).clamp(0.5 * scale.spread, 1.7 * scale.spread);
    CalibratedFace { template, usual: blend(median, scale.median), spread: blend(spread, scale.spread) }
}

/// Returns the quantile by linear interpolation.
fn quantile(sorted: &[f32], share: f32) -> f32 {
    let index = share * (sorted.len() - 1) as f32;
    let below = index.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (index - below as f32)
}

fn ordered(a: PersonId, b: PersonId) -> (PersonId, PersonId) {
    (a.min(b), a.max(b))
}

fn round(value: f32, scale: f64) -> f32 {
    if value.is_finite() { ((f64::from(value) * scale).round() / scale) as f32 } else { 0.0 }
}
