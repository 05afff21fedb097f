use super::{PORTRAITS, analyze, centre, portrait};
use image::imageops::{FilterType, resize, rotate90, rotate270};

#[test]
fn a_portrait_has_one_face_with_landmarks_in_order() {
    for name in PORTRAITS {
        let faces = analyze(&portrait(name));
        assert_eq!(faces.len(), 1, "{name}");
        let face = &faces[0];
        assert!(face.confidence > 0.8, "{name}: {}", face.confidence);
        let [left_eye, right_eye, nose, left_mouth, right_mouth] = face.landmarks[..] else { panic!("five landmarks") };
        assert!(left_eye.x < right_eye.x && left_mouth.x < right_mouth.x, "{name}");
        assert!(left_eye.x < nose.x && nose.x < right_eye.x, "{name}");
        assert!(left_eye.y.max(right_eye.y) < nose.y && nose.y < left_mouth.y.min(right_mouth.y), "{name}");
        let inside = |at: f32, from: f32, size: f32| at > from && at < from + size;
        assert!(face.landmarks.iter().all(|at| inside(at.x, face.bounds.x, face.bounds.width)), "{name}");
        assert!(face.landmarks.iter().all(|at| inside(at.y, face.bounds.y, face.bounds.height)), "{name}");
    }
}

#[test]
fn a_face_is_found_at_any_size_of_the_photo() {
    let image = portrait("obama-1.jpg");
    for (width, height) in [(64, 80), (120, 150), (300, 375), (1536, 1920), (2400, 3000)] {
        let other = resize(&image, width, height, FilterType::Triangle);
        let faces = analyze(&other);
        assert_eq!(faces.len(), 1, "{width}x{height}");
        let [x, y] = centre(&other, &faces[0]);
        let (expected_x, expected_y) = (0.54 * width as f32, 0.228 * height as f32);
        let near = |a: f32, b: f32| (a - b).abs() < 0.03 * width as f32;
        assert!(near(x, expected_x) && near(y, expected_y), "{width}x{height}: {x},{y}");
    }
}

#[test]
fn a_face_at_the_edge_is_clipped_to_the_photo() {
    let image = portrait("obama-1.jpg");
    let cut = image::imageops::crop_imm(&image, 380, 120, 420, 880).to_image();
    for face in analyze(&cut) {
        let bounds = face.bounds;
        assert!(bounds.x >= 0.0 && bounds.y >= 0.0 && bounds.width > 0.0 && bounds.height > 0.0);
        assert!(bounds.x + bounds.width <= 1.0 + 1e-6 && bounds.y + bounds.height <= 1.0 + 1e-6);
        assert!((face.quality.size - (bounds.width * 420.0).min(bounds.height * 880.0)).abs() < 0.1);
    }
}

#[test]
fn a_rotated_face_is_found_at_most_once() {
    let image = portrait("obama-1.jpg");
    for rotated in [rotate90(&image), rotate270(&image)] {
        assert!(analyze(&rotated).len() <= 1);
    }
}
