//! Persons that are one: what later faces tell about earlier decisions.
//!
//! A single face may be like a stranger by chance; persons with several faces seldom are. So decisions about one face are
//! strict and leave some persons in pieces, and this joins the pieces. Everything is measured in deviations from what is
//! usual between these very faces and everybody else: grainy old prints are all alike, and that must not make them one
//! person. Linkage is over pairs of faces, never over means, which drift towards what all faces have in common.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Evidence, Gallery, PersonId, Scale, Signature, Template, photo::round};

/// Two persons that may be one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Join {
    /// The one with the lower number.
    pub into: PersonId,
    /// The other.
    pub from: PersonId,
    /// What speaks for it.
    pub evidence: Evidence,
}

/// What the faces known so far say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Consolidation {
    /// Persons that are one, in the order they are to be joined.
    pub joins: Vec<Join>,
    /// Persons that may be one once those are joined, the likeliest first.
    pub suggestions: Vec<Join>,
}

/// Deviations that make two persons one, where one of them has so many faces that chance is unlikely to fool all of them.
const NEEDED: f32 = 2.9;
/// How much more is needed each time the number of persons is ten times as large.
const NEEDED_TENFOLD: f32 = 0.6;
/// What the number of faces of the better known of the two adds to that: one, two, more.
const NEEDED_BY_FACES: [f32; 3] = [0.6, 0.0, -0.4];
/// A runner-up this far behind says nothing yet; one further behind speaks for the join, up to a limit.
const LEAD: (f32, f32) = (0.8, 2.3);
/// What a deviation of lead is worth.
const LEAD_WORTH: f32 = 0.3;
/// The lead without which a single face is nobody's: all it has is that nobody else comes near.
const SINGLE_LEAD: f32 = 1.2;
/// Whoever is this close to being the same person as the candidate is no runner-up.
const KIN: f32 = 1.0;
/// How far below their own cohesion a person of several faces may be like another.
const COHESION: f32 = 2.5;
/// From how many faces on a person has a cohesion.
const COHESIVE: usize = 3;
/// How far short of a join a suggestion may fall.
const SUGGESTED: f32 = 1.0;
/// Pairs of persons whose likest faces are below this are not looked at.
const WORTH_LOOKING: f32 = 2.0;
/// How many of the nearest persons are asked about a single face.
const ASKED: usize = 6;
/// How many persons a face is compared with to learn what is usual for it.
const COHORT: usize = 256;
/// How many unknown persons the model's own scale stands for.
const PRIOR: f32 = 20.0;

/// Finds the persons of this model that are one. `apart` names those who are not, whatever they look like; only pairs with
/// somebody of `fresh`, if given, are looked at.
pub fn consolidate(
    gallery: &Gallery,
    model: &str,
    scale: Scale,
    apart: &BTreeSet<(PersonId, PersonId)>,
    fresh: Option<&BTreeSet<PersonId>>,
) -> Consolidation {
    let mut persons = gallery.persons(model);
    let mut found = Consolidation::default();
    let mut apart: BTreeSet<_> = apart.iter().map(|(a, b)| pair(*a, *b)).collect();
    let mut fresh = fresh.cloned();
    loop {
        let mut bench = Bench::new(&persons, scale, apart, fresh.as_ref());
        let before = found.joins.len();
        while let Some(join) = bench.best() {
            found.joins.push(join);
            bench.join(join);
        }
        if found.joins.len() == before {
            found.suggestions = bench.nearly();
            return found;
        }
        // With fewer persons left, what is usual among them is known better: measure again.
        for join in &found.joins[before..] {
            let faces = persons.remove(&join.from).unwrap_or_default();
            persons.entry(join.into).or_default().extend(faces);
            fresh.as_mut().map(|fresh| fresh.insert(join.into));
        }
        apart = bench.apart;
    }
}

/// Everybody, for telling whose a face is where the nearest template alone is not enough: all faces of a person are asked.
pub struct Witnesses<'a> {
    gallery: &'a Gallery,
    model: &'a str,
    scale: Scale,
    persons: BTreeMap<PersonId, Vec<Template<'a>>>,
}

impl<'a> Witnesses<'a> {
    /// Everybody known by this model.
    pub fn new(gallery: &'a Gallery, model: &'a str, scale: Scale) -> Self {
        Self { gallery, model, scale, persons: gallery.persons(model) }
    }

    /// Whose face this is, if it stands out clearly; nobody `present` in its photo already.
    pub fn identify(&self, signature: &Signature, present: &[PersonId]) -> Option<(PersonId, Evidence)> {
        let near = self.gallery.nearest(self.model, signature, present.len() + ASKED);
        let near = near.iter().filter(|candidate| candidate.similarity >= self.scale.above(WORTH_LOOKING));
        let near = near.map(|candidate| candidate.person).filter(|person| !present.contains(person));
        let cohort = cohort(&self.persons);
        let face = [measure(signature.into(), None, &cohort, self.scale)];
        let link_with = |person: PersonId| {
            let templates = &self.persons[&person];
            let faces: Vec<_> = templates.iter().map(|t| measure(*t, Some(person), &cohort, self.scale)).collect();
            (person, link(&face, &faces), faces)
        };
        let mut links: Vec<_> = near.map(link_with).collect();
        links.sort_by(|(_, a, _), (_, b, _)| b.distinction.total_cmp(&a.distinction));
        let (person, link, faces) = links.first()?;
        let next = links.get(1).map_or(0.0, |(_, next, _)| next.distinction.max(0.0));
        let evidence = link.evidence(link.distinction - next, needed(self.persons.len(), faces.len()), faces.len());
        let clear = evidence.beyond >= 0.0 && evidence.lead >= SINGLE_LEAD && faces.len() >= NEEDED_BY_FACES.len();
        (clear && link.fits(faces, self.scale)).then_some((*person, evidence))
    }
}

/// A face and what is usual for it.
struct Face<'a> {
    template: Template<'a>,
    usual: f32,
    spread: f32,
}

impl Face<'_> {
    /// How far the two are above what is usual for either.
    fn distinction(&self, other: &Face<'_>) -> f32 {
        let similarity = self.template.similarity(other.template);
        ((similarity - self.usual) / self.spread + (similarity - other.usual) / other.spread) / 2.0
    }
}

/// The persons on the bench, and how those that are worth it compare.
struct Bench<'a> {
    scale: Scale,
    persons: BTreeMap<PersonId, Vec<Face<'a>>>,
    links: BTreeMap<(PersonId, PersonId), Link>,
    neighbours: BTreeMap<PersonId, BTreeSet<PersonId>>,
    apart: BTreeSet<(PersonId, PersonId)>,
}

/// How two persons compare.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// Over the faces of the lesser known, the mean distinction to the nearest few of the other's.
    distinction: f32,
    /// The mean similarity over all pairs.
    similarity: f32,
}

impl<'a> Bench<'a> {
    fn new(
        known: &BTreeMap<PersonId, Vec<Template<'a>>>,
        scale: Scale,
        apart: BTreeSet<(PersonId, PersonId)>,
        fresh: Option<&BTreeSet<PersonId>>,
    ) -> Self {
        let mut bench =
            Self { scale, persons: measured(known, scale), links: BTreeMap::new(), neighbours: BTreeMap::new(), apart };
        let ids: Vec<PersonId> = bench.persons.keys().copied().collect();
        let floor = scale.above(WORTH_LOOKING);
        for (n, b) in ids.iter().enumerate() {
            for a in &ids[..n] {
                let looked_at = fresh.is_none_or(|fresh| fresh.contains(a) || fresh.contains(b));
                if looked_at && bench.are_worth_looking(*a, *b, floor) {
                    bench.connect(*a, *b);
                }
            }
        }
        bench
    }

    fn are_worth_looking(&self, a: PersonId, b: PersonId, floor: f32) -> bool {
        let (a, b) = (&self.persons[&a], &self.persons[&b]);
        a.iter().any(|face| b.iter().any(|other| face.template.similarity(other.template) >= floor))
    }

    fn connect(&mut self, a: PersonId, b: PersonId) {
        let link = link(&self.persons[&a], &self.persons[&b]);
        self.links.insert(pair(a, b), link);
        self.neighbours.entry(a).or_default().insert(b);
        self.neighbours.entry(b).or_default().insert(a);
    }

    /// The join that speaks clearest, if one speaks clearly enough.
    fn best(&self) -> Option<Join> {
        let joins =
            self.links.keys().filter_map(|(a, b)| self.judge(*a, *b)).filter(|join| join.evidence.beyond >= 0.0);
        joins.max_by(|a, b| a.evidence.beyond.total_cmp(&b.evidence.beyond).then(b.from.cmp(&a.from)))
    }

    /// Whoever falls short of it by little, the clearest first.
    fn nearly(&self) -> Vec<Join> {
        let joins = self.links.keys().filter_map(|(a, b)| self.judge(*a, *b));
        let mut joins: Vec<_> = joins.filter(|join| join.evidence.beyond >= -SUGGESTED).collect();
        joins.sort_by(|a, b| b.evidence.beyond.total_cmp(&a.evidence.beyond));
        joins
    }

    /// What speaks for these two being one; nothing where something else speaks against it.
    fn judge(&self, a: PersonId, b: PersonId) -> Option<Join> {
        let link = self.links[&(a, b)];
        let (faces_a, faces_b) = (self.persons[&a].len(), self.persons[&b].len());
        let needed = needed(self.persons.len(), faces_a.max(faces_b));
        let hopeless = link.distinction + LEAD_WORTH * (LEAD.1 - LEAD.0) < needed - SUGGESTED;
        if hopeless || self.apart.contains(&(a, b)) || !self.is_cohesive(a, b) {
            return None;
        }
        let mut lead = f32::INFINITY;
        if faces_a <= faces_b {
            lead = lead.min(link.distinction - self.runner_up(a, b));
        }
        if faces_b <= faces_a {
            lead = lead.min(link.distinction - self.runner_up(b, a));
        }
        Some(Join { into: a, from: b, evidence: link.evidence(lead, needed, faces_a * faces_b) })
    }

    /// The likest to `person` who is neither `candidate` nor close to being the same as them.
    fn runner_up(&self, person: PersonId, candidate: PersonId) -> f32 {
        let kin = needed(self.persons.len(), 2) - KIN;
        let rivals = self.neighbours.get(&person).into_iter().flatten().filter(|rival| **rival != candidate);
        let rivals =
            rivals.filter(|rival| self.links.get(&pair(**rival, candidate)).is_none_or(|l| l.distinction < kin));
        rivals.map(|rival| self.links[&pair(person, *rival)].distinction).fold(0.0, f32::max)
    }

    /// Whether the two are about as like each other as each is in themselves.
    fn is_cohesive(&self, a: PersonId, b: PersonId) -> bool {
        let link = self.links[&(a, b)];
        [a, b].iter().all(|person| link.fits(&self.persons[person], self.scale))
    }

    fn join(&mut self, Join { into, from, .. }: Join) {
        let faces = self.persons.remove(&from).unwrap_or_default();
        self.persons.entry(into).or_default().extend(faces);
        let mut around = self.neighbours.remove(&from).unwrap_or_default();
        around.extend(self.neighbours.remove(&into).unwrap_or_default());
        for other in &around {
            self.links.remove(&pair(from, *other));
            if let Some(theirs) = self.neighbours.get_mut(other) {
                theirs.remove(&from);
            }
        }
        let parted = self.apart.iter().filter_map(|(a, b)| match (*a == from, *b == from) {
            (true, _) => Some(pair(into, *b)),
            (_, true) => Some(pair(into, *a)),
            _ => None,
        });
        let parted: Vec<_> = parted.collect();
        self.apart.extend(parted);
        around.retain(|other| *other != into && *other != from);
        for other in around {
            self.connect(into, other);
        }
    }
}

impl Link {
    /// Whether this is about as much as the faces of the person are alike among themselves.
    fn fits(&self, person: &[Face<'_>], scale: Scale) -> bool {
        cohesion(person).is_none_or(|own| self.similarity >= own - COHESION * scale.spread)
    }

    fn evidence(&self, lead: f32, needed: f32, pairs: usize) -> Evidence {
        let beyond = self.distinction + LEAD_WORTH * (lead.clamp(LEAD.0, LEAD.1) - LEAD.0) - needed;
        Evidence {
            similarity: round(self.similarity, 1e4),
            distinction: round(self.distinction, 1e2),
            lead: round(lead, 1e2),
            beyond: round(beyond, 1e2),
            pairs: u32::try_from(pairs).unwrap_or(u32::MAX),
        }
    }
}

/// Deviations that make two persons one among so many, where the better known has so many faces.
fn needed(persons: usize, faces: usize) -> f32 {
    let by_faces = NEEDED_BY_FACES[faces.clamp(1, NEEDED_BY_FACES.len()) - 1];
    NEEDED + NEEDED_TENFOLD * (persons.max(5) as f32).log10() + by_faces
}

fn link(a: &[Face<'_>], b: &[Face<'_>]) -> Link {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let (mut distinction, mut similarity) = (0.0, 0.0);
    for face in few {
        let mut nearest = [f32::NEG_INFINITY; 3];
        for other in many {
            similarity += face.template.similarity(other.template);
            let mut next = face.distinction(other);
            for place in &mut nearest {
                if next > *place {
                    std::mem::swap(place, &mut next);
                }
            }
        }
        let found = many.len().min(nearest.len());
        distinction += nearest[..found].iter().sum::<f32>() / found as f32;
    }
    Link { distinction: distinction / few.len() as f32, similarity: similarity / (few.len() * many.len()) as f32 }
}

/// The mean similarity among the faces of one person, where there are enough.
fn cohesion(faces: &[Face<'_>]) -> Option<f32> {
    if faces.len() < COHESIVE {
        return None;
    }
    let mut sum = 0.0;
    for (n, face) in faces.iter().enumerate() {
        sum += faces[..n].iter().map(|other| face.template.similarity(other.template)).sum::<f32>();
    }
    Some(sum / (faces.len() * (faces.len() - 1) / 2) as f32)
}

/// Every face with what is usual for it: how like it is to persons it is not.
fn measured<'a>(known: &BTreeMap<PersonId, Vec<Template<'a>>>, scale: Scale) -> BTreeMap<PersonId, Vec<Face<'a>>> {
    let cohort = cohort(known);
    let faces = |(person, templates): (&PersonId, &Vec<Template<'a>>)| {
        let measure = |template: &Template<'a>| measure(*template, Some(*person), &cohort, scale);
        (*person, templates.iter().map(measure).collect())
    };
    known.iter().map(faces).collect()
}

/// Some of the persons, evenly chosen, for whom everybody else is a stranger.
fn cohort<'k, 'a>(known: &'k BTreeMap<PersonId, Vec<Template<'a>>>) -> Vec<(PersonId, &'k [Template<'a>])> {
    let step = known.len().div_ceil(COHORT).max(1);
    known.iter().step_by(step).map(|(person, templates)| (*person, templates.as_slice())).collect()
}

fn measure<'a>(
    template: Template<'a>,
    owner: Option<PersonId>,
    cohort: &[(PersonId, &[Template<'a>])],
    scale: Scale,
) -> Face<'a> {
    let strangers = cohort.iter().filter(|(person, _)| Some(*person) != owner);
    let mean = |theirs: &[Template<'a>]| {
        theirs.iter().map(|other| template.similarity(*other)).sum::<f32>() / theirs.len() as f32
    };
    let mut alike: Vec<f32> = strangers.map(|(_, theirs)| mean(theirs)).collect();
    if alike.len() < 3 {
        return Face { template, usual: scale.unrelated, spread: scale.spread };
    }
    alike.sort_unstable_by(f32::total_cmp);
    // The lower half only: among the upper there may be the person themselves, in another piece.
    let (middle, low) = (quantile(&alike, 0.5), quantile(&alike, 0.16));
    let weight = alike.len() as f32 / (alike.len() as f32 + PRIOR);
    let blend = |measured: f32, usual: f32| weight * measured + (1.0 - weight) * usual;
    let own = ((middle - low) * scale.skew).clamp(0.5 * scale.spread, 1.7 * scale.spread);
    Face { template, usual: blend(middle, scale.unrelated), spread: blend(own, scale.spread) }
}

/// Between the values around the place, in proportion.
fn quantile(sorted: &[f32], share: f32) -> f32 {
    let place = share * (sorted.len() - 1) as f32;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f32)
}

fn pair(a: PersonId, b: PersonId) -> (PersonId, PersonId) {
    (a.min(b), a.max(b))
}
