//! How near a grouping of photos is to the truth.

use std::collections::BTreeMap;

use sparks_domain::PersonId;

/// What one order of the photos came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Of the pairs of photos said to show one person, the share that does.
    pub precision: f64,
    /// Of the pairs of photos that show one person, the share that was said to.
    pub recall: f64,
    /// How many persons were made of the subjects.
    pub persons: f64,
    /// The fewest joins of persons and moves of photos that would reach the truth, per 100 photos.
    pub corrections_per_100: f64,
    /// Photos of nobody.
    pub unidentified: f64,
}

/// Pairs and corrections, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    said: usize,
    true_of: usize,
    right: usize,
    corrections: usize,
    persons: usize,
    unidentified: usize,
}

impl Counts {
    /// Compares who each photo is said to show with who it shows.
    pub fn of(said: &[Option<PersonId>], truth: &[usize]) -> Self {
        let mut groups: BTreeMap<PersonId, BTreeMap<usize, usize>> = BTreeMap::new();
        let mut true_sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for (said, truth) in said.iter().zip(truth) {
            *true_sizes.entry(*truth).or_default() += 1;
            if let Some(person) = said {
                *groups.entry(*person).or_default().entry(*truth).or_default() += 1;
            }
        }
        let mut counts = Self {
            true_of: true_sizes.values().map(|size| pairs(*size)).sum(),
            persons: groups.len(),
            unidentified: said.iter().filter(|said| said.is_none()).count(),
            ..Self::default()
        };
        // A photo of nobody, or among those of another, is moved; all but one of the groups of a person are joined.
        let mut groups_of: BTreeMap<usize, usize> = BTreeMap::new();
        counts.corrections = counts.unidentified;
        for group in groups.values() {
            let size: usize = group.values().sum();
            counts.said += pairs(size);
            counts.right += group.values().map(|size| pairs(*size)).sum::<usize>();
            if let Some((person, most)) = group.iter().max_by_key(|(_, size)| **size) {
                counts.corrections += size - most;
                *groups_of.entry(*person).or_default() += 1;
            }
        }
        counts.corrections += groups_of.values().map(|groups| groups - 1).sum::<usize>();
        counts
    }

    /// As shares, of so many photos.
    pub fn score(self, photos: usize) -> Score {
        let share = |part: usize, whole: usize| if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
        Score {
            precision: share(self.right, self.said),
            recall: share(self.right, self.true_of),
            persons: self.persons as f64,
            corrections_per_100: 100.0 * share(self.corrections, photos),
            unidentified: self.unidentified as f64,
        }
    }
}

impl Score {
    /// The mean of several.
    pub fn mean(scores: &[Self]) -> Self {
        let mean = |part: fn(&Self) -> f64| scores.iter().map(part).sum::<f64>() / scores.len().max(1) as f64;
        Self {
            precision: mean(|score| score.precision),
            recall: mean(|score| score.recall),
            persons: mean(|score| score.persons),
            corrections_per_100: mean(|score| score.corrections_per_100),
            unidentified: mean(|score| score.unidentified),
        }
    }
}

fn pairs(size: usize) -> usize {
    size * size.saturating_sub(1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_a_stray_and_a_stranger_are_three_corrections() {
        let person = |number: u32| PersonId::new(number);
        // Ann in two pieces, one of which has a photo of Bob; one photo of Bob is nobody's.
        let said = [person(1), person(1), person(2), person(2), person(1), person(3), None];
        let truth = [0, 0, 0, 0, 1, 1, 1];
        let counts = Counts::of(&said, &truth);
        assert_eq!((counts.said, counts.right, counts.true_of), (3 + 1, 1 + 1, 6 + 3));
        assert_eq!((counts.corrections, counts.persons, counts.unidentified), (3, 3, 1));
        let perfect = Counts::of(&[person(7), person(7), person(8)], &[0, 0, 1]).score(3);
        assert_eq!((perfect.precision, perfect.recall, perfect.corrections_per_100), (1.0, 1.0, 0.0));
    }
}
