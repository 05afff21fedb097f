//! Files that hurt whoever decodes them, and processes that somebody ends: neither costs any other photo.

use std::{
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    bad_files::crc,
    platform::{Platform, Worker, created, eventually, within},
    sparks::{Sparks, binary},
    watched::run_watched,
};

/// What files do, and what is said of them then; with a second and 128 MB for each.
const HARM: [(&str, &str, &str); 7] = [
    ("panic", "damaged", "it makes the decoder crash: hurt by a file"),
    ("abort", "damaged", "it makes the decoder crash (SIGABRT): save it anew"),
    ("exit", "damaged", "it makes the decoder crash (exit status: 7): save it anew"),
    ("overflow", "damaged", "it makes the decoder crash (stack overflow): save it anew"),
    ("segv", "damaged", "it makes the decoder crash (SIGSEGV): save it anew"),
    ("spin", "damaged", "decoding it takes more than 1 s of computing: save it anew"),
    ("eat", "too_many_pixels", "decoding it takes more than 128 MB of memory: save it anew"),
];
const TIGHT: [(&str, &str); 2] = [("SPARKS_LIMITS_MAX_SECONDS", "1"), ("SPARKS_LIMITS_MAX_MEMORY_MB", "128")];

/// Lets files hurt. The value names a file: while it is there, who is told to sleep does.
const ALLOWED: &str = "SPARKS_TEST_HURT";

/// The photo with a comment that says what it does to whoever decodes it.
fn hurting(photo: &[u8], what: &str) -> Vec<u8> {
    let comment = format!("sparks-test-hurt:{what}");
    let length = u16::try_from(comment.len() + 2).unwrap().to_be_bytes();
    [&photo[..2], &[0xff, 0xfe], &length, comment.as_bytes(), &photo[2..]].concat()
}

/// The processes that decode for this one.
fn developers(worker: u32) -> Vec<u32> {
    let is_one = |pid: &u32| {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
        let is = |field: &str, value: &str| {
            status.lines().any(|line| line.split_once(":\t").is_some_and(|(name, is)| name == field && is == value))
        };
        is("PPid", &worker.to_string()) && is("Name", "sparks-darkroom") && !status.contains("State:\tZ")
    };
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(is_one).collect()
}

fn is_there(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| !status.contains("State:\tZ"))
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

/// Code and message of every rejection in the log.
fn rejections(sparks: &Sparks) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let reason =
        |event: &Value| (text(&event["event_data"]["reason"]["code"]), text(&event["event_data"]["reason"]["message"]));
    let mut reasons: Vec<_> = sparks.events_of("PhotoRejected").iter().map(reason).collect();
    reasons.sort();
    reasons
}

fn harm() -> Vec<(String, String)> {
    let mut harm: Vec<_> = HARM.iter().map(|(_, code, message)| ((*code).into(), (*message).into())).collect();
    harm.sort();
    harm
}

fn photo_in(album: &Path) -> Vec<u8> {
    let mut paths = fs::read_dir(album).unwrap().map(|entry| entry.unwrap().path());
    fs::read(paths.find(|path| path.extension().unwrap() == "jpg").unwrap()).unwrap()
}

/// An album of good photos with those that hurt among them.
fn fill(sparks: &Sparks) -> PathBuf {
    let album = sparks.synth(10, 4, &[]);
    let photo = photo_in(&album);
    for (what, ..) in HARM {
        fs::write(album.join(format!("{what}.jpg")), hurting(&photo, what)).unwrap();
    }
    album
}

#[test]
fn whatever_a_file_does_to_its_decoder_costs_that_file_alone() {
    let sparks = Sparks::new();
    let album = fill(&sparks);
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "3", "--json"];
    let output = sparks.command(ingest).envs(TIGHT).env(ALLOWED, "").output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["processed"], &summary["failed"]), (&json!(10), &json!([])), "{summary}");
    assert_eq!(rejections(&sparks), harm());
    for (what, _, message) in HARM {
        let rejected = summary["rejected"].as_array().unwrap().iter();
        let told = rejected.filter(|file| file["path"].as_str().unwrap().ends_with(&format!("{what}.jpg")));
        assert_eq!(told.map(|file| file["reason"].as_str().unwrap()).collect::<Vec<_>>(), [message], "{summary}");
    }
    assert_eq!(sparks.json(["verify"])["clean"], true);
}

#[test]
fn only_who_may_have_been_hurt_before_is_followed_by_a_fresh_one() {
    // `0.jpg` comes before the good photo, `z.jpg` after it.
    for (name, what, deaths) in [("0.jpg", "segv", 1), ("z.jpg", "segv", 2), ("0.jpg", "eat", 1), ("z.jpg", "spin", 1)]
    {
        let sparks = Sparks::new();
        let album = sparks.synth(1, 1, &[]);
        fs::write(album.join(name), hurting(&photo_in(&album), what)).unwrap();
        let ingest = ["ingest", album.to_str().unwrap(), "--faces", "off", "--jobs", "1", "--json"];
        let output = sparks.command(ingest).envs(TIGHT).env(ALLOWED, "").output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(log.matches("a process that decodes died").count(), deaths, "{name}, {what}: {log}");
        assert_eq!(rejections(&sparks).len(), 1);
    }
}

/// What `sparks ingest` of this file takes above one of nothing, with all processes.
fn memory_above_idle(sparks: &Sparks, file: &str, settings: &[(&str, &str)]) -> (u64, Value) {
    let nothing = sparks.path("nothing");
    fs::create_dir(&nothing).unwrap();
    let [(idle, _), (peak, output)] = [nothing.to_str().unwrap(), file].map(|path| {
        let mut command = sparks.command(["ingest", path, "--faces", "off", "--jobs", "1", "--json"]);
        command.envs(settings.iter().copied());
        run_watched(command)
    });
    let above = peak.saturating_sub(idle);
    println!("{file}: {} MB above an idle worker's {}", above >> 20, idle >> 20);
    (above, serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn what_a_file_eats_is_bounded_over_all_processes() {
    let sparks = Sparks::new();
    let album = sparks.synth(1, 1, &[]);
    // The worker keeps the file, so its decoder gets that much less.
    let much = [hurting(&photo_in(&album), "eat"), vec![0; 20 << 20]].concat();
    fs::write(sparks.path("eat.jpg"), much).unwrap();
    let (above, summary) = memory_above_idle(&sparks, "eat.jpg", &[TIGHT[1], (ALLOWED, "")]);
    assert_eq!(summary["rejected"][0]["reason"], HARM[6].2, "{summary}");
    assert!((90 << 20..160 << 20).contains(&above), "{above} bytes");
}

#[test]
fn a_worker_outlives_them_with_other_photos_in_its_hands() {
    let platform = Platform::new(20, 5);
    let worker = platform.worker(&[&TIGHT[..], &[(ALLOWED, ""), ("SPARKS_JOBS", "3")]].concat());
    let images: Vec<String> = (0..20).map(|n| platform.upload(n)).collect();
    for (n, (what, ..)) in HARM.into_iter().enumerate() {
        platform.put(&format!("originals/{}.jpg", images[n * 2]), &hurting(&platform.picture(n * 2), what));
    }
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    within(Duration::from_secs(120), "everything is settled", &mut || platform.unsettled() == 0);
    assert_eq!(rejections(&platform.sparks), harm());
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 20 - HARM.len());
    assert_eq!((worker.get("/healthz").0, platform.letters().len()), (200, 0), "{}", worker.log());
    assert!(worker.log().contains("memory allocation of"), "the last words are logged: {}", worker.log());
}

#[test]
fn files_hurt_nobody_unless_the_environment_says_so() {
    let sparks = Sparks::new();
    let album = fill(&sparks);
    let summary = sparks.json(["ingest", album.to_str().unwrap(), "--faces", "off"]);
    assert_eq!(summary["processed"], 10 + HARM.len(), "{summary}");
}

#[test]
fn isolation_can_be_turned_off() {
    let sparks = Sparks::new();
    let album = sparks.synth(3, 1, &[]);
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "off", "--json"];
    for (n, isolate) in ["false", "true"].into_iter().enumerate() {
        let data = sparks.path(&n.to_string());
        let output = sparks.command(ingest).arg("--data").arg(&data).env("SPARKS_DARKROOM_ISOLATE", isolate).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let pictures = |n: u32| {
        let folder = sparks.path(&n.to_string()).join("objects/processed");
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| (file.file_name().unwrap().to_owned(), fs::read(file).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(pictures(0).len(), 6);
    assert!(pictures(0) == pictures(1), "the pictures are the same, to the byte");
}

/// A worker with one photo in its hands whose decoder sleeps, and as many others done as there are.
fn asleep(settings: &[(&str, &str)]) -> (Platform, Worker) {
    let platform = Platform::new(6, 2);
    let hold = platform.sparks.path("hold");
    fs::write(&hold, "").unwrap();
    let hold = hold.to_str().unwrap().to_owned();
    let ours = [(ALLOWED, &hold[..]), ("SPARKS_FACES_ANALYZER", "off"), ("SPARKS_JOBS", "2")];
    let worker = platform.worker(&[&ours, settings].concat());
    assert!(developers(worker.process.id()).is_empty(), "none before the first photo");
    let images: Vec<String> = (0..6).map(|n| platform.upload(n)).collect();
    platform.put(&format!("originals/{}.jpg", images[0]), &hurting(&platform.picture(0), "sleep"));
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("the others are done", || platform.sparks.events_of("PhotoProcessed").len() == 5);
    (platform, worker)
}

fn wake(platform: &Platform) {
    fs::remove_file(platform.sparks.path("hold")).unwrap();
}

#[test]
fn a_photo_whose_process_was_killed_is_done_by_another() {
    let (platform, worker) = asleep(&[]);
    let killed = developers(worker.process.id());
    assert_eq!(killed.len(), 2, "one for each job");
    killed.iter().for_each(|pid| signal("KILL", *pid));
    eventually("it is said who is gone", || worker.log().contains("the process that decodes it was ended"));
    wake(&platform);
    eventually("the photo is done", || platform.sparks.events_of("PhotoProcessed").len() == 6);
    assert_eq!(rejections(&platform.sparks), []);
    eventually("nobody is kept without work for long", || developers(worker.process.id()).is_empty());
    assert!(!killed.into_iter().any(is_there));
    assert_eq!(worker.get("/healthz").0, 200);
}

#[test]
fn a_second_signal_does_not_wait_for_what_is_in_hand() {
    let (platform, mut worker) = asleep(&[]);
    worker.signal("TERM");
    eventually("the worker says that it stops", || worker.log().contains("stopping"));
    assert_eq!(worker.process.try_wait().unwrap(), None, "there is a photo in hand");
    worker.signal("TERM");
    assert_eq!(worker.ended(Duration::from_secs(10)), Some(143), "{}", worker.log());
    wake(&platform);
    platform.drain();
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 6);
}

#[test]
fn nobody_is_left_behind_by_a_worker_that_was_killed() {
    let (platform, mut worker) = asleep(&[]);
    let developers = developers(worker.process.id());
    assert_eq!(developers.len(), 2);
    worker.process.kill().unwrap();
    worker.process.wait().unwrap();
    eventually("they end with it", || !developers.iter().any(|pid| is_there(*pid)));
    wake(&platform);
    platform.drain();
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 6);
}

#[test]
fn a_service_that_is_stopped_whole_finishes_its_photos() {
    let (platform, mut worker) = asleep(&[]);
    let developers = developers(worker.process.id());
    for pid in &developers {
        signal("TERM", *pid);
        signal("INT", *pid);
    }
    worker.signal("TERM");
    eventually("it takes no more messages", || worker.log().contains("no more messages are taken"));
    wake(&platform);
    assert_eq!(worker.ended(Duration::from_secs(25)), Some(0), "{}", worker.log());
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 6, "{}", worker.log());
    eventually("they end with it", || !developers.iter().any(|pid| is_there(*pid)));
}

#[test]
fn a_decoder_that_hangs_is_ended_and_the_photo_is_not_to_blame() {
    let (platform, worker) = asleep(&[TIGHT[0], ("SPARKS_QUEUE_MAX_RECEIVES", "2")]);
    eventually("given up", || platform.letters().len() == 1);
    let letter = platform.letters().remove(0).to_string();
    assert!(letter.contains("does not answer: nothing for 6 s") && letter.contains("unavailable"), "{letter}");
    assert_eq!((rejections(&platform.sparks), worker.get("/healthz").0), (Vec::new(), 200));
    wake(&platform);
    platform.sparks.text(["dlq", "replay", "--all"]);
    eventually("it is done", || platform.sparks.events_of("PhotoProcessed").len() == 6);
}

#[test]
fn a_binary_that_cannot_be_run_is_waited_for_and_one_that_was_replaced_is_used_to_the_end() {
    let platform = Platform::new(2, 1);
    let copy = platform.sparks.path("sparks");
    fs::copy(binary(), &copy).unwrap();
    let opened = Command::new("chmod").arg("-R").arg("a+rwX").arg(platform.sparks.path(".")).status();
    assert!(opened.unwrap().success());
    let mode = |mode| fs::set_permissions(&copy, Permissions::from_mode(mode)).unwrap();
    mode(0o755);
    // Permissions do not stop root, so the worker runs as nobody.
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let worker = platform.worker_by(&[("SPARKS_QUEUE_MAX_RECEIVES", "1000")], |command| {
        let mut other = Command::new(&copy);
        other.args(command.get_args()).current_dir("/");
        other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if is_root {
            other.uid(65534).gid(65534);
        }
        other
    });
    mode(0o000);
    platform.send(&[created(&platform.upload(0))]);
    eventually("it is said", || worker.log().contains("no process to decode it: Permission denied"));
    mode(0o755);
    eventually("the photo is done", || platform.sparks.events_of("PhotoProcessed").len() == 1);

    developers(worker.process.id()).into_iter().for_each(|pid| signal("KILL", pid));
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, "another program").unwrap();
    platform.send(&[created(&platform.upload(1))]);
    eventually("the photo is done", || platform.sparks.events_of("PhotoProcessed").len() == 2);
    assert_eq!((rejections(&platform.sparks), platform.letters()), (Vec::new(), Vec::new()));
}

/// As many pixels as a photo may have, with all that a PNG can have of each, and all of it zero; and so many bytes of something
/// else.
fn largest_png(beside: usize) -> Vec<u8> {
    let (width, height) = (10_000_u32, 5_000_u32);
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let part = |name: &[u8], data: &[u8]| {
        let (length, part) = (u32::try_from(data.len()).unwrap(), [name, data].concat());
        [&length.to_be_bytes()[..], &part, &crc(&part).to_be_bytes()].concat()
    };
    let header = part(b"IHDR", &[&size[..], &[16, 6, 0, 0, 0]].concat());
    let zeros = height * (1 + width * 8);
    let pixels = part(b"IDAT", &zlib_of_zeros(zeros));
    let beside = part(b"teSt", &vec![0; beside]);
    [&b"\x89PNG\r\n\x1a\n"[..], &header, &pixels, &beside, &part(b"IEND", b"")].concat()
}

/// So many zeros, compressed: one, then as often as possible "258 more of these", then the rest.
fn zlib_of_zeros(count: u32) -> Vec<u8> {
    let (one, many, end) = ("00110000", "1100010100000", "0000000");
    let bits = ["110", one, &many.repeat(((count - 1) / 258) as usize), &one.repeat(((count - 1) % 258) as usize), end];
    let bits = bits.concat();
    let byte = |bits: &[u8]| bits.iter().rev().fold(0_u8, |byte, bit| byte << 1 | (bit - b'0'));
    let checksum = (count % 65_521) << 16 | 1;
    let compressed = bits.as_bytes().chunks(8).map(byte);
    [0x78, 0x01].into_iter().chain(compressed).chain(checksum.to_be_bytes()).collect()
}

#[test]
fn the_largest_photo_has_enough_memory_and_time() {
    let sparks = Sparks::new();
    fs::write(sparks.path("largest.png"), largest_png(20 << 20)).unwrap();
    let (above, summary) = memory_above_idle(&sparks, "largest.png", &[]);
    assert_eq!(summary["processed"], 1, "{summary}");
    assert!((300 << 20..512 << 20).contains(&above), "{above} bytes");
}
