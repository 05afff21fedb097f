//! Identification of the faces of one photo: which person each face is, and which persons are new.

use std::{collections::BTreeSet, iter};

use crate::{
    Allocation, Candidate, DetectedFace, Face, FaceCandidates, FaceId, ImageId, Merges, PersonId, PhotoState, Policy,
    Seq, Verdict, policy::MatchRule,
};

/// The detected faces of a photo and the candidates that a face index returned for them.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentificationInput {
    /// The analyzer that detected the faces.
    pub analyzer: String,
    /// The detected faces.
    pub faces: Vec<DetectedFace>,
    /// The nearest persons of each face.
    pub search: FaceCandidates,
    /// The state of the identity lane that the search is based on.
    pub identity: IdentityHead,
}

/// The head of the identity lane and the counter of persons. A commit that allocates persons is refused if they have
/// moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdentityHead {
    /// The last event of the identity lane.
    pub seq: Seq,
    /// The last person number that was allocated.
    pub counter: u32,
    /// Numbers above the counter that rows of others use already.
    pub taken: BTreeSet<u32>,
}

/// The faces of a photo with their verdicts, and the new persons among them.
pub(crate) struct IdentifiedFaces {
    pub analyzer: String,
    pub identity: IdentityHead,
    pub first_face: u16,
    pub faces: Vec<Face>,
    pub allocations: Vec<Allocation>,
}

/// Persons that faces of the photo were identified as before, by the index of the face now. Empty for a first decision.
#[derive(Debug, Default)]
pub(crate) struct PriorIdentities<'a> {
    pub persons: Vec<Option<PersonId>>,
    pub merges: Option<&'a Merges>,
}

impl PriorIdentities<'_> {
    fn current(&self, person: PersonId) -> PersonId {
        self.merges.map_or(person, |merges| merges.current(person))
    }

    fn get(&self, index: usize) -> Option<PersonId> {
        self.persons.get(index).copied().flatten()
    }

    /// Returns the verdict on the face at this index, given the verdict of the search alone: the prior person, unless
    /// the face clearly matches another. The person is the one decided before merges, so that undoing a merge stays
    /// exact.
    fn apply(&self, index: usize, verdict: Option<Verdict>) -> Option<Verdict> {
        let Some(prior) = self.get(index) else { return verdict };
        match verdict {
            None | Some(Verdict::Ambiguous) => Some(Verdict::Matched(prior)),
            Some(Verdict::Matched(person)) if person == self.current(prior) => Some(Verdict::Matched(prior)),
            other => other,
        }
    }
}

/// Identifies the faces of a photo.
pub(crate) fn identify_faces(
    image: &ImageId,
    state: Option<&PhotoState>,
    input: IdentificationInput,
    prior: &PriorIdentities<'_>,
    policy: &Policy,
) -> IdentifiedFaces {
    let IdentificationInput { analyzer, faces, search, identity } = input;
    let faces: Vec<DetectedFace> = faces.into_iter().map(DetectedFace::rounded).collect();
    let rule = policy.match_rule(search.persons);
    let verdicts = verdicts(&faces, &search, &identity, prior, rule);
    let first_face = state.map_or(0, |state| state.faces);
    let allocations = allocations(image, first_face, &faces, &verdicts, rule);
    let first_templates: BTreeSet<u16> = allocations.iter().flat_map(|a| &a.templates).map(|face| face.n).collect();
    let candidates = search.candidates.into_iter().chain(iter::repeat(Vec::new()));
    let faces = (first_face..).zip(faces).zip(candidates).zip(&verdicts).enumerate();
    let faces = faces.map(|(index, (((n, face), candidates), verdict))| {
        let template = first_templates.contains(&n)
            || match (verdict, rule.identify(&candidates)) {
                (Verdict::Matched(_), Some(Verdict::Matched(current))) => {
                    rule.is_new_template(&face, &candidates, current)
                }
                // The face keeps its prior person although it matches none of their templates: it becomes one.
                (Verdict::Matched(_), None) => prior.get(index).is_some() && rule.is_template_quality(&face),
                _ => false,
            };
        identified_face(face, candidates, *verdict, template, rule)
    });
    IdentifiedFaces { analyzer, identity, first_face, faces: faces.collect(), allocations }
}

/// Returns the verdict on each face: a known person, a new person of this photo, or none.
fn verdicts(
    faces: &[DetectedFace],
    search: &FaceCandidates,
    identity: &IdentityHead,
    prior: &PriorIdentities<'_>,
    rule: MatchRule<'_>,
) -> Vec<Verdict> {
    let known = |n: usize| {
        let candidates = search.candidates.get(n).map_or(&[][..], Vec::as_slice);
        match prior.apply(n, rule.identify(candidates)) {
            Some(Verdict::Matched(person)) if prior.get(n) != Some(person) => {
                Some(Verdict::Matched(search.members.get(n).copied().flatten().unwrap_or(person)))
            }
            verdict => verdict,
        }
    };
    let mut verdicts: Vec<Option<Verdict>> = (0..faces.len()).map(known).collect();

    let unmatched: Vec<usize> =
        (0..faces.len()).filter(|n| verdicts[*n].is_none() && rule.is_template_quality(&faces[*n])).collect();
    let numbers = (identity.counter..u32::MAX).map(|last| last + 1).filter(|n| !identity.taken.contains(n));
    for (cluster, person) in clusters(&unmatched, search, rule.threshold).iter().zip(numbers.filter_map(PersonId::new))
    {
        let best = best_face(cluster, faces);
        for n in cluster {
            verdicts[*n] = Some(if *n == best { Verdict::NewPerson(person) } else { Verdict::Matched(person) });
        }
    }
    let new_persons: Vec<_> = unmatched.iter().filter_map(|n| Some((*n, verdicts[*n]?.person()?))).collect();
    (0..faces.len()).map(|n| verdicts[n].unwrap_or_else(|| poor_face(n, &new_persons, search, rule))).collect()
}

/// Groups the unmatched faces by person: single-linkage clustering at the threshold.
fn clusters(unmatched: &[usize], search: &FaceCandidates, threshold: f32) -> Vec<Vec<usize>> {
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    for n in unmatched {
        let is_linked = |cluster: &Vec<usize>| cluster.iter().any(|m| similarity(*n, *m, search) >= threshold);
        let (same, others): (Vec<_>, Vec<_>) = clusters.into_iter().partition(is_linked);
        clusters = others;
        clusters.push(same.into_iter().flatten().chain([*n]).collect());
    }
    for cluster in &mut clusters {
        cluster.sort_unstable();
    }
    clusters.sort_unstable();
    clusters
}

fn similarity(n: usize, m: usize, search: &FaceCandidates) -> f32 {
    let pair = (n.min(m), n.max(m));
    search.similarities.iter().find(|s| (s.a, s.b) == pair).map_or(0.0, |s| s.similarity)
}

/// Returns the face of the best quality, the first of equals: the crop of a new person.
fn best_face(cluster: &[usize], faces: &[DetectedFace]) -> usize {
    let quality = |n: &usize| faces[*n].quality.size * faces[*n].quality.sharpness * faces[*n].confidence;
    cluster.iter().copied().max_by(|a, b| quality(a).total_cmp(&quality(b)).then(b.cmp(a))).unwrap_or_default()
}

/// Returns the verdict on a face too poor for a template: it may match a new person of the same photo.
fn poor_face(n: usize, new_persons: &[(usize, PersonId)], search: &FaceCandidates, rule: MatchRule<'_>) -> Verdict {
    let candidate =
        |(m, person): &(usize, PersonId)| Candidate { person: *person, similarity: similarity(n, *m, search) };
    let candidates: Vec<_> = new_persons.iter().map(candidate).collect();
    rule.identify(&candidates).unwrap_or(Verdict::TooPoor)
}

fn allocations(
    image: &ImageId,
    first_face: u16,
    faces: &[DetectedFace],
    verdicts: &[Verdict],
    rule: MatchRule<'_>,
) -> Vec<Allocation> {
    let number = |n: usize| first_face.saturating_add(u16::try_from(n).unwrap_or(u16::MAX));
    let face = |n: usize| FaceId { image: image.clone(), n: number(n) };
    let new_persons = verdicts.iter().enumerate().filter_map(|(n, verdict)| match verdict {
        Verdict::NewPerson(person) => Some(Allocation {
            person: *person,
            face: face(n),
            templates: (0..verdicts.len())
                .filter(|m| verdicts[*m].person() == Some(*person) && rule.is_template_quality(&faces[*m]))
                .map(face)
                .collect(),
        }),
        _ => None,
    });
    let mut allocations: Vec<_> = new_persons.collect();
    allocations.sort_by_key(|allocation| allocation.person);
    allocations
}

fn identified_face(
    face: DetectedFace,
    candidates: Vec<Candidate>,
    verdict: Verdict,
    template: bool,
    rule: MatchRule<'_>,
) -> Face {
    Face {
        bounds: face.bounds,
        landmarks: face.landmarks,
        quality: face.quality,
        confidence: face.confidence,
        attributes: face.attributes,
        model: face.model,
        candidates: rule.recorded_candidates(candidates),
        threshold: rule.threshold,
        verdict,
        template,
    }
}
