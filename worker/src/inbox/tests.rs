//! The inbox with a real data folder and shorter timeouts.

use std::{
    fs::{self, File},
    io::{Cursor, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sparks_domain::Event;
use sparks_engine::Pipeline;
use tokio::task::JoinHandle;

use super::*;
use crate::{backend::Backend, cli::Global, telemetry::metrics::Metrics, wiring, wiring::FaceBackends};

const TIMING: InboxTiming = InboxTiming {
    poll_interval: Duration::from_millis(20),
    busy_poll_interval: Duration::from_millis(5),
    stable_after: Duration::from_millis(200),
    final_after: Duration::from_millis(3000),
    retry_delay: Duration::from_millis(200),
    max_upload_time: Duration::from_secs(1),
};

/// Longer than `stable_after` and shorter than `final_after`.
const PAUSE: Duration = Duration::from_millis(500);

/// Longer than any step takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A data folder with an inbox and a worker.
struct Fixture {
    folder: tempfile::TempDir,
    backend: Backend,
    pipeline: Arc<Pipeline>,
    settings: sparks_config::Settings,
    stop: watch::Sender<bool>,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let global = Global { data: Some(folder.path().to_owned()), config: None, json: false };
        let flags = [
            ("faces.analyzer", "--faces", "off".into()),
            ("limits.max_bytes", "", 100_000.into()),
            ("decoder.isolate", "", false.into()),
        ];
        let settings = wiring::settings(&global, &flags).unwrap().settings;
        let backend = wiring::open_or_create(&settings).await.unwrap();
        let (cpu, index) = (CpuPool::new(1), wiring::gallery_index(&settings, &backend).await.unwrap());
        let face_backends = FaceBackends::from_settings(&settings, &cpu, &Metrics::new()).await.unwrap();
        let pipeline =
            Arc::new(wiring::pipeline(&settings, &backend, cpu, &face_backends, index, &Metrics::new()).unwrap());
        Self { folder, backend, pipeline, settings, stop: watch::Sender::new(false) }
    }

    fn inbox(&self) -> Inbox {
        let uploader = Uploader {
            backend: Arc::clone(self.backend.folder.as_ref().unwrap()),
            bucket: self.settings.bucket.clone(),
            image_processor: self.pipeline.image_processor(),
            pipeline: Arc::clone(&self.pipeline),
            clock: wiring::clock(),
            uploader: "me@example.org".parse().unwrap(),
            max_bytes: self.settings.limits.max_bytes,
        };
        Inbox::with_timing(self.path(""), uploader, CpuPool::new(1), TIMING).unwrap()
    }

    fn watch(&self) -> JoinHandle<()> {
        tokio::spawn(self.inbox().watch(self.stop.subscribe()))
    }

    fn work(&self) -> JoinHandle<()> {
        let consumer = wiring::consumer(&self.settings, &self.backend, &self.pipeline);
        tokio::spawn(async move {
            loop {
                match consumer.receive(1).await.unwrap().pop() {
                    Some(raw) => drop(consumer.handle(raw).await.unwrap()),
                    None => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        let inbox = self.folder.path().join("inbox");
        if name.is_empty() { inbox } else { inbox.join(name) }
    }

    /// Waits until the file exists and returns its content.
    async fn wait_for(&self, name: &str) -> Vec<u8> {
        let started = Instant::now();
        while !self.path(name).exists() {
            assert!(started.elapsed() < TIMEOUT, "{name} does not appear; there are {:?}", self.files());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        fs::read(self.path(name)).unwrap()
    }

    async fn wait_for_reason(&self, name: &str) -> String {
        self.wait_for(&format!("rejected/{name}")).await;
        fs::read_to_string(self.path(&format!("rejected/{name}.reason.txt"))).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let all = walkdir::WalkDir::new(self.path("")).sort_by_file_name().into_iter().flatten();
        let files = all.filter(|entry| entry.file_type().is_file());
        files.map(|entry| entry.path().strip_prefix(self.path("")).unwrap().to_owned()).collect()
    }

    /// Returns the number of processed and of rejected photos.
    async fn decided(&self) -> (usize, usize) {
        let events = self.backend.store.read_log(&sparks_domain::Position::default(), 1000).await.unwrap();
        let count = |is: fn(&Event) -> bool| events.iter().filter(|recorded| is(&recorded.event)).count();
        (count(|e| matches!(e, Event::PhotoProcessed(_))), count(|e| matches!(e, Event::PhotoRejected(_))))
    }
}

/// Returns a JPEG that is different for each number.
fn jpeg(number: u8) -> Vec<u8> {
    let pixels = image::RgbImage::from_fn(64, 48, |x, y| image::Rgb([x as u8 * 4, y as u8 * 5, number]));
    let mut file = Cursor::new(Vec::new());
    pixels.write_to(&mut file, image::ImageFormat::Jpeg).unwrap();
    file.into_inner()
}

fn append(path: &Path, piece: &[u8]) {
    File::options().create(true).append(true).open(path).unwrap().write_all(piece).unwrap();
}

#[tokio::test]
async fn photos_are_uploaded_once_and_moved_to_done() {
    let fixture = Fixture::new().await;
    let (_watch, _work) = (fixture.watch(), fixture.work());
    fs::create_dir(fixture.path("trip")).unwrap();
    fs::write(fixture.path("trip/a.jpg"), jpeg(1)).unwrap();
    fs::write(fixture.path("copy.jpg"), jpeg(1)).unwrap();
    fs::write(fixture.path("b.jpg.part"), jpeg(2)).unwrap();
    assert_eq!(fixture.wait_for("done/trip/a.jpg").await, jpeg(1));
    fixture.wait_for("done/copy.jpg").await;
    assert!(fixture.path("b.jpg.part").exists(), "its name marks it as unfinished");
    fs::rename(fixture.path("b.jpg.part"), fixture.path("b.jpg")).unwrap();
    fixture.wait_for("done/b.jpg").await;
    fs::write(fixture.path("b.jpg"), jpeg(2)).unwrap();
    assert_eq!(fixture.wait_for("done/b-1.jpg").await, jpeg(2));
    assert_eq!(fixture.decided().await, (2, 0));
    assert_eq!(fixture.files().len(), 4, "{:?}", fixture.files());
}

#[tokio::test]
async fn a_file_written_in_pieces_is_uploaded_once_complete() {
    let fixture = Fixture::new().await;
    let (_watch, _work) = (fixture.watch(), fixture.work());
    let whole = jpeg(1);
    for piece in whole.chunks(whole.len().div_ceil(4)) {
        assert!(fixture.files().len() < 2);
        append(&fixture.path("a.jpg"), piece);
        tokio::time::sleep(PAUSE).await;
    }
    assert_eq!(fixture.wait_for("done/a.jpg").await, whole);
    assert_eq!(fixture.decided().await, (1, 0));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_is_open_for_writing_is_not_uploaded() {
    let fixture = Fixture::new().await;
    let (_watch, _work) = (fixture.watch(), fixture.work());
    let mut writer = File::create(fixture.path("a.jpg")).unwrap();
    writer.write_all(&jpeg(1)).unwrap();
    tokio::time::sleep(TIMING.final_after + PAUSE).await;
    assert_eq!(fixture.decided().await, (0, 0));
    assert!(fixture.path("a.jpg").exists());
    drop(writer);
    fixture.wait_for("done/a.jpg").await;
}

#[tokio::test]
async fn invalid_files_are_rejected_with_a_reason() {
    let fixture = Fixture::new().await;
    let (_watch, _work) = (fixture.watch(), fixture.work());
    let whole = jpeg(1);
    fs::write(fixture.path("cut.jpg"), &whole[..whole.len() / 2]).unwrap();
    fs::write(fixture.path("empty.jpg"), b"").unwrap();
    fs::write(fixture.path("notes.txt"), "dear diary").unwrap();
    File::create(fixture.path("huge.jpg")).unwrap().set_len(1 << 30).unwrap();
    let started = Instant::now();
    assert!(fixture.wait_for_reason("cut.jpg").await.contains("truncated"));
    assert!(started.elapsed() >= TIMING.final_after - PAUSE, "it could still have been growing");
    assert!(fixture.wait_for_reason("empty.jpg").await.contains("empty"));
    assert!(fixture.wait_for_reason("notes.txt").await.starts_with("not a jpeg, png, webp or gif image"));
    assert!(
        fixture.wait_for_reason("huge.jpg").await.starts_with("1073741824 bytes are more than the limit of 100000")
    );
    assert_eq!(fixture.decided().await, (0, 3), "a file of another format is not uploaded");
    // The complete file under the same name is another file.
    fs::write(fixture.path("cut.jpg"), &whole).unwrap();
    fixture.wait_for("done/cut.jpg").await;
}

#[tokio::test]
async fn files_stay_until_their_message_is_settled() {
    let fixture = Fixture::new().await;
    let _watch = fixture.watch();
    for number in 0..70 {
        fs::write(fixture.path(&format!("{number:02}.jpg")), jpeg(number)).unwrap();
    }
    let waiting = async || fixture.backend.queue.depth().await.unwrap().waiting;
    let started = Instant::now();
    while waiting().await < 64 {
        assert!(started.elapsed() < TIMEOUT);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(PAUSE).await;
    assert_eq!(waiting().await, 64, "the others wait in the inbox");
    assert!(fixture.path("00.jpg").exists() && fixture.path("63.jpg").exists());
    // Replaces a file in flight by another photo.
    fs::write(fixture.path("00.jpg"), jpeg(200)).unwrap();
    let _work = fixture.work();
    assert_eq!(fixture.wait_for("done/00.jpg").await, jpeg(200), "the replaced file is uploaded as well");
    fixture.wait_for("done/69.jpg").await;
    while fixture.files().iter().any(|file| !file.starts_with("done")) {
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", fixture.files());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(fixture.decided().await, (71, 0));
}

#[tokio::test]
async fn a_failed_upload_is_retried() {
    let fixture = Fixture::new().await;
    let (_watch, _work) = (fixture.watch(), fixture.work());
    // A file in place of the folder of originals makes the upload fail.
    let originals = fixture.folder.path().join("objects/originals");
    fs::write(&originals, "in the way").unwrap();
    fs::write(fixture.path("a.jpg"), jpeg(1)).unwrap();
    tokio::time::sleep(2 * PAUSE).await;
    assert_eq!((fixture.files(), fixture.decided().await), (vec!["a.jpg".into()], (0, 0)));
    fs::remove_file(&originals).unwrap();
    fixture.wait_for("done/a.jpg").await;
}

#[tokio::test]
async fn a_dead_letter_rejects_the_file_with_its_reason() {
    let fixture = Fixture::new().await;
    let _watch = fixture.watch();
    fs::write(fixture.path("a.jpg"), jpeg(1)).unwrap();
    let started = Instant::now();
    let delivery = loop {
        assert!(started.elapsed() < TIMEOUT);
        tokio::time::sleep(Duration::from_millis(10)).await;
        if let Some(delivery) = fixture.backend.queue.receive(1).await.unwrap().pop() {
            break delivery;
        }
    };
    assert!(fixture.path("a.jpg").exists());
    let reason = "no luck".to_owned();
    fixture
        .backend
        .queue
        .settle(delivery, sparks_engine::Settlement::DeadLetter { cause: sparks_engine::Cause::Fault, reason })
        .await
        .unwrap();
    assert_eq!(fixture.wait_for_reason("a.jpg").await, "no luck\n");
}

#[tokio::test]
async fn another_process_takes_over_the_watch() {
    let fixture = Fixture::new().await;
    let (first, _work) = (fixture.watch(), fixture.work());
    fs::write(fixture.path("a.jpg"), jpeg(1)).unwrap();
    fixture.wait_for("done/a.jpg").await;
    let (stop, stopped) = watch::channel(false);
    let second = tokio::spawn(fixture.inbox().watch(stopped));
    tokio::time::sleep(PAUSE).await;
    first.abort();
    fs::write(fixture.path("b.jpg"), jpeg(2)).unwrap();
    fixture.wait_for("done/b.jpg").await;
    stop.send(true).unwrap();
    second.await.unwrap();
    fs::write(fixture.path("c.jpg"), jpeg(3)).unwrap();
    fs::write(fixture.path("a.jpg"), jpeg(1)).unwrap();
    tokio::time::sleep(PAUSE).await;
    assert!(fixture.path("c.jpg").exists(), "no process watches");
    let _third = fixture.watch();
    fixture.wait_for("done/c.jpg").await;
    fixture.wait_for("done/a-1.jpg").await;
    assert_eq!(fixture.decided().await, (3, 0), "a photo in the event log is not uploaded again");
}
