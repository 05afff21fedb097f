//! Consolidation in steps finds exactly what consolidation at once finds, and changes of the gallery meanwhile do not matter.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sparks_domain::{Consolidation, ConsolidationSearch, Event, Gallery, Merges, PersonId, Seq};

use crate::{
    consolidation::{MODEL, SCALE, SplitIdentity, WHOLE, gallery},
    consolidation_reference::consolidate_at_once,
    given_when_then::{merged, person},
};

/// The input of a consolidation.
#[derive(Debug, Clone)]
struct Input {
    seed: u64,
    identities: Vec<SplitIdentity>,
    apart: Vec<(u32, u32)>,
    /// Persons merged before.
    merged: Vec<(u32, u32)>,
    fresh: Option<Vec<u32>>,
    comparisons: usize,
}

prop_compose! {
    fn identity()(persons in 1_u32..5, faces in 1_usize..5, similarity in 0.25_f32..0.75) -> SplitIdentity {
        SplitIdentity { persons, faces, similarity }
    }
}

prop_compose! {
    fn input()(
        seed: u64,
        identities in prop::collection::vec(identity(), 0..24),
        apart in prop::collection::vec((1_u32..40, 1_u32..40), 0..12),
        merged in prop::collection::vec((1_u32..40, 1_u32..40), 0..3),
        fresh in prop::option::of(prop::collection::vec(1_u32..60, 0..12)),
        comparisons in prop_oneof![Just(1_usize), 2_usize..5000],
    ) -> Input {
        Input { seed, identities, apart, merged, fresh, comparisons }
    }
}

impl Input {
    fn gallery(&self) -> Gallery {
        let mut gallery = gallery(self.seed, &self.identities);
        let mut merges = Merges::default();
        for (seq, (into, from)) in (1..).zip(&self.merged) {
            if merges.current(person(*into)) != merges.current(person(*from)) && !merges.is_absorbed(person(*from)) {
                merges.evolve(&Event::PersonsMerged(merged(*into, *from, Seq(seq))));
            }
        }
        gallery.apply_merges(&merges);
        gallery
    }

    fn apart(&self) -> BTreeSet<(PersonId, PersonId)> {
        let pairs = self.apart.iter().filter(|(a, b)| a != b);
        pairs.map(|(a, b)| (person(*a), person(*b))).collect()
    }

    fn fresh(&self) -> Option<BTreeSet<PersonId>> {
        self.fresh.as_ref().map(|fresh| fresh.iter().map(|number| person(*number)).collect())
    }

    fn find_in_steps(&self, gallery: &mut Gallery) -> Consolidation {
        let mut search = ConsolidationSearch::new(gallery, MODEL, SCALE, &self.apart(), self.fresh().as_ref());
        for number in 1.. {
            if let Some(found) = search.step(self.comparisons) {
                return found;
            }
            // The search works on a copy.
            gallery.remove(person(number));
        }
        unreachable!()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn steps_find_what_consolidation_at_once_finds(input in input()) {
        let mut gallery = input.gallery();
        let expected = consolidate_at_once(&gallery, MODEL, SCALE, &input.apart(), input.fresh().as_ref());
        prop_assert_eq!(input.find_in_steps(&mut gallery), expected);
    }

    #[test]
    fn removed_persons_leave_the_others_as_they_were(seed: u64, removed in prop::collection::vec(1_u32..700, 0..40)) {
        let mut changed = gallery(seed, &[SplitIdentity { faces: 2, ..WHOLE }; 650]);
        let copy = changed.clone();
        removed.iter().for_each(|number| changed.remove(person(*number)));
        let removed: BTreeSet<PersonId> = removed.iter().map(|number| person(*number)).collect();
        let (now, before) = (changed.persons(MODEL), copy.persons(MODEL));
        prop_assert_eq!(before.len(), 650, "the copy is unchanged");
        let left: Vec<PersonId> = before.keys().filter(|id| !removed.contains(id)).copied().collect();
        prop_assert_eq!(now.keys().copied().collect::<Vec<_>>(), left);
        prop_assert_eq!(changed.len(), now.len() * 2);
        for (id, templates) in &now {
            for (template, before) in templates.iter().zip(&before[id]) {
                prop_assert!(template.similarity(*before) > 0.999, "{} has the templates of another person", id);
            }
        }
    }
}

#[test]
fn a_split_identity_among_many_is_found_in_steps() {
    let identities = [&[SplitIdentity { persons: 3, ..WHOLE }; 20][..], &[WHOLE; 200]].concat();
    let input = Input { seed: 3, identities, apart: vec![(1, 2)], merged: vec![], fresh: None, comparisons: 1000 };
    let mut gallery = input.gallery();
    let expected = consolidate_at_once(&gallery, MODEL, SCALE, &input.apart(), None);
    assert!(expected.merges.len() > 30, "{}", expected.merges.len());
    assert_eq!(input.find_in_steps(&mut gallery), expected);
}
