//! The inbox over a real data folder, with less patience than usual.

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
use crate::{backend::Backend, cli::Global, telemetry::metrics::Metrics, wiring, wiring::Senses};

const PACE: Pace = Pace {
    poll: Duration::from_millis(20),
    soon: Duration::from_millis(5),
    quiet: Duration::from_millis(200),
    patient: Duration::from_millis(3000),
    again: Duration::from_millis(200),
    round: Duration::from_secs(1),
};

/// Longer than it takes for a quiet file to be looked at, and shorter than it takes to give up waiting for the rest.
const PAUSE: Duration = Duration::from_millis(500);

/// Longer than a busy machine takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A data folder whose inbox is watched.
struct Scene {
    folder: tempfile::TempDir,
    backend: Backend,
    pipeline: Arc<Pipeline>,
    settings: sparks_config::Settings,
    stop: watch::Sender<bool>,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let global = Global { data: Some(folder.path().to_owned()), config: None, json: false };
        let flags = [
            ("faces.analyzer", "--faces", "off".into()),
            ("limits.max_bytes", "", 100_000.into()),
            ("darkroom.isolate", "", false.into()),
        ];
        let settings = wiring::settings(&global, &flags).unwrap().settings;
        let backend = wiring::open_or_create(&settings).await.unwrap();
        let (cpu, index) = (Cpu::new(1), wiring::index(&settings, &backend).await.unwrap());
        let senses = Senses::of(&settings, &cpu, &Metrics::new()).await.unwrap();
        let pipeline = Arc::new(wiring::pipeline(&settings, &backend, cpu, &senses, index, &Metrics::new()).unwrap());
        Self { folder, backend, pipeline, settings, stop: watch::Sender::new(false) }
    }

    fn inbox(&self) -> Inbox {
        let uploader = Uploader {
            backend: Arc::clone(self.backend.folder.as_ref().unwrap()),
            bucket: self.settings.bucket.clone(),
            darkroom: self.pipeline.darkroom(),
            pipeline: Arc::clone(&self.pipeline),
            clock: wiring::clock(),
            uploader: "me@example.org".parse().unwrap(),
            max_bytes: self.settings.limits.max_bytes,
        };
        Inbox::with_pace(self.path(""), uploader, Cpu::new(1), PACE).unwrap()
    }

    fn watch(&self) -> JoinHandle<()> {
        tokio::spawn(self.inbox().watch(self.stop.subscribe()))
    }

    fn work(&self) -> JoinHandle<()> {
        let pipeline = Arc::clone(&self.pipeline);
        let consumer = wiring::consumer(&self.settings, &self.backend, pipeline, &Metrics::new());
        tokio::spawn(async move {
            loop {
                match consumer.receive(1).await.unwrap().pop() {
                    Some(raw) => drop(consumer.work_off(raw).await.unwrap()),
                    None => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        let inbox = self.folder.path().join("inbox");
        if name.is_empty() { inbox } else { inbox.join(name) }
    }

    /// Waits until the file is there.
    async fn sees(&self, name: &str) -> Vec<u8> {
        let started = Instant::now();
        while !self.path(name).exists() {
            assert!(started.elapsed() < PATIENCE, "{name} does not come; there is {:?}", self.files());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        fs::read(self.path(name)).unwrap()
    }

    async fn sees_reason(&self, name: &str) -> String {
        self.sees(&format!("rejected/{name}")).await;
        fs::read_to_string(self.path(&format!("rejected/{name}.reason.txt"))).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let all = walkdir::WalkDir::new(self.path("")).sort_by_file_name().into_iter().flatten();
        let files = all.filter(|entry| entry.file_type().is_file());
        files.map(|entry| entry.path().strip_prefix(self.path("")).unwrap().to_owned()).collect()
    }

    /// How many photos were processed, and how many rejected.
    async fn decided(&self) -> (usize, usize) {
        let events = self.backend.store.read_log(&sparks_domain::Position::default(), 1000).await.unwrap();
        let count = |is: fn(&Event) -> bool| events.iter().filter(|recorded| is(&recorded.event)).count();
        (count(|e| matches!(e, Event::PhotoProcessed(_))), count(|e| matches!(e, Event::PhotoRejected(_))))
    }
}

/// A JPEG like no other of another number.
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
async fn photos_are_taken_once_and_end_in_done() {
    let scene = Scene::new().await;
    let (_watch, _work) = (scene.watch(), scene.work());
    fs::create_dir(scene.path("trip")).unwrap();
    fs::write(scene.path("trip/a.jpg"), jpeg(1)).unwrap();
    fs::write(scene.path("copy.jpg"), jpeg(1)).unwrap();
    fs::write(scene.path("b.jpg.part"), jpeg(2)).unwrap();
    assert_eq!(scene.sees("done/trip/a.jpg").await, jpeg(1));
    scene.sees("done/copy.jpg").await;
    assert!(scene.path("b.jpg.part").exists(), "not finished by its name");
    fs::rename(scene.path("b.jpg.part"), scene.path("b.jpg")).unwrap();
    scene.sees("done/b.jpg").await;
    fs::write(scene.path("b.jpg"), jpeg(2)).unwrap();
    assert_eq!(scene.sees("done/b-1.jpg").await, jpeg(2));
    assert_eq!(scene.decided().await, (2, 0));
    assert_eq!(scene.files().len(), 4, "{:?}", scene.files());
}

#[tokio::test]
async fn a_file_that_comes_in_pieces_is_taken_whole() {
    let scene = Scene::new().await;
    let (_watch, _work) = (scene.watch(), scene.work());
    let whole = jpeg(1);
    for piece in whole.chunks(whole.len().div_ceil(4)) {
        assert!(scene.files().len() < 2);
        append(&scene.path("a.jpg"), piece);
        tokio::time::sleep(PAUSE).await;
    }
    assert_eq!(scene.sees("done/a.jpg").await, whole);
    assert_eq!(scene.decided().await, (1, 0));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_is_open_for_writing_is_left_alone() {
    let scene = Scene::new().await;
    let (_watch, _work) = (scene.watch(), scene.work());
    let mut writer = File::create(scene.path("a.jpg")).unwrap();
    writer.write_all(&jpeg(1)).unwrap();
    tokio::time::sleep(PACE.patient + PAUSE).await;
    assert_eq!(scene.decided().await, (0, 0));
    assert!(scene.path("a.jpg").exists());
    drop(writer);
    scene.sees("done/a.jpg").await;
}

#[tokio::test]
async fn what_cannot_be_taken_is_rejected_with_its_reason() {
    let scene = Scene::new().await;
    let (_watch, _work) = (scene.watch(), scene.work());
    let whole = jpeg(1);
    fs::write(scene.path("cut.jpg"), &whole[..whole.len() / 2]).unwrap();
    fs::write(scene.path("empty.jpg"), b"").unwrap();
    fs::write(scene.path("notes.txt"), "dear diary").unwrap();
    File::create(scene.path("huge.jpg")).unwrap().set_len(1 << 30).unwrap();
    let started = Instant::now();
    assert!(scene.sees_reason("cut.jpg").await.contains("cut short"));
    assert!(started.elapsed() >= PACE.patient - PAUSE, "it could have been on its way");
    assert!(scene.sees_reason("empty.jpg").await.contains("empty"));
    assert!(scene.sees_reason("notes.txt").await.starts_with("not a picture we take: jpeg, png, webp, gif"));
    assert!(scene.sees_reason("huge.jpg").await.starts_with("1073741824 bytes are more than the limit of 100000"));
    assert_eq!(scene.decided().await, (0, 3), "what is no picture is no photo");
    // Given again and whole, it is another file.
    fs::write(scene.path("cut.jpg"), &whole).unwrap();
    scene.sees("done/cut.jpg").await;
}

#[tokio::test]
async fn nothing_moves_before_it_is_settled() {
    let scene = Scene::new().await;
    let _watch = scene.watch();
    for number in 0..70 {
        fs::write(scene.path(&format!("{number:02}.jpg")), jpeg(number)).unwrap();
    }
    let waiting = async || scene.backend.queue.depth().await.unwrap().waiting;
    let started = Instant::now();
    while waiting().await < 64 {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(PAUSE).await;
    assert_eq!(waiting().await, 64, "the others wait in the inbox");
    assert!(scene.path("00.jpg").exists() && scene.path("63.jpg").exists());
    // Another photo under the name of one that is on its way.
    fs::write(scene.path("00.jpg"), jpeg(200)).unwrap();
    let _work = scene.work();
    assert_eq!(scene.sees("done/00.jpg").await, jpeg(200), "what was read before is not what is there");
    scene.sees("done/69.jpg").await;
    while scene.files().iter().any(|file| !file.starts_with("done")) {
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", scene.files());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(scene.decided().await, (71, 0));
}

#[tokio::test]
async fn what_cannot_be_stored_stays_until_it_can() {
    let scene = Scene::new().await;
    let (_watch, _work) = (scene.watch(), scene.work());
    // A file stands where the folder of the originals belongs.
    let originals = scene.folder.path().join("objects/originals");
    fs::write(&originals, "in the way").unwrap();
    fs::write(scene.path("a.jpg"), jpeg(1)).unwrap();
    tokio::time::sleep(2 * PAUSE).await;
    assert_eq!((scene.files(), scene.decided().await), (vec!["a.jpg".into()], (0, 0)));
    fs::remove_file(&originals).unwrap();
    scene.sees("done/a.jpg").await;
}

#[tokio::test]
async fn a_dead_letter_is_a_rejection_with_its_reason() {
    let scene = Scene::new().await;
    let _watch = scene.watch();
    fs::write(scene.path("a.jpg"), jpeg(1)).unwrap();
    let started = Instant::now();
    let delivery = loop {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
        if let Some(delivery) = scene.backend.queue.receive(1).await.unwrap().pop() {
            break delivery;
        }
    };
    assert!(scene.path("a.jpg").exists());
    let reason = "no luck".to_owned();
    scene
        .backend
        .queue
        .settle(delivery, sparks_engine::Settlement::DeadLetter { cause: sparks_engine::Cause::Fault, reason })
        .await
        .unwrap();
    assert_eq!(scene.sees_reason("a.jpg").await, "no luck\n");
}

#[tokio::test]
async fn one_watches_and_another_takes_over() {
    let scene = Scene::new().await;
    let (first, _work) = (scene.watch(), scene.work());
    fs::write(scene.path("a.jpg"), jpeg(1)).unwrap();
    scene.sees("done/a.jpg").await;
    let (stop, stopped) = watch::channel(false);
    let second = tokio::spawn(scene.inbox().watch(stopped));
    tokio::time::sleep(PAUSE).await;
    first.abort();
    fs::write(scene.path("b.jpg"), jpeg(2)).unwrap();
    scene.sees("done/b.jpg").await;
    stop.send(true).unwrap();
    second.await.unwrap();
    fs::write(scene.path("c.jpg"), jpeg(3)).unwrap();
    fs::write(scene.path("a.jpg"), jpeg(1)).unwrap();
    tokio::time::sleep(PAUSE).await;
    assert!(scene.path("c.jpg").exists(), "nobody watches");
    let _third = scene.watch();
    scene.sees("done/c.jpg").await;
    scene.sees("done/a-1.jpg").await;
    assert_eq!(scene.decided().await, (3, 0), "a photo that the log knows is not taken again");
}
