//! Faces that two looks at one photo have in common.

use crate::FaceBox;

/// From this share of common area on, two boxes are about one face.
const SAME_FACE: f32 = 0.2;

impl FaceBox {
    /// The area that two boxes share, as a part of what they cover together.
    pub fn shared(self, other: Self) -> f32 {
        let overlap = |a: f32, a_length: f32, b: f32, b_length: f32| (a + a_length).min(b + b_length) - a.max(b);
        let across = overlap(self.x, self.width, other.x, other.width).max(0.0);
        let common = across * overlap(self.y, self.height, other.y, other.height).max(0.0);
        let together = self.width * self.height + other.width * other.height - common;
        if together > 0.0 { common / together } else { 0.0 }
    }
}

/// Which of these boxes are about one face, by their places: the best pairs first, and each box once.
pub fn same_faces(these: &[FaceBox], those: &[FaceBox]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
    for (n, this) in these.iter().enumerate() {
        let shared = those.iter().map(|that| this.shared(*that)).enumerate();
        pairs.extend(shared.filter(|(_, shared)| *shared >= SAME_FACE).map(|(m, shared)| (shared, n, m)));
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (mut free, mut free_there) = (vec![true; these.len()], vec![true; those.len()]);
    pairs.retain(|(_, n, m)| {
        let both = free[*n] && free_there[*m];
        if both {
            (free[*n], free_there[*m]) = (false, false);
        }
        both
    });
    pairs.into_iter().map(|(_, n, m)| (n, m)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_pairs_come_first_and_nobody_twice() {
        let these = [[0.1, 0.1, 0.2, 0.2], [0.2, 0.1, 0.2, 0.2], [0.8, 0.8, 0.1, 0.1]].map(FaceBox::from);
        let those = [[0.21, 0.1, 0.2, 0.2], [0.13, 0.1, 0.2, 0.2], [0.5, 0.5, 0.0, 0.0]].map(FaceBox::from);
        assert_eq!(same_faces(&these, &those), [(1, 0), (0, 1)]);
        let mut themselves = same_faces(&these, &these);
        themselves.sort_unstable();
        assert_eq!(themselves, [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(same_faces(&these, &[]), []);
        assert_eq!(those[2].shared(those[2]), 0.0, "what has no area shares none");
    }
}
