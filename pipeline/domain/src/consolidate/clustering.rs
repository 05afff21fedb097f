//! The persons of a consolidation, and the links between those that are similar enough to compare.

use std::collections::BTreeSet;

use super::{COMPARISON_FLOOR, Link, MergeProposal, REQUIRED, REQUIRED_PER_TENFOLD, SUGGESTION_MARGIN, tenfolds};
use crate::{PersonId, Scale, Template, photo::round, templates::Templates};

/// Persons by position, in the order of their numbers.
pub(super) struct Clustering {
    templates: Templates,
    scale: Scale,
    pub persons: Vec<ClusteredPerson>,
    /// The number of persons who are not merged into another.
    present: usize,
    /// Pairs that may have nearly sufficient evidence while there are at least `strong_from` persons.
    strong: BTreeSet<(usize, usize)>,
    strong_from: usize,
}

/// A person of a clustering.
#[derive(Default)]
pub(super) struct ClusteredPerson {
    pub id: Option<PersonId>,
    /// The slots of the templates; none if the person is merged into another.
    pub faces: Vec<usize>,
    /// The links to others, by position.
    pub links: Vec<(usize, Link)>,
    /// Whether the person was compared with all others.
    pub is_compared: bool,
    /// The persons who are not the same.
    pub apart: BTreeSet<usize>,
}

impl Clustering {
    pub fn new(templates: Templates, scale: Scale, persons: Vec<ClusteredPerson>) -> Self {
        let present = persons.len();
        Self { templates, scale, persons, present, strong: BTreeSet::new(), strong_from: usize::MAX }
    }

    pub fn is_present(&self, person: usize) -> bool {
        !self.persons[person].faces.is_empty()
    }

    /// Compares two persons, and links them if their nearest faces are similar enough. Returns the number of compared pairs of faces.
    pub fn compare(&mut self, a: usize, b: usize) -> usize {
        let (faces_a, faces_b) = (&self.persons[a].faces, &self.persons[b].faces);
        let floor = self.scale.above(COMPARISON_FLOOR);
        let (mut link, mut is_comparable) = (Link { sum: 0.0, pairs: faces_a.len() * faces_b.len() }, false);
        for face in faces_a {
            let template = self.templates.template(*face);
            for other in faces_b {
                let similarity = template.similarity(self.templates.template(*other));
                is_comparable |= similarity >= floor;
                link.sum += f64::from(similarity);
            }
        }
        if is_comparable {
            self.connect(a, b, link);
        }
        link.pairs
    }

    fn connect(&mut self, a: usize, b: usize, link: Link) {
        for (person, other) in [(a, b), (b, a)] {
            let links = &mut self.persons[person].links;
            match links.binary_search_by_key(&other, |(position, _)| *position) {
                Ok(place) => links[place].1 = link,
                Err(place) => links.insert(place, (other, link)),
            }
        }
    }

    fn faces(&self, person: usize) -> Vec<Template<'_>> {
        self.persons[person].faces.iter().map(|slot| self.templates.template(*slot)).collect()
    }

    fn link(&self, a: usize, b: usize) -> Option<Link> {
        find(&self.persons[a].links, b)
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
        let weakest = REQUIRED + REQUIRED_PER_TENFOLD * tenfolds(self.strong_from) - SUGGESTION_MARGIN;
        let links = self.persons[person].links.iter().take_while(|(other, _)| *other < below);
        let strong = links.filter(|(_, link)| link.distinction(self.scale) >= weakest);
        let strong = strong.map(|(other, _)| (person.min(*other), person.max(*other)));
        self.strong.extend(strong.collect::<Vec<_>>());
    }

    /// Lists the strong pairs again, because persons were compared with others.
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
            let link = self.link(*a, *b)?;
            Some(((*a, *b), round(link.distinction(self.scale) - link.required(self.present), 1e2)))
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

    /// Returns the evidence for merging the two; `None` if they must not be merged.
    pub fn propose(&self, a: usize, b: usize) -> Option<MergeProposal> {
        let link = self.link(a, b)?;
        if self.persons[a].apart.contains(&b) {
            return None;
        }
        let rival = self.runner_up(a, b).max(self.runner_up(b, a));
        let (into, from) = (self.persons[a].id?, self.persons[b].id?);
        let evidence = link.evidence(self.scale, rival, self.present);
        Some(MergeProposal { into, from, evidence })
    }

    /// Returns the distinction of the person most similar to `person`, except for `candidate` and those who are another person.
    fn runner_up(&self, person: usize, candidate: usize) -> f32 {
        let ClusteredPerson { links, apart, .. } = &self.persons[person];
        let rivals = links.iter().filter(|(rival, _)| *rival != candidate && !apart.contains(rival));
        rivals.map(|(_, link)| link.distinction(self.scale)).fold(0.0, f32::max)
    }

    /// Merges the second person into the first. Returns the number of compared pairs of faces.
    pub fn merge(&mut self, into: usize, from: usize) -> usize {
        let ClusteredPerson { faces, links: links_from, is_compared, apart, .. } =
            std::mem::take(&mut self.persons[from]);
        let links_into = std::mem::take(&mut self.persons[into].links);
        let neighbours: BTreeSet<usize> = links_from.iter().chain(&links_into).map(|(other, _)| *other).collect();
        let mut pairs = 0;
        for other in neighbours.into_iter().filter(|other| ![into, from].contains(other)) {
            // The sums of both, as in the recurrence of Lance and Williams (1967); what was not compared is compared now.
            let of_into = find(&links_into, other).unwrap_or_else(|| {
                pairs += self.persons[into].faces.len() * self.persons[other].faces.len();
                Link::between(&self.faces(into), &self.faces(other))
            });
            let of_from = find(&links_from, other).unwrap_or_else(|| {
                pairs += faces.len() * self.persons[other].faces.len();
                let faces: Vec<_> = faces.iter().map(|slot| self.templates.template(*slot)).collect();
                Link::between(&faces, &self.faces(other))
            });
            self.persons[other].links.retain(|(position, _)| *position != from);
            self.strong.remove(&(other.min(from), other.max(from)));
            self.strong.remove(&(other.min(into), other.max(into)));
            self.connect(into, other, of_into.and(of_from));
        }
        let person = &mut self.persons[into];
        person.faces.extend(faces);
        person.is_compared &= is_compared;
        person.apart.extend(&apart);
        for other in apart {
            self.persons[other].apart.insert(into);
        }
        self.present -= 1;
        self.strong.remove(&(into, from));
        if self.present >= self.strong_from {
            self.add_strong_pairs(into, usize::MAX);
        }
        pairs
    }
}

/// Returns the link to the person at this position.
fn find(links: &[(usize, Link)], position: usize) -> Option<Link> {
    links.binary_search_by_key(&position, |(other, _)| *other).ok().map(|place| links[place].1)
}
