//! Whether landmarks can be those of a face.

use super::align::Similarity;
use super::centerface::Sighting;
use super::embed::ARCFACE;

/// How far the landmarks may be from those of a frontal face, in parts of the face's size.
const FAR: f32 = 0.35;

/// Whether the landmarks are arranged as in a face, turned and tilted as it may be, and lie in its box.
pub fn plausible(sighting: &Sighting) -> bool {
    let [width, height] = sighting.size();
    let near = |at: f32, from: f32, size: f32| at > from - 0.25 * size && at < from + 1.25 * size;
    let inside =
        sighting.landmarks.iter().all(|[x, y]| near(*x, sighting.from[0], width) && near(*y, sighting.from[1], height));
    inside && (0.3..3.0).contains(&(width / height)) && misfit(sighting).is_some_and(|misfit| misfit < FAR)
}

/// How far the landmarks are from those of a frontal face, in parts of the distance between eyes and mouth.
fn misfit(sighting: &Sighting) -> Option<f32> {
    let fit = Similarity::between(&sighting.landmarks, &ARCFACE)?;
    let squares = sighting.landmarks.iter().zip(&ARCFACE).map(|(seen, expected)| {
        let [x, y] = fit.apply(*seen);
        (x - expected[0]).powi(2) + (y - expected[1]).powi(2)
    });
    Some((squares.sum::<f32>() / 5.0).sqrt() / (ARCFACE[3][1] - ARCFACE[0][1]))
}
