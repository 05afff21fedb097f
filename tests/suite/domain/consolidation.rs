//! Consolidation of persons by all of their templates.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{
    Consolidation, Event, Gallery, Merges, PersonId, Scale, Seq, Signature, TemplateEvidence, consolidate,
};

use crate::given_when_then::{merged, person};

const DIMENSIONS: usize = 128;
pub(crate) const MODEL: &str = "m";

/// The distribution of similarities between random directions.
pub(crate) const SCALE: Scale = Scale { median: 0.0, spread: 0.0884, match_from: 4.1 };

/// A generator of faces, the same for the same seed.
struct FaceGenerator(fastrand::Rng);

type Direction = [f32; DIMENSIONS];

impl FaceGenerator {
    /// Returns the direction of a new identity.
    fn identity(&mut self) -> Direction {
        let mut direction = [0.0; DIMENSIONS];
        for pair in direction.chunks_exact_mut(2) {
            let (radius, angle) = ((-2.0 * (1.0 - self.0.f32()).ln()).sqrt(), self.0.f32() * std::f32::consts::TAU);
            pair.copy_from_slice(&[radius * angle.cos(), radius * angle.sin()]);
        }
        unit(direction)
    }

    /// Returns a face of an identity: two of them have about this similarity.
    fn face(&mut self, identity: &Direction, similarity: f32) -> Signature {
        let (own, noise) = (similarity.sqrt(), (1.0 - similarity).sqrt());
        let other = self.identity();
        let vector: Vec<f32> = identity.iter().zip(other).map(|(a, b)| own * a + noise * b).collect();
        Signature::quantise(&vector).unwrap()
    }
}

fn unit(mut direction: Direction) -> Direction {
    let length = direction.iter().map(|x| x * x).sum::<f32>().sqrt();
    direction.iter_mut().for_each(|x| *x /= length);
    direction
}

/// An identity that was split into so many persons, each with so many faces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitIdentity {
    pub persons: u32,
    pub faces: usize,
    pub similarity: f32,
}

pub(crate) const WHOLE: SplitIdentity = SplitIdentity { persons: 1, faces: 3, similarity: 0.6 };

/// Returns a gallery of these identities, numbered one after the other.
pub(crate) fn gallery(seed: u64, identities: &[SplitIdentity]) -> Gallery {
    let (mut generator, mut gallery, mut number) =
        (FaceGenerator(fastrand::Rng::with_seed(seed)), Gallery::default(), 0);
    for SplitIdentity { persons, faces, similarity } in identities {
        let identity = generator.identity();
        for _ in 0..*persons {
            number += 1;
            for _ in 0..*faces {
                gallery.enroll(person(number), MODEL, &generator.face(&identity, *similarity));
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

/// Returns the groups of persons after these merges.
fn groups(found: &Consolidation) -> Vec<Vec<u32>> {
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for merge in &found.merges {
        assert!(merge.into < merge.from, "the lower number stays: {merge:?}");
        assert!(merge.evidence.beyond >= 0.0, "{merge:?}");
        let more = groups.remove(&merge.from.number()).unwrap_or_else(|| vec![merge.from.number()]);
        groups.entry(merge.into.number()).or_insert_with(|| vec![merge.into.number()]).extend(more);
    }
    let sorted = |mut group: Vec<u32>| {
        group.sort_unstable();
        group
    };
    groups.into_values().map(sorted).collect()
}

#[test]
fn split_persons_are_merged_and_different_persons_are_not() {
    for seed in 0..8 {
        let split =
            [SplitIdentity { persons: 3, ..WHOLE }, WHOLE, SplitIdentity { persons: 2, faces: 1, similarity: 0.7 }];
        let identities = [&split[..], &[WHOLE; 20]].concat();
        let found = found(&gallery(seed, &identities), &[], None);
        assert_eq!(groups(&found), [vec![1, 2, 3], vec![5, 6]], "seed {seed}: {found:#?}");
    }
}

#[test]
fn different_persons_are_never_merged() {
    for seed in 0..8 {
        for faces in [1, 3] {
            let found = found(&gallery(seed, &[SplitIdentity { faces, ..WHOLE }; 60]), &[], None);
            assert_eq!(found.merges, [], "seed {seed}, {faces} faces");
        }
    }
}

#[test]
fn gallery_with_fewer_than_two_persons_has_no_merges() {
    assert_eq!(found(&Gallery::default(), &[], None), Consolidation::default());
    assert_eq!(found(&gallery(1, &[WHOLE]), &[], None), Consolidation::default());
    let others = consolidate(&gallery(1, &[WHOLE; 3]), "another model", SCALE, &BTreeSet::new(), None);
    assert_eq!(others, Consolidation::default());
}

#[test]
fn pairs_kept_apart_are_not_merged_through_a_third_person() {
    for seed in 0..8 {
        let identities = [&[SplitIdentity { persons: 4, ..WHOLE }][..], &[WHOLE; 10]].concat();
        let found = found(&gallery(seed, &identities), &[(3, 1)], None);
        let groups = groups(&found);
        assert!(!groups.is_empty(), "seed {seed}: the others are still merged");
        assert!(!groups.iter().any(|group| group.contains(&1) && group.contains(&3)), "seed {seed}: {groups:?}");
        let pairs = found.suggestions.iter().map(|merge| (merge.into.number(), merge.from.number()));
        assert!(!pairs.clone().any(|pair| pair == (1, 3)), "seed {seed}: suggested nevertheless");
    }
}

#[test]
fn only_pairs_with_a_fresh_person_are_compared() {
    let pairs = [SplitIdentity { persons: 2, ..WHOLE }; 2];
    let gallery = gallery(3, &[&pairs[..], &[WHOLE; 10]].concat());
    assert_eq!(groups(&found(&gallery, &[], None)), [[1, 2], [3, 4]]);
    assert_eq!(groups(&found(&gallery, &[], Some(&[4]))), [[3, 4]]);
    assert_eq!(found(&gallery, &[], Some(&[9])).merges, []);
    assert_eq!(found(&gallery, &[], Some(&[])), Consolidation::default());
}

/// Pairs whose similarity is slightly too low for a merge.
#[test]
fn nearly_sufficient_evidence_is_a_suggestion() {
    let mut suggested = 0;
    for seed in 0..16 {
        let pair = SplitIdentity { persons: 2, faces: 1, similarity: 0.32 };
        let found = found(&gallery(seed, &[&[pair][..], &[WHOLE; 20]].concat()), &[], None);
        for merge in &found.suggestions {
            assert!(merge.evidence.beyond < 0.0 && merge.evidence.beyond >= -1.0, "seed {seed}: {merge:?}");
        }
        assert!(found.suggestions.is_sorted_by(|a, b| a.evidence.beyond >= b.evidence.beyond), "seed {seed}");
        let is_pair = |(into, from)| (into, from) == (person(1), person(2));
        suggested += usize::from(found.suggestions.iter().any(|merge| is_pair((merge.into, merge.from))));
    }
    assert!(suggested >= 5, "only {suggested} of 16 pairs were suggested");
}

#[test]
fn same_gallery_gives_the_same_merges() {
    let identities = [&[SplitIdentity { persons: 3, ..WHOLE }; 4][..], &[WHOLE; 20]].concat();
    let (one, other) = (gallery(7, &identities), gallery(7, &identities));
    assert_eq!(found(&one, &[], None), found(&other, &[], None));
}

#[test]
fn merged_persons_are_not_merged_again() {
    let mut gallery = gallery(2, &[&[SplitIdentity { persons: 3, ..WHOLE }][..], &[WHOLE; 10]].concat());
    let mut merges = Merges::default();
    for (seq, proposal) in (1..).zip(found(&gallery, &[], None).merges) {
        let merge = merged(proposal.into.number(), proposal.from.number(), Seq(seq));
        merges.evolve(&Event::PersonsMerged(merge));
    }
    gallery.apply_merges(&merges);
    assert_eq!(gallery.persons(MODEL).len(), 11);
    assert_eq!(found(&gallery, &[], None).merges, []);
}

/// The face resembles several templates of a person, and none of them enough to match alone.
#[test]
fn face_is_identified_by_all_templates_of_a_person() {
    let mut generator = FaceGenerator(fastrand::Rng::with_seed(5));
    let (ada, bob) = (generator.identity(), generator.identity());
    let mut gallery = gallery(11, &[WHOLE; 20]);
    for _ in 0..6 {
        gallery.enroll(person(100), MODEL, &generator.face(&ada, 0.6));
    }
    let evidence_of_all = TemplateEvidence::new(&gallery, MODEL, SCALE);
    let face = generator.face(&ada, 0.6);
    let (identified, evidence) = evidence_of_all.identify(&face, &[]).expect("a person");
    assert_eq!((identified, evidence.pairs), (person(100), 6));
    assert!(evidence.beyond >= 0.0, "{evidence:?}");
    assert_eq!(evidence_of_all.identify(&face, &[person(100)]), None, "two faces of one photo are two persons");
    assert_eq!(evidence_of_all.identify(&generator.face(&bob, 0.6), &[]), None, "another identity");
}

/// A single pair at this similarity may be chance: the face itself as only template is none, and neither are two.
#[test]
fn face_is_not_identified_by_one_or_two_templates() {
    let mut generator = FaceGenerator(fastrand::Rng::with_seed(5));
    let (ada, mut gallery) = (generator.identity(), gallery(11, &[WHOLE; 20]));
    let face = generator.face(&ada, 0.6);
    for templates in 1..=3 {
        gallery.enroll(person(100), MODEL, &face);
        let identified = TemplateEvidence::new(&gallery, MODEL, SCALE).identify(&face, &[]);
        assert_eq!(identified.is_some(), templates == 3, "{templates} templates");
    }
}

/// Every face of one person is a little similar to every face of the other: many such pairs are no evidence.
#[test]
fn many_faces_require_no_less_evidence() {
    for faces in [2, 8, 16] {
        let mut generator = FaceGenerator(fastrand::Rng::with_seed(3));
        let (common, mut gallery) = (generator.identity(), Gallery::default());
        for number in 1..=2 {
            let own = generator.identity();
            let mixed: Vec<f32> =
                common.iter().zip(own).map(|(a, b)| 0.25_f32.sqrt() * a + 0.75_f32.sqrt() * b).collect();
            let identity = unit(mixed.try_into().unwrap());
            for _ in 0..faces {
                gallery.enroll(person(number), MODEL, &generator.face(&identity, 0.8));
            }
        }
        let found = found(&gallery, &[], None);
        assert_eq!(found.merges, [], "{faces} faces: {found:#?}");
    }
}
