//! The persons of a consolidation, and the links between those that are similar enough to compare.

use std::collections::BTreeSet;

use super::{
    COMPARISON_FLOOR, CalibratedFace, LEAD, LEAD_WEIGHT, Link, MergeProposal, SAME_PERSON_MARGIN, SUGGESTION_MARGIN,
    cohesion, link, required,
};
use crate::{PersonId, Scale, photo::round, templates::Templates};

/// Persons by position, in the order of their numbers.
pub(super) struct Clustering {
    templates: Templates,
    scale: Scale,
    pub persons: Vec<ClusteredPerson>,
    /// The number of persons who are not merged into another.
    pub present: usize,
    /// Pairs that may have nearly sufficient evidence while there are at least `strong_from` persons.
    strong: BTreeSet<(usize, usize)>,
    strong_from: usize,
}

/// A person of a clustering.
#[derive(Default)]
pub(super) struct ClusteredPerson {
    pub id: Option<PersonId>,
    /// The faces; none if the person is merged into another.
    pub faces: Vec<CalibratedSlot>,
    /// The links to others, by position.
    pub links: Vec<(usize, Link)>,
    /// Whether the person was compared with all others.
    pub is_compared: bool,
    /// The persons who are not the same.
    pub apart: BTreeSet<usize>,
    /// The mean similarity among the faces, once it was computed.
    pub cohesion: Option<Option<f32>>,
}

/// A template by its slot, with its usual similarity to persons it is not.
#[derive(Clone, Copy)]
pub(super) struct CalibratedSlot {
    pub slot: usize,
    pub usual: f32,
    pub spread: f32,
}

impl Clustering {
    pub fn new(templates: Templates, scale: Scale, persons: Vec<ClusteredPerson>) -> Self {
        let present = persons.len();
        Self { templates, scale, persons, present, strong: BTreeSet::new(), strong_from: usize::MAX }
    }

    pub fn templates(&self) -> &Templates {
        &self.templates
    }

    pub fn scale(&self) -> Scale {
        self.scale
    }

    pub fn is_present(&self, person: usize) -> bool {
        !self.persons[person].faces.is_empty()
    }

    /// Compares two persons, and links them if they are similar enough. Returns the number of compared pairs of faces.
    pub fn compare(&mut self, a: usize, b: usize) -> usize {
        let (faces_a, faces_b) = (&self.persons[a].faces, &self.persons[b].faces);
        let floor = self.scale.above(COMPARISON_FLOOR);
        let is_comparable = faces_a.iter().any(|face| {
            let template = self.templates.template(face.slot);
            faces_b.iter().any(|other| template.similarity(self.templates.template(other.slot)) >= floor)
        });
        let pairs = faces_a.len() * faces_b.len();
        if is_comparable { pairs + self.connect(a, b) } else { pairs }
    }

    /// Measures the link between two persons. Returns the number of compared pairs of faces.
    pub fn connect(&mut self, a: usize, b: usize) -> usize {
        let (faces_a, faces_b) = (self.faces(a), self.faces(b));
        let (link, pairs) = (link(&faces_a, &faces_b), faces_a.len() * faces_b.len());
        for (person, other) in [(a, b), (b, a)] {
            let links = &mut self.persons[person].links;
            match links.binary_search_by_key(&other, |(position, _)| *position) {
                Ok(place) => links[place].1 = link,
                Err(place) => links.insert(place, (other, link)),
            }
        }
        pairs
    }

    fn faces(&self, person: usize) -> Vec<CalibratedFace<'_>> {
        let face = |face: &CalibratedSlot| {
            let CalibratedSlot { slot, usual, spread } = *face;
            CalibratedFace { template: self.templates.template(slot), usual, spread }
        };
        self.persons[person].faces.iter().map(face).collect()
    }

    fn link(&self, a: usize, b: usize) -> Option<Link> {
        let links = &self.persons[a].links;
        links.binary_search_by_key(&b, |(position, _)| *position).ok().map(|place| links[place].1)
    }

    /// Returns the required deviations for these two persons.
    fn required(&self, a: usize, b: usize) -> f32 {
        required(self.present, self.persons[a].faces.len().max(self.persons[b].faces.len()))
    }

    /// Lists the strong pairs, if fewer persons are left than they were listed for: fewer persons require less.
    pub fn update_strong_pairs(&mut self) {
        if self.present >= self.strong_from && self.strong_from > 0 {
            return;
        }
        self.strong_from = self.present - self.present / 10;
        self.strong.clear();
        for b in 0..self.persons.len() {
            self.add_strong_pairs(b, b);
        }
    }

    /// Adds the strong pairs of this person with persons before `below`.
    fn add_strong_pairs(&mut self, person: usize, below: usize) {
        let weakest = required(self.strong_from, usize::MAX) - SUGGESTION_MARGIN;
        let links = self.persons[person].links.iter().take_while(|(other, _)| *other < below);
        let strong = links.filter(|(_, link)| link.distinction + MAX_LEAD_WORTH >= weakest);
        let strong = strong.map(|(other, _)| (person.min(*other), person.max(*other)));
        self.strong.extend(strong.collect::<Vec<_>>());
    }

    /// Forgets the strong pairs, because all links are measured again.
    pub fn clear_strong_pairs(&mut self) {
        self.strong.clear();
        self.strong_from = usize::MAX;
    }

    /// Returns the first strong pair after this one.
    pub fn strong_pair_after(&self, pair: Option<(usize, usize)>) -> Option<(usize, usize)> {
        let from = pair.map_or((0, 0), |(a, b)| (a, b + 1));
        self.strong.range(from..).next().copied()
    }

    /// Returns the pairs whose evidence may be sufficient, with the most that it may exceed it; the most promising last.
    pub fn promising_pairs(&self) -> Vec<((usize, usize), f32)> {
        let most = |(a, b): &(usize, usize)| {
            let distinction = self.link(*a, *b)?.distinction;
            Some(((*a, *b), round(distinction + MAX_LEAD_WORTH - self.required(*a, *b), 1e2)))
        };
        let mut pairs: Vec<_> = self.strong.iter().filter_map(most).filter(|(_, most)| *most >= 0.0).collect();
        pairs.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        pairs
    }

    pub fn strong_pairs(&self) -> usize {
        self.strong.len()
    }

    pub fn neighbours(&self, person: usize) -> usize {
        self.persons[person].links.len()
    }

    /// Returns the evidence for merging the two; `None` if they must not be merged or are far from it.
    pub fn propose(&mut self, a: usize, b: usize) -> Option<MergeProposal> {
        let (link, required) = (self.link(a, b)?, self.required(a, b));
        let is_too_far = link.distinction + MAX_LEAD_WORTH < required - SUGGESTION_MARGIN;
        if is_too_far || self.persons[a].apart.contains(&b) {
            return None;
        }
        for person in [a, b] {
            if !link.fits_cohesion(self.cohesion(person), self.scale) {
                return None;
            }
        }
        let (faces_a, faces_b) = (self.persons[a].faces.len(), self.persons[b].faces.len());
        let mut lead = f32::INFINITY;
        if faces_a <= faces_b {
            lead = lead.min(link.distinction - self.runner_up(a, b));
        }
        if faces_b <= faces_a {
            lead = lead.min(link.distinction - self.runner_up(b, a));
        }
        let (into, from) = (self.persons[a].id?, self.persons[b].id?);
        Some(MergeProposal { into, from, evidence: link.evidence(lead, required, faces_a * faces_b) })
    }

    fn cohesion(&mut self, person: usize) -> Option<f32> {
        let known = self.persons[person].cohesion;
        let computed = known.unwrap_or_else(|| cohesion(&self.faces(person)));
        self.persons[person].cohesion = Some(computed);
        computed
    }

    /// Returns the distinction of the person most similar to `person`, except for `candidate` and those who may be the
    /// candidate.
    fn runner_up(&self, person: usize, candidate: usize) -> f32 {
        let same_person = required(self.present, 2) - SAME_PERSON_MARGIN;
        let mut of_candidate = self.persons[candidate].links.iter().peekable();
        let mut most = 0.0_f32;
        for (rival, link) in self.persons[person].links.iter().filter(|(rival, _)| *rival != candidate) {
            while of_candidate.next_if(|(other, _)| other < rival).is_some() {}
            let is_candidate =
                of_candidate.peek().is_some_and(|(other, link)| other == rival && link.distinction >= same_person);
            if !is_candidate {
                most = most.max(link.distinction);
            }
        }
        most
    }

    /// Merges the second person into the first. Returns the number of compared pairs of faces.
    pub fn merge(&mut self, into: usize, from: usize) -> usize {
        let ClusteredPerson { faces, links, is_compared, apart, .. } = std::mem::take(&mut self.persons[from]);
        let before = std::mem::take(&mut self.persons[into].links);
        let person = &mut self.persons[into];
        person.faces.extend(faces);
        person.is_compared &= is_compared;
        person.apart.extend(&apart);
        person.cohesion = None;
        for other in apart {
            self.persons[other].apart.insert(into);
        }
        self.present -= 1;
        let neighbours: BTreeSet<usize> = links.iter().chain(&before).map(|(other, _)| *other).collect();
        let mut pairs = 0;
        for other in neighbours.into_iter().filter(|other| ![into, from].contains(other)) {
            self.persons[other].links.retain(|(position, _)| *position != from);
            self.strong.remove(&(other.min(from), other.max(from)));
            self.strong.remove(&(other.min(into), other.max(into)));
            pairs += self.connect(into, other);
        }
        self.strong.remove(&(into, from));
        if self.present >= self.strong_from {
            self.add_strong_pairs(into, usize::MAX);
        }
        pairs
    }
}

/// What the largest lead that counts is worth, in deviations.
const MAX_LEAD_WORTH: f32 = LEAD_WEIGHT * (LEAD.1 - LEAD.0);
