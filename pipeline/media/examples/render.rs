//! Renders the variants of photos and reports time, memory and sizes: the image processor alone, without store, queue or faces.
//!
//! ```sh
//! cargo run --release -p sparks-media --example render -- --threads 2 --out /tmp/variants photos/*.jpg
//! ```
//!
//! The comparison with other tools in `tests/rivals` runs this example.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use sparks_engine::ImageProcessor;
use sparks_media::{CropSpec, Fit, Limits, LocalImageProcessor, VariantSpec};

const USAGE: &str = "render [--threads N] [--out FOLDER] [--large SPEC] [--medium SPEC] FILES...
SPEC is FIT:SIZE:qQUALITY:mMETHOD, such as inside:2048:q80:m4, or with sharp YUV cover:400:q85:m4:sharp
Prints one line of JSON. With --out, writes NAME.large.webp and NAME.medium.webp of each photo to the folder.";

fn main() -> ExitCode {
    if env::args().any(|argument| argument == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match Arguments::read(env::args().skip(1)) {
        Ok(parsed) => {
            println!("{}", parsed.run().json());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The parsed command line.
struct Arguments {
    threads: usize,
    out: Option<PathBuf>,
    large: VariantSpec,
    medium: VariantSpec,
    files: Vec<PathBuf>,
}

impl Arguments {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            threads: thread::available_parallelism().map_or(1, Into::into),
            out: None,
            large: VariantSpec::large(),
            medium: VariantSpec::medium(),
            files: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--threads" => parsed.threads = number(&value()?)?,
                "--out" => parsed.out = Some(value()?.into()),
                "--large" => parsed.large = spec(&value()?)?,
                "--medium" => parsed.medium = spec(&value()?)?,
                flag if flag.starts_with("--") => return Err(format!("unknown flag {flag}")),
                file => parsed.files.push(file.into()),
            }
        }
        Ok(parsed)
    }

    /// Renders all photos; each thread takes the next one until none is left.
    fn run(&self) -> Report {
        let processor =
            LocalImageProcessor::new(Limits::default(), self.large.clone(), self.medium.clone(), CropSpec::default());
        let (next, total) = (AtomicUsize::new(0), Mutex::new(Report::default()));
        let (started, cpu_before) = (Instant::now(), cpu());
        thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    let mut own = Report::default();
                    while let Some(file) = self.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                        own.record(file, self.render(&processor, file));
                    }
                    total.lock().expect("no thread panics while adding").add(own);
                });
            }
        });
        let mut report = total.into_inner().expect("no thread panics while adding");
        report.wall = started.elapsed();
        report.cpu = cpu() - cpu_before;
        report
    }

    /// Renders one photo and returns the sizes of both variants in bytes.
    fn render(&self, processor: &LocalImageProcessor, file: &Path) -> Result<(usize, usize), String> {
        let original = fs::read(file).map_err(|error| error.to_string())?;
        let rendered = processor.render(&original).map_err(|rejection| rejection.to_string())?;
        let (large, medium) = (rendered.large.webp, rendered.medium.webp);
        if let Some(folder) = &self.out {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            for (variant, webp) in [("large", &large), ("medium", &medium)] {
                let path = folder.join(format!("{name}.{variant}.webp"));
                fs::write(path, webp).map_err(|error| error.to_string())?;
            }
        }
        Ok((large.len(), medium.len()))
    }
}

/// Results and their cost.
#[derive(Default)]
struct Report {
    photos: usize,
    failed: Vec<String>,
    bytes_large: usize,
    bytes_medium: usize,
    wall: Duration,
    cpu: Duration,
}

impl Report {
    fn record(&mut self, file: &Path, result: Result<(usize, usize), String>) {
        match result {
            Ok((large, medium)) => {
                self.photos += 1;
                self.bytes_large += large;
                self.bytes_medium += medium;
            }
            Err(reason) => {
                eprintln!("{}: {reason}", file.display());
                self.failed.push(file.display().to_string());
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.photos += other.photos;
        self.failed.extend(other.failed);
        self.bytes_large += other.bytes_large;
        self.bytes_medium += other.bytes_medium;
    }

    /// Formats the report; times in seconds, sizes in bytes.
    fn json(&self) -> String {
        let Self { photos, bytes_large, bytes_medium, .. } = self;
        let failed: Vec<String> = self.failed.iter().map(|file| quoted(file)).collect();
        let (failed, wall, cpu) = (failed.join(","), self.wall.as_secs_f64(), self.cpu.as_secs_f64());
        let rss = peak_rss().unwrap_or_default();
        format!(
            r#"{{"photos":{photos},"failed":[{failed}],"wall":{wall},"cpu":{cpu},"rss":{rss},"bytes_large":{bytes_large},"bytes_medium":{bytes_medium}}}"#
        )
    }
}

fn spec(text: &str) -> Result<VariantSpec, String> {
    let mut parts = text.split(':');
    let fit = match parts.next() {
        Some("inside") => Fit::Inside,
        Some("cover") => Fit::Cover,
        _ => return Err(format!("invalid variant {text}: it must begin with inside: or cover:")),
    };
    let mut spec = VariantSpec::large();
    (spec.fit, spec.sharp_yuv) = (fit, false);
    for part in parts {
        match part.split_at_checked(1) {
            _ if part == "sharp" => spec.sharp_yuv = true,
            Some(("q", quality)) => spec.quality = number(quality)?,
            Some(("m", method)) => spec.method = number(method)?,
            _ => {
                spec.width = number(part)?;
                spec.height = spec.width;
            }
        }
    }
    Ok(spec)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("invalid number {text}"))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the user and system time of all threads so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns the peak memory of this process in bytes; Linux only.
fn peak_rss() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
