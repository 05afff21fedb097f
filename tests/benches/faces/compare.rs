//! The CPU of one thing against that of another, in turns.

use std::{hint::black_box, time::Duration};

use image::{RgbImage, imageops};
use rustix::time::{ClockId, clock_gettime};
use sparks_engine::{FaceEngine, Pixels};
use sparks_faces::Local;

use crate::photo;

/// Looking for faces against encoding the two WebP variants of the same photo.
pub fn faces_and_webp(engine: &Local, rounds: usize) {
    let photo = photo::portrait();
    let large = RgbImage::from_raw(photo.width, photo.height, photo.rgb.clone()).unwrap();
    let side = large.width().min(large.height());
    let square = imageops::crop_imm(&large, 0, 0, side, side).to_image();
    let medium = imageops::resize(&square, 400, 400, imageops::FilterType::Lanczos3);
    let encode = || {
        black_box(webp(&large, 95.0));
        black_box(webp(&medium, 85.0));
    };
    let [faces, encoding] = in_turns(rounds, [&|| drop(black_box(engine.look(&photo))), &encode]);
    println!("a {} x {} photo with one face", photo.width, photo.height);
    println!("  faces                {:>7.1} ms CPU", millis(faces));
    println!("  two WebP variants    {:>7.1} ms CPU", millis(encoding));
    println!("  ratio                {:>7.2}  (less than 1)\n", faces.as_secs_f64() / encoding.as_secs_f64());
}

/// What each face after the first costs.
pub fn further_faces(engine: &Local, rounds: usize) {
    let (one, five) = (photo::row_of(1), photo::row_of(5));
    assert_eq!((engine.look(&one).len(), engine.look(&five).len()), (1, 5));
    let look = |photo: &Pixels| drop(black_box(engine.look(photo)));
    let [first, all] = in_turns(rounds, [&|| look(&one), &|| look(&five)]);
    println!("each further face      {:>7.1} ms CPU  (less than 45)\n", millis(all.saturating_sub(first)) / 4.0);
}

/// The median CPU of each, done in turns so that whatever else the machine does, it does to both.
fn in_turns(rounds: usize, work: [&dyn Fn(); 2]) -> [Duration; 2] {
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..=rounds {
        for (work, taken) in work.iter().zip(&mut taken) {
            let before = cpu_time();
            work();
            taken.push(cpu_time() - before);
        }
    }
    taken.map(|mut taken| {
        taken.remove(0); // the first warms up
        taken.sort_unstable();
        taken[taken.len() / 2]
    })
}

/// As the photo engine does it: method 4.
fn webp(picture: &RgbImage, quality: f32) -> usize {
    let mut config = webp::WebPConfig::new().unwrap();
    (config.quality, config.method) = (quality, 4);
    webp::Encoder::from_rgb(picture.as_raw(), picture.width(), picture.height()).encode_advanced(&config).unwrap().len()
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
