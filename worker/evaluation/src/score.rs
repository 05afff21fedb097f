//! Pairwise precision and recall of a grouping of photos by person.

use std::collections::BTreeMap;

use sparks_domain::PersonId;

/// The accuracy of one grouping of photos, or the mean of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusteringScore {
    /// Fraction of the pairs of photos assigned to one person that show one person.
    pub precision: f64,
    /// Fraction of the pairs of photos that show one person that are assigned to one person.
    pub recall: f64,
    /// Number of persons to which the subjects are assigned.
    pub persons: f64,
    /// Minimum number of merges of persons and moves of photos that lead to the labels, per 100 photos.
    pub corrections_per_100: f64,
    /// Photos whose subject is unidentified.
    pub unidentified: f64,
}

/// Counts of pairs and corrections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusteringCounts {
    assigned_pairs: usize,
    labelled_pairs: usize,
    correct_pairs: usize,
    corrections: usize,
    persons: usize,
    unidentified: usize,
}

impl ClusteringCounts {
    /// Compares the person assigned to each photo's subject with the photo's label.
    pub fn compare(assigned: &[Option<PersonId>], labels: &[usize]) -> Self {
        let mut groups: BTreeMap<PersonId, BTreeMap<usize, usize>> = BTreeMap::new();
        let mut label_sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for (assigned, label) in assigned.iter().zip(labels) {
            *label_sizes.entry(*label).or_default() += 1;
            if let Some(person) = assigned {
                *groups.entry(*person).or_default().entry(*label).or_default() += 1;
            }
        }
        let mut counts = Self {
            labelled_pairs: label_sizes.values().map(|size| pairs(*size)).sum(),
            persons: groups.len(),
            unidentified: assigned.iter().filter(|person| person.is_none()).count(),
            ..Self::default()
        };
        // One move for each photo that is unidentified or in the group of another label; one merge for each group of a
        // label after the first.
        let mut groups_of_label: BTreeMap<usize, usize> = BTreeMap::new();
        counts.corrections = counts.unidentified;
        for group in groups.values() {
            let size: usize = group.values().sum();
            counts.assigned_pairs += pairs(size);
            counts.correct_pairs += group.values().map(|size| pairs(*size)).sum::<usize>();
            if let Some((label, most)) = group.iter().max_by_key(|(_, size)| **size) {
                counts.corrections += size - most;
                *groups_of_label.entry(*label).or_default() += 1;
            }
        }
        counts.corrections += groups_of_label.values().map(|groups| groups - 1).sum::<usize>();
        counts
    }

    /// Returns the fractions, for this number of photos.
    pub fn score(self, photos: usize) -> ClusteringScore {
        let fraction = |part: usize, whole: usize| if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
        ClusteringScore {
            precision: fraction(self.correct_pairs, self.assigned_pairs),
            recall: fraction(self.correct_pairs, self.labelled_pairs),
            persons: self.persons as f64,
            corrections_per_100: 100.0 * fraction(self.corrections, photos),
            unidentified: self.unidentified as f64,
        }
    }
}

impl ClusteringScore {
    /// Returns the mean of the scores.
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
    fn a_split_a_mix_up_and_an_unidentified_photo_are_three_corrections() {
        let person = |number: u32| PersonId::new(number);
        // Label 0 is split into persons 1 and 2; person 1 also has a photo of label 1; one photo of label 1 is
        // unidentified.
        let assigned = [person(1), person(1), person(2), person(2), person(1), person(3), None];
        let labels = [0, 0, 0, 0, 1, 1, 1];
        let counts = ClusteringCounts::compare(&assigned, &labels);
        let pairs = (counts.assigned_pairs, counts.correct_pairs, counts.labelled_pairs);
        assert_eq!(pairs, (3 + 1, 1 + 1, 6 + 3));
        assert_eq!((counts.corrections, counts.persons, counts.unidentified), (3, 3, 1));
        let perfect = ClusteringCounts::compare(&[person(7), person(7), person(8)], &[0, 0, 1]).score(3);
        assert_eq!((perfect.precision, perfect.recall, perfect.corrections_per_100), (1.0, 1.0, 0.0));
    }
}
