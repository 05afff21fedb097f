//! Face quality: size, sharpness and pose.

use sparks_domain::Quality;

use super::align::{AlignedCrop, Landmarks};
use super::centerface::Detection;

/// The ratio of edges to contrast at which sharpness is one half: that of newspaper photos at a hundred pixels per face.
const MIDDLING: f32 = 0.05;

/// Measures a face: its bounding box and landmarks in the photo, and its aligned crop.
pub fn quality(detection: &Detection, chip: &AlignedCrop) -> Quality {
    Quality { size: detection.shorter_side(), sharpness: sharpness(chip), turn: Some(turn(&detection.landmarks)) }
}

/// Returns the sharpness, 0 to 1.
fn sharpness(chip: &AlignedCrop) -> f32 {
    let ratio = edges_to_contrast(chip);
    ratio / (ratio + MIDDLING)
}

/// Returns the energy of the Laplacian in the centre of a crop, relative to the variance of its luma.
fn edges_to_contrast(chip: &AlignedCrop) -> f32 {
    let side = chip.side;
    let luma: Vec<f32> = chip.rgb.iter().map(|[red, green, blue]| 0.299 * red + 0.587 * green + 0.114 * blue).collect();
    let (from, to) = (side / 6, side - side / 6);
    let positions = (from..to).flat_map(|y| (from..to).map(move |x| y * side + x));
    let (mut sum, mut squares, mut edges, mut count) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    for at in positions {
        let neighbours = luma[at - 1] + luma[at + 1] + luma[at - side] + luma[at + side];
        sum += f64::from(luma[at]);
        squares += f64::from(luma[at]).powi(2);
        edges += f64::from(neighbours - 4.0 * luma[at]).powi(2);
        count += 1.0;
    }
    let variance = squares / count - (sum / count).powi(2);
    // The constant keeps the noise of a plain surface from counting as sharp.
    (edges / count / (variance + 25.0)) as f32
}

/// Returns how far a face is turned away (yaw), 0 to 1: the offset of the nose from the middle of eyes and mouth.
fn turn(landmarks: &Landmarks) -> f32 {
    let [left_eye, right_eye, nose, left_mouth, right_mouth] = *landmarks;
    let axis = [right_eye[0] - left_eye[0], right_eye[1] - left_eye[1]];
    let distance = axis[0].hypot(axis[1]);
    if distance == 0.0 {
        return 1.0;
    }
    let along = |point: [f32; 2]| ((point[0] - left_eye[0]) * axis[0] + (point[1] - left_eye[1]) * axis[1]) / distance;
    let middle = (distance / 2.0 + (along(left_mouth) + along(right_mouth)) / 2.0) / 2.0;
    ((along(nose) - middle).abs() / (distance / 2.0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nose_determines_the_turn() {
        let with_nose = |x: f32| turn(&[[30.0, 40.0], [70.0, 40.0], [x, 60.0], [34.0, 80.0], [66.0, 80.0]]);
        assert_eq!(with_nose(50.0), 0.0);
        assert!((with_nose(60.0) - 0.5).abs() < 1e-6 && (with_nose(40.0) - 0.5).abs() < 1e-6);
        assert_eq!(with_nose(75.0), 1.0);
        assert_eq!(turn(&[[5.0, 5.0]; 5]), 1.0);
    }

    #[test]
    fn a_plain_surface_is_not_sharp() {
        assert_eq!(sharpness(&AlignedCrop { side: 150, rgb: vec![[90.0; 3]; 150 * 150] }), 0.0);
    }
}
