//! CPU time of face analysis compared with WebP encoding, and of each further face.

use std::{hint::black_box, time::Duration};

use image::{RgbImage, imageops};
use rustix::time::{ClockId, clock_gettime};
use sparks_engine::{FaceEngine, Pixels};
use sparks_faces::LocalEngine;

use crate::photo;

/// Compares face analysis with the encoding of the two WebP variants of the same photo.
pub fn faces_and_webp(engine: &LocalEngine, rounds: usize) {
    let photo = photo::portrait();
    let large = RgbImage::from_raw(photo.width, photo.height, photo.rgb.clone()).unwrap();
    let side = large.width().min(large.height());
    let square = imageops::crop_imm(&large, 0, 0, side, side).to_image();
    let medium = imageops::resize(&square, 400, 400, imageops::FilterType::Lanczos3);
    let encode = || {
        black_box(webp(&large, 95.0));
        black_box(webp(&medium, 85.0));
    };
    let [faces, encoding] = alternate(rounds, [&|| drop(black_box(engine.analyze(&photo))), &encode]);
    println!("a {} x {} photo with one face", photo.width, photo.height);
    println!("  faces                {:>7.1} ms CPU", millis(faces));
    println!("  two WebP variants    {:>7.1} ms CPU", millis(encoding));
    println!("  ratio                {:>7.2}  (less than 1)\n", faces.as_secs_f64() / encoding.as_secs_f64());
}

/// Measures the cost of each face after the first.
pub fn further_faces(engine: &LocalEngine, rounds: usize) {
    let (one, five) = (photo::row_of(1), photo::row_of(5));
    assert_eq!((engine.analyze(&one).len(), engine.analyze(&five).len()), (1, 5));
    let analyze = |photo: &Pixels| drop(black_box(engine.analyze(photo)));
    let [first, all] = alternate(rounds, [&|| analyze(&one), &|| analyze(&five)]);
    println!("each further face      {:>7.1} ms CPU  (less than 45)\n", millis(all.saturating_sub(first)) / 4.0);
}

/// Returns the median CPU time of each, measured alternately so that other load on the machine affects both.
fn alternate(rounds: usize, work: [&dyn Fn(); 2]) -> [Duration; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..=rounds {
        for (work, times) in work.iter().zip(&mut times) {
            let before = cpu_time();
            work();
            times.push(cpu_time() - before);
        }
    }
    times.map(|mut times| {
        times.remove(0); // warm-up
        times.sort_unstable();
        times[times.len() / 2]
    })
}

/// Encodes with method 4, as the image processor does.
fn webp(pixels: &RgbImage, quality: f32) -> usize {
    let mut config = webp::WebPConfig::new().unwrap();
    (config.quality, config.method) = (quality, 4);
    webp::Encoder::from_rgb(pixels.as_raw(), pixels.width(), pixels.height()).encode_advanced(&config).unwrap().len()
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
