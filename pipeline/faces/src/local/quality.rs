//! How well a face can be seen.

use sparks_domain::Quality;

use super::align::{Crop, Landmarks};
use super::centerface::Sighting;

/// The detail of a middling face, whose sharpness is a half: photos of newspapers have it, at a hundred pixels a face.
const MIDDLING: f32 = 0.05;

/// Measures a face: its box and landmarks in the photo, and its aligned crop.
pub fn quality(sighting: &Sighting, chip: &Crop) -> Quality {
    Quality { size: sighting.shorter_side(), sharpness: sharpness(chip), turn: Some(turn(&sighting.landmarks)) }
}

/// How crisp a face is, 0 to 1.
fn sharpness(chip: &Crop) -> f32 {
    let ratio = edges_to_contrast(chip);
    ratio / (ratio + MIDDLING)
}

/// The energy of the finest detail of the middle of a crop, relative to its contrast.
fn edges_to_contrast(chip: &Crop) -> f32 {
    let side = chip.side;
    let luma: Vec<f32> = chip.rgb.iter().map(|[red, green, blue]| 0.299 * red + 0.587 * green + 0.114 * blue).collect();
    let (from, to) = (side / 6, side - side / 6);
    let places = (from..to).flat_map(|y| (from..to).map(move |x| y * side + x));
    let (mut sum, mut squares, mut edges, mut count) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    for at in places {
        let around = luma[at - 1] + luma[at + 1] + luma[at - side] + luma[at + side];
        sum += f64::from(luma[at]);
        squares += f64::from(luma[at]).powi(2);
        edges += f64::from(around - 4.0 * luma[at]).powi(2);
        count += 1.0;
    }
    let variance = squares / count - (sum / count).powi(2);
    // A few grey levels of contrast are always there, so that a plain surface is not sharp for its noise.
    (edges / count / (variance + 25.0)) as f32
}

/// How far a face looks away, 0 to 1: the nose leaves the middle between the eyes.
fn turn(landmarks: &Landmarks) -> f32 {
    let [left_eye, right_eye, nose, left_mouth, right_mouth] = *landmarks;
    let axis = [right_eye[0] - left_eye[0], right_eye[1] - left_eye[1]];
    let apart = axis[0].hypot(axis[1]);
    if apart == 0.0 {
        return 1.0;
    }
    let along = |place: [f32; 2]| ((place[0] - left_eye[0]) * axis[0] + (place[1] - left_eye[1]) * axis[1]) / apart;
    let middle = (apart / 2.0 + (along(left_mouth) + along(right_mouth)) / 2.0) / 2.0;
    ((along(nose) - middle).abs() / (apart / 2.0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nose_tells_the_turn() {
        let with_nose = |x: f32| turn(&[[30.0, 40.0], [70.0, 40.0], [x, 60.0], [34.0, 80.0], [66.0, 80.0]]);
        assert_eq!(with_nose(50.0), 0.0);
        assert!((with_nose(60.0) - 0.5).abs() < 1e-6 && (with_nose(40.0) - 0.5).abs() < 1e-6);
        assert_eq!(with_nose(75.0), 1.0);
        assert_eq!(turn(&[[5.0, 5.0]; 5]), 1.0);
    }

    #[test]
    fn a_plain_surface_is_not_sharp() {
        assert_eq!(sharpness(&Crop { side: 150, rgb: vec![[90.0; 3]; 150 * 150] }), 0.0);
    }
}
