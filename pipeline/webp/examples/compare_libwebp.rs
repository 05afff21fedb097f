//! Encodes photos by turns with this encoder and with libwebp at method 4, and prints the ratios of CPU time and size.
//!
//! ```sh
//! cargo run --release -p sparks-webp --example compare_libwebp -- tests/photos/*.jpg
//! ```

use std::time::Duration;

use image::imageops::FilterType;
use rustix::time::{ClockId, clock_gettime};
use sparks_webp::Settings;

const SIDE: u32 = 2048;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.is_empty() {
        return Err("usage: compare_libwebp FILES..., such as tests/photos/*.jpg".into());
    }
    let photo = |path: &String| image::ImageReader::open(path)?.with_guessed_format()?.decode();
    let photos = paths.iter().map(photo).collect::<image::ImageResult<Vec<_>>>()?;
    let small: Vec<_> = photos
        .iter()
        .map(|photo| match photo.width().max(photo.height()) > SIDE {
            true => photo.resize(SIDE, SIDE, FilterType::Lanczos3).to_rgb8(),
            false => photo.to_rgb8(),
        })
        .collect();
    for quality in [80.0, 95.0] {
        let settings = Settings { quality, sharp_yuv: false };
        let mut ratios = Vec::new();
        let (mut own_bytes, mut libwebp_bytes) = (0, 0);
        for _ in 0..ROUNDS {
            let (mut own_time, mut libwebp_time) = (Duration::ZERO, Duration::ZERO);
            (own_bytes, libwebp_bytes) = (0, 0);
            for photo in &small {
                let (width, height) = photo.dimensions();
                let started = cpu();
                let file = sparks_webp::encode(photo, width as usize, height as usize, settings).ok_or("too large")?;
                own_time += cpu() - started;
                own_bytes += file.len();

                let mut config = webp::WebPConfig::new().map_err(|()| "no configuration")?;
                (config.quality, config.method) = (quality, 4);
                let started = cpu();
                let file = webp::Encoder::from_rgb(photo, width, height).encode_advanced(&config);
                libwebp_time += cpu() - started;
                libwebp_bytes += file.map_err(|error| format!("{error:?}"))?.len();
            }
            ratios.push(own_time.as_secs_f64() / libwebp_time.as_secs_f64());
        }
        ratios.sort_by(f64::total_cmp);
        let (low, median, high) = (ratios[0], ratios[ROUNDS / 2], ratios[ROUNDS - 1]);
        let bytes = own_bytes as f64 / libwebp_bytes as f64;
        println!("quality {quality}: {median:.2} ({low:.2}..{high:.2}) of libwebp's CPU, {bytes:.4} of its bytes");
    }
    Ok(())
}

fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
