//! Matching the face boxes of two analyses of one photo.

use crate::FaceBox;

/// The intersection over union from which two boxes are the same face.
const SAME_FACE: f32 = 0.2;

impl FaceBox {
    /// Returns the intersection over union of two boxes.
    pub fn intersection_over_union(self, other: Self) -> f32 {
        let overlap = |a: f32, a_length: f32, b: f32, b_length: f32| (a + a_length).min(b + b_length) - a.max(b);
        let width = overlap(self.x, self.width, other.x, other.width).max(0.0);
        let intersection = width * overlap(self.y, self.height, other.y, other.height).max(0.0);
        let union = self.width * self.height + other.width * other.height - intersection;
        if union > 0.0 { intersection / union } else { 0.0 }
    }
}

/// Returns the pairs of boxes that are the same face, by index: greedily, the largest overlap first, each box once.
pub fn same_faces(these: &[FaceBox], those: &[FaceBox]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
    for (n, this) in these.iter().enumerate() {
        let overlaps = those.iter().map(|that| this.intersection_over_union(*that)).enumerate();
        pairs.extend(overlaps.filter(|(_, iou)| *iou >= SAME_FACE).map(|(m, iou)| (iou, n, m)));
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (mut free_these, mut free_those) = (vec![true; these.len()], vec![true; those.len()]);
    pairs.retain(|(_, n, m)| {
        let are_free = free_these[*n] && free_those[*m];
        if are_free {
            (free_these[*n], free_those[*m]) = (false, false);
        }
        are_free
    });
    pairs.into_iter().map(|(_, n, m)| (n, m)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_pairs_come_first_and_each_box_is_used_once() {
        let these = [[0.1, 0.1, 0.2, 0.2], [0.2, 0.1, 0.2, 0.2], [0.8, 0.8, 0.1, 0.1]].map(FaceBox::from);
        let those = [[0.21, 0.1, 0.2, 0.2], [0.13, 0.1, 0.2, 0.2], [0.5, 0.5, 0.0, 0.0]].map(FaceBox::from);
        assert_eq!(same_faces(&these, &those), [(1, 0), (0, 1)]);
        let mut themselves = same_faces(&these, &these);
        themselves.sort_unstable();
        assert_eq!(themselves, [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(same_faces(&these, &[]), []);
        assert_eq!(those[2].intersection_over_union(those[2]), 0.0, "a box without area");
    }
}
