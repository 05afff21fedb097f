//! Which persons are one, by all of their faces.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{Consolidation, Gallery, Merges, PersonId, Scale, Signature, Witnesses, consolidate};

use crate::story::person;

const DIMENSIONS: usize = 128;
const MODEL: &str = "m";

/// Directions drawn at random.
const SCALE: Scale = Scale { unrelated: 0.0, spread: 0.0884, skew: 1.0 };

/// Faces that are drawn, the same for the same seed.
struct Faces(fastrand::Rng);

type Look = [f32; DIMENSIONS];

impl Faces {
    /// Somebody new.
    fn somebody(&mut self) -> Look {
        let mut look = [0.0; DIMENSIONS];
        for pair in look.chunks_exact_mut(2) {
            let (radius, angle) = ((-2.0 * (1.0 - self.0.f32()).ln()).sqrt(), self.0.f32() * std::f32::consts::TAU);
            pair.copy_from_slice(&[radius * angle.cos(), radius * angle.sin()]);
        }
        scaled(look)
    }

    /// A face of somebody: two of them are about this alike.
    fn face(&mut self, somebody: &Look, alike: f32) -> Signature {
        let (own, noise) = (alike.sqrt(), (1.0 - alike).sqrt());
        let other = self.somebody();
        let vector: Vec<f32> = somebody.iter().zip(other).map(|(a, b)| own * a + noise * b).collect();
        Signature::quantise(&vector).unwrap()
    }
}

fn scaled(mut look: Look) -> Look {
    let length = look.iter().map(|x| x * x).sum::<f32>().sqrt();
    look.iter_mut().for_each(|x| *x /= length);
    look
}

/// Somebody's faces, who got so many numbers.
#[derive(Clone, Copy)]
struct Somebody {
    numbers: u32,
    faces: usize,
    alike: f32,
}

const STRANGER: Somebody = Somebody { numbers: 1, faces: 3, alike: 0.6 };

/// A gallery of these people, numbered one after the other.
fn gallery(seed: u64, people: &[Somebody]) -> Gallery {
    let (mut faces, mut gallery, mut number) = (Faces(fastrand::Rng::with_seed(seed)), Gallery::default(), 0);
    for Somebody { numbers, faces: many, alike } in people {
        let look = faces.somebody();
        for _ in 0..*numbers {
            number += 1;
            for _ in 0..*many {
                gallery.learn(person(number), MODEL, &faces.face(&look, *alike));
            }
        }
    }
    gallery
}

fn found(gallery: &Gallery, apart: &[(u32, u32)], fresh: Option<&[u32]>) -> Consolidation {
    let apart: BTreeSet<_> = apart.iter().map(|(a, b)| (person(*a), person(*b))).collect();
    let fresh: Option<BTreeSet<PersonId>> = fresh.map(|fresh| fresh.iter().map(|n| person(*n)).collect());
    consolidate(gallery, MODEL, SCALE, &apart, fresh.as_ref())
}

/// Those who are one after these joins, with whom.
fn groups(found: &Consolidation) -> Vec<Vec<u32>> {
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for join in &found.joins {
        assert!(join.into < join.from, "the lower number stays: {join:?}");
        assert!(join.evidence.beyond >= 0.0, "{join:?}");
        let more = groups.remove(&join.from.number()).unwrap_or_else(|| vec![join.from.number()]);
        groups.entry(join.into.number()).or_insert_with(|| vec![join.into.number()]).extend(more);
    }
    let sorted = |mut group: Vec<u32>| {
        group.sort_unstable();
        group
    };
    groups.into_values().map(sorted).collect()
}

#[test]
fn pieces_of_one_person_are_joined_and_strangers_are_not() {
    for seed in 0..8 {
        let pieces = [Somebody { numbers: 3, ..STRANGER }, STRANGER, Somebody { numbers: 2, faces: 1, alike: 0.7 }];
        let people = [&pieces[..], &[STRANGER; 20]].concat();
        let found = found(&gallery(seed, &people), &[], None);
        assert_eq!(groups(&found), [vec![1, 2, 3], vec![5, 6]], "seed {seed}: {found:#?}");
    }
}

#[test]
fn strangers_are_nobody_else() {
    for seed in 0..8 {
        for faces in [1, 3] {
            let found = found(&gallery(seed, &[Somebody { faces, ..STRANGER }; 60]), &[], None);
            assert_eq!(found.joins, [], "seed {seed}, {faces} faces");
        }
    }
}

#[test]
fn a_gallery_of_nobody_or_of_one_has_nothing_to_join() {
    assert_eq!(found(&Gallery::default(), &[], None), Consolidation::default());
    assert_eq!(found(&gallery(1, &[STRANGER]), &[], None), Consolidation::default());
    let others = consolidate(&gallery(1, &[STRANGER; 3]), "another model", SCALE, &BTreeSet::new(), None);
    assert_eq!(others, Consolidation::default());
}

#[test]
fn those_who_are_apart_are_never_joined_not_even_through_a_third() {
    for seed in 0..8 {
        let people = [&[Somebody { numbers: 4, ..STRANGER }][..], &[STRANGER; 10]].concat();
        let found = found(&gallery(seed, &people), &[(3, 1)], None);
        let groups = groups(&found);
        assert!(!groups.is_empty(), "seed {seed}: the others are still one");
        assert!(!groups.iter().any(|group| group.contains(&1) && group.contains(&3)), "seed {seed}: {groups:?}");
        let pairs = found.suggestions.iter().map(|join| (join.into.number(), join.from.number()));
        assert!(!pairs.clone().any(|pair| pair == (1, 3)), "seed {seed}: suggested all the same");
    }
}

#[test]
fn only_pairs_with_somebody_fresh_are_looked_at() {
    let pairs = [Somebody { numbers: 2, ..STRANGER }; 2];
    let gallery = gallery(3, &[&pairs[..], &[STRANGER; 10]].concat());
    assert_eq!(groups(&found(&gallery, &[], None)), [[1, 2], [3, 4]]);
    assert_eq!(groups(&found(&gallery, &[], Some(&[4]))), [[3, 4]]);
    assert_eq!(found(&gallery, &[], Some(&[9])).joins, []);
    assert_eq!(found(&gallery, &[], Some(&[])), Consolidation::default());
}

/// Faces that are a bit too little alike, and some that are less so.
#[test]
fn whoever_is_nearly_one_is_suggested_and_not_joined() {
    let mut suggested = 0;
    for seed in 0..16 {
        let pair = Somebody { numbers: 2, faces: 1, alike: 0.32 };
        let found = found(&gallery(seed, &[&[pair][..], &[STRANGER; 20]].concat()), &[], None);
        for join in &found.suggestions {
            assert!(join.evidence.beyond < 0.0 && join.evidence.beyond >= -1.0, "seed {seed}: {join:?}");
        }
        assert!(found.suggestions.is_sorted_by(|a, b| a.evidence.beyond >= b.evidence.beyond), "seed {seed}");
        let is_pair = |(into, from)| (into, from) == (person(1), person(2));
        suggested += usize::from(found.suggestions.iter().any(|join| is_pair((join.into, join.from))));
    }
    assert!(suggested >= 5, "only {suggested} of 16 pairs were suggested");
}

#[test]
fn the_same_gallery_gives_the_same_joins() {
    let people = [&[Somebody { numbers: 3, ..STRANGER }; 4][..], &[STRANGER; 20]].concat();
    let (one, other) = (gallery(7, &people), gallery(7, &people));
    assert_eq!(found(&one, &[], None), found(&other, &[], None));
}

/// What is joined needs not be joined again.
#[test]
fn those_who_are_one_already_are_one() {
    let mut gallery = gallery(2, &[&[Somebody { numbers: 3, ..STRANGER }][..], &[STRANGER; 10]].concat());
    let mut merges = Merges::default();
    for (seq, join) in (1..).zip(found(&gallery, &[], None).joins) {
        let merge = crate::story::merged(join.into.number(), join.from.number(), sparks_domain::Seq(seq));
        merges.evolve(&sparks_domain::Event::PersonsMerged(merge));
    }
    gallery.follow(&merges);
    assert_eq!(gallery.persons(MODEL).len(), 11);
    assert_eq!(found(&gallery, &[], None).joins, []);
}

/// A face like several of somebody's, but like none of them enough by itself.
#[test]
fn a_face_is_known_by_all_faces_of_a_person_and_not_to_those_present() {
    let mut faces = Faces(fastrand::Rng::with_seed(5));
    let (ada, bob) = (faces.somebody(), faces.somebody());
    let mut gallery = gallery(11, &[STRANGER; 20]);
    for _ in 0..6 {
        gallery.learn(person(100), MODEL, &faces.face(&ada, 0.6));
    }
    let witnesses = Witnesses::new(&gallery, MODEL, SCALE);
    let face = faces.face(&ada, 0.6);
    let (who, evidence) = witnesses.identify(&face, &[]).expect("somebody");
    assert_eq!((who, evidence.pairs), (person(100), 6));
    assert!(evidence.beyond >= 0.0, "{evidence:?}");
    assert_eq!(witnesses.identify(&face, &[person(100)]), None, "two faces of one photo are two persons");
    assert_eq!(witnesses.identify(&faces.face(&bob, 0.6), &[]), None, "a stranger");
}
