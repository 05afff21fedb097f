//! Greedy non-maximum suppression (NMS) of overlapping detections.

use super::centerface::Detection;

/// Two boxes with a larger intersection over union (IoU) are one face.
const MAX_IOU: f32 = 0.3;
/// Two boxes of which one lies in the other by more than this share are one face.
const MAX_CONTAINMENT: f32 = 0.6;

/// Drops detections that overlap an earlier one. The input is sorted by score.
pub fn suppress_overlaps(detections: impl IntoIterator<Item = Detection>) -> Vec<Detection> {
    let mut kept: Vec<Detection> = Vec::new();
    for detection in detections {
        if !kept.iter().any(|other| is_same_face(other, &detection)) {
            kept.push(detection);
        }
    }
    kept
}

/// Returns whether two detections are of one face.
pub fn is_same_face(a: &Detection, b: &Detection) -> bool {
    let shared = |axis: usize| {
        (a.bottom_right[axis].min(b.bottom_right[axis]) - a.top_left[axis].max(b.top_left[axis])).max(0.0)
    };
    let area = |detection: &Detection| detection.size()[0] * detection.size()[1];
    let intersection = shared(0) * shared(1);
    intersection > MAX_IOU * (area(a) + area(b) - intersection) || intersection > MAX_CONTAINMENT * area(a).min(area(b))
}
