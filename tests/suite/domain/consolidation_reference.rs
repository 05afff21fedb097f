//! The consolidation at once, slow and simple: average linkage over all pairs of faces. In steps, the result must be the same.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{Consolidation, Evidence, Gallery, MergeProposal, PersonId, Scale, Template};

/// Required deviations of the mean over many pairs of faces.
const REQUIRED: f32 = 3.0;
/// Further deviations of a single pair.
const REQUIRED_OF_ONE_PAIR: f32 = 0.5;
/// Further deviations each time the number of persons is ten times as large.
const REQUIRED_PER_TENFOLD: f32 = 0.35;
/// How far a suggestion may be from sufficient.
const SUGGESTION_MARGIN: f32 = 1.0;
/// Pairs of persons whose nearest faces are below this are not compared.
const COMPARISON_FLOOR: f32 = 2.0;

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
        // A merged person may be similar to persons that none of the two was compared with.
        for merge in &found.merges[before..] {
            let faces = persons.remove(&merge.from).unwrap_or_default();
            persons.entry(merge.into).or_default().extend(faces);
            fresh.as_mut().map(|fresh| fresh.insert(merge.into));
        }
        apart = clustering.apart;
    }
}

/// The state of the clustering: persons, and the links between those that are similar enough to compare.
struct Clustering<'a> {
    scale: Scale,
    persons: BTreeMap<PersonId, Vec<Template<'a>>>,
    links: BTreeMap<(PersonId, PersonId), Link>,
    neighbours: BTreeMap<PersonId, BTreeSet<PersonId>>,
    apart: BTreeSet<(PersonId, PersonId)>,
}

/// The mean similarity over all pairs of faces.
#[derive(Debug, Clone, Copy)]
struct Link {
    similarity: f32,
    pairs: usize,
}

impl<'a> Clustering<'a> {
    fn new(
        templates: &BTreeMap<PersonId, Vec<Template<'a>>>,
        scale: Scale,
        apart: BTreeSet<(PersonId, PersonId)>,
        fresh: Option<&BTreeSet<PersonId>>,
    ) -> Self {
        let (links, neighbours) = (BTreeMap::new(), BTreeMap::new());
        let mut clustering = Self { scale, persons: templates.clone(), links, neighbours, apart };
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
        a.iter().any(|face| b.iter().any(|other| face.similarity(*other) >= floor))
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

    /// Returns the evidence for merging the two; `None` if they must not be merged or are not similar.
    fn propose(&self, a: PersonId, b: PersonId) -> Option<MergeProposal> {
        if self.apart.contains(&(a, b)) {
            return None;
        }
        let link = self.links[&(a, b)];
        let tenfolds = (self.persons.len().max(5) as f32 / 5.0).log10();
        let required = REQUIRED + REQUIRED_OF_ONE_PAIR / (link.pairs as f32).sqrt() + REQUIRED_PER_TENFOLD * tenfolds;
        let distinction = self.distinction(a, b);
        let lead = distinction - self.runner_up(a, b).max(self.runner_up(b, a));
        let evidence = Evidence {
            similarity: round(link.similarity, 1e4),
            distinction: round(distinction, 1e2),
            lead: round(lead, 1e2),
            beyond: round(lead.min(distinction - required), 1e2),
            pairs: u32::try_from(link.pairs).unwrap_or(u32::MAX),
        };
        Some(MergeProposal { into: a, from: b, evidence })
    }

    fn distinction(&self, a: PersonId, b: PersonId) -> f32 {
        self.scale.deviations(self.links[&ordered(a, b)].similarity)
    }

    /// Returns the distinction of the person most similar to `person`, except for `candidate` and those who are another person.
    fn runner_up(&self, person: PersonId, candidate: PersonId) -> f32 {
        let rivals = self.neighbours.get(&person).into_iter().flatten().filter(|rival| **rival != candidate);
        let rivals = rivals.filter(|rival| !self.apart.contains(&ordered(person, **rival)));
        rivals.map(|rival| self.distinction(person, *rival)).fold(0.0, f32::max)
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

fn link(a: &[Template<'_>], b: &[Template<'_>]) -> Link {
    let sum: f64 = a.iter().flat_map(|face| b.iter().map(|other| f64::from(face.similarity(*other)))).sum();
    let pairs = a.len() * b.len();
    Link { similarity: (sum / pairs as f64) as f32, pairs }
}

fn ordered(a: PersonId, b: PersonId) -> (PersonId, PersonId) {
    (a.min(b), a.max(b))
}

fn round(value: f32, scale: f64) -> f32 {
    if value.is_finite() { ((f64::from(value) * scale).round() / scale) as f32 } else { 0.0 }
}
