//! Rolling upgrades with the binary of the previous release, built from the history of this repository.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread::sleep,
    time::{Duration, Instant},
};

use sparks_tests::binary::{binary, root};

use crate::harness::{Platform, created, eventually, within};

/// The last commit of the previous release, which has no levels and announces nothing.
const PREVIOUS_RELEASE: &str = "aedd554";

/// Returns the binary of the previous release, built once under `target/previous-release`.
fn previous_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("SPARKS_PREVIOUS_BINARY") {
            return path.into();
        }
        let folder = root().join("target/previous-release");
        let (source, target) = (folder.join("source"), folder.join("target"));
        fs::create_dir_all(&source).unwrap();
        let extract = format!("git archive {PREVIOUS_RELEASE} | tar -x -C '{}'", source.display());
        let extracted = Command::new("sh").args(["-ec", &extract]).current_dir(root()).status().unwrap();
        assert!(
            extracted.success(),
            "failed to extract {PREVIOUS_RELEASE}: the whole history is needed (git fetch --unshallow)"
        );
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--locked", "-p", "sparks-worker"]).current_dir(&source);
        build.env("CARGO_TARGET_DIR", &target);
        assert!(build.status().unwrap().success(), "failed to build the previous release");
        target.join("debug/sparks")
    })
}

/// A running worker of either release. It is killed when it is dropped.
struct AnyWorker {
    process: Child,
    log: PathBuf,
}

impl AnyWorker {
    fn start(platform: &Platform, binary: &Path) -> Self {
        let original = platform.command(["run", "--listen", "127.0.0.1:0"]);
        let mut command = Command::new(binary);
        command.args(original.get_args()).current_dir(original.get_current_dir().unwrap());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPARKS_")) {
            command.env_remove(name);
        }
        command.envs(original.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let log = platform.sparks.path(&format!("worker-{}.log", fastrand::u64(..)));
        command.stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        Self { process: command.spawn().unwrap(), log }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Stops the worker as a deployment does.
    fn stop(mut self) {
        let sent = Command::new("kill").arg(self.process.id().to_string()).status();
        assert!(sent.unwrap().success());
        within(Duration::from_secs(60), "the worker stops", &mut || self.process.try_wait().unwrap().is_some());
    }
}

impl Drop for AnyWorker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Uploads a photo of the album under a new ID and sends its message.
fn upload(platform: &Platform, number: usize) {
    let image = Platform::image(number);
    platform.put(&format!("originals/{image}.jpg"), &platform.photo(number % platform.album_size()));
    platform.put_image(&image);
    platform.send(&[created(&image)]);
}

/// Returns the number of processed photos by actor of their event.
fn photos_by(platform: &Platform, actor: &str) -> usize {
    platform.sparks.events_of("PhotoProcessed").iter().filter(|event| event["actor"] == actor).count()
}

const OLD: &str = "sparks/0.1.0";
const NEW: &str = concat!("sparks/", env!("CARGO_PKG_VERSION"));

#[test]
#[ignore = "builds the previous release; run by the scheduled workflow"]
fn the_previous_release_runs_beside_this_one_until_the_level_is_raised() {
    let platform = Platform::new(8, 4);
    let mut number = 0;
    let mut upload_some = |count: usize| {
        (number..number + count).for_each(|number| upload(&platform, number));
        number += count;
    };
    // The upgrade begins with a folder that the previous release has written.
    let old = AnyWorker::start(&platform, previous_binary());
    upload_some(6);
    eventually("the previous release processes photos", || platform.unsettled() == 0);
    let new = AnyWorker::start(&platform, binary());
    upload_some(10);
    drop(old); // kill -9
    let old = AnyWorker::start(&platform, previous_binary());
    upload_some(10);
    eventually("both releases process photos", || platform.unsettled() == 0);
    drop(new);
    upload_some(4);
    eventually("the previous release alone processes photos again", || platform.unsettled() == 0);
    let new = AnyWorker::start(&platform, binary());
    let (by_old, by_new) = (photos_by(&platform, OLD), photos_by(&platform, NEW));
    println!("photos by the previous release: {by_old}, by this one: {by_new}");
    assert_eq!(by_old + by_new, 30);
    assert!(by_old >= 10 && by_new > 0, "{by_old} and {by_new}");
    assert_eq!(platform.dead_letters().len(), 0);
    assert_eq!(platform.sparks.json(["verify"])["clean"], true);

    // The level is not raised while the previous release runs.
    let refused = platform.sparks.run(["log", "level", "2"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    let process = format!("process {} (before 0.2.0)", old.process.id());
    assert!(refused.status.code() == Some(1) && error.contains(&process), "{error}");
    old.stop();
    assert_eq!(platform.sparks.text(["log", "level", "2"]), "raised the level of the log from 1 to 2\n");
    upload_some(4);
    eventually("this release processes photos after the raise", || platform.unsettled() == 0);

    // A worker of the previous release that is started again commits nothing.
    drop(new);
    let mut forgotten = AnyWorker::start(&platform, previous_binary());
    upload_some(2);
    within(Duration::from_secs(60), "the previous release ends", &mut || {
        forgotten.process.try_wait().unwrap().is_some()
    });
    assert!(!forgotten.process.wait().unwrap().success(), "{}", forgotten.log());
    assert!(forgotten.log().contains("LevelRaised"), "{}", forgotten.log());
    assert_eq!((platform.unsettled(), platform.dead_letters().len(), photos_by(&platform, OLD)), (2, 0, by_old));
    platform.drain();
    assert_eq!((platform.sparks.events_of("PhotoProcessed").len(), platform.dead_letters().len()), (36, 0));
    assert_eq!(platform.sparks.json(["verify"])["clean"], true);
}

/// Kills workers of both releases for `SPARKS_TEST_SECONDS`, 30 by default.
#[test]
#[ignore = "builds the previous release; run by the scheduled workflow"]
fn kills_of_two_releases_side_by_side_lose_nothing() {
    let seconds = std::env::var("SPARKS_TEST_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(30);
    let seed =
        std::env::var("SPARKS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SPARKS_TEST_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    // By the name that both releases know: kills are no reason for a dead letter here.
    let platform = Platform::new(40, 12).with(vec![("SPARKS_QUEUE_MAX_DEATHS", "1000".into())]);
    let (started, mut kills, mut photos) = (Instant::now(), 0, 0);
    let binaries = [previous_binary(), binary()];
    let mut workers = binaries.map(|binary| AnyWorker::start(&platform, binary));
    while started.elapsed() < Duration::from_secs(seconds) {
        if platform.unsettled() < 20 {
            (photos..photos + 5).for_each(|number| upload(&platform, number));
            photos += 5;
        }
        sleep(Duration::from_millis(random.u64(100..1500)));
        let killed = random.usize(0..workers.len());
        workers[killed] = AnyWorker::start(&platform, binaries[killed]);
        kills += 1;
    }
    drop(workers);
    platform.drain();
    let (by_old, by_new) = (photos_by(&platform, OLD), photos_by(&platform, NEW));
    let letters = platform.dead_letters().len();
    let verified = platform.sparks.json(["verify"]);
    println!(
        "{seconds} s, {kills} kills, {photos} photos: {by_old} by the previous release, {by_new} by this one; \
         {letters} dead letters; verify: {verified}"
    );
    assert_eq!((by_old + by_new, letters), (photos, 0));
    assert_eq!(verified["clean"], true);
    platform.sparks.assert_crops();
}
