use super::{analyze, canvas, check_bounds, degradation, portrait};
use sparks_faces::{draw_marker, identity_vector};

#[test]
fn a_face_is_found_where_it_was_drawn() {
    for side in [24, 40, 64, 90, 91, 133, 200, 260, 600] {
        let image = portrait(side);
        let faces = analyze(&image);
        assert_eq!(faces.len(), 1, "side {side}");
        check_bounds(&image, faces[0].bounds, (41, 33, side));
        assert_eq!(faces[0].quality.size, side as f32);
        assert_eq!(faces[0].confidence, 1.0);
        assert_eq!((faces[0].model.as_str(), faces[0].quality.turn), ("synthetic-1", None));
    }
}

#[test]
fn a_face_is_found_after_jpeg_and_webp() {
    for side in [90, 133, 200, 260] {
        let image = degradation::webp(&degradation::camera_jpeg(&portrait(side)));
        let faces = analyze(&image);
        assert_eq!(faces.len(), 1, "side {side}");
        check_bounds(&image, faces[0].bounds, (41, 33, side));
        assert!(faces[0].confidence > 0.9, "side {side}: confidence {}", faces[0].confidence);
    }
}

#[test]
fn a_face_at_the_edge_of_the_photo_is_found() {
    let mut image = canvas(120, 120);
    draw_marker(&mut image, 0, 0, 120, &identity_vector(7, 0));
    check_bounds(&image, analyze(&image)[0].bounds, (0, 0, 120));
}

#[test]
fn landmarks_are_arranged_as_in_a_face() {
    let face = analyze(&portrait(100)).remove(0);
    let [left_eye, right_eye, nose, left_mouth, right_mouth] = face.landmarks[..] else { panic!("five landmarks") };
    assert!(left_eye.x < nose.x && nose.x < right_eye.x && left_mouth.x < right_mouth.x);
    assert!(left_eye.y < nose.y && nose.y < left_mouth.y);
    let inside = |at: f32, from: f32, size: f32| at > from && at < from + size;
    for point in &face.landmarks {
        assert!(
            inside(point.x, face.bounds.x, face.bounds.width) && inside(point.y, face.bounds.y, face.bounds.height)
        );
    }
}

#[test]
fn faces_are_sorted_from_top_to_bottom_and_left_to_right() {
    let mut image = canvas(800, 600);
    let drawn = [(500, 20, 100), (20, 60, 150), (250, 60, 90), (640, 60, 120), (30, 400, 110)];
    for (n, (x, y, side)) in drawn.iter().enumerate().rev() {
        draw_marker(&mut image, *x, *y, *side, &identity_vector(7, n));
    }
    let faces = analyze(&image);
    assert_eq!(faces.len(), drawn.len());
    for (face, drawn) in faces.iter().zip(drawn) {
        check_bounds(&image, face.bounds, drawn);
    }
}
