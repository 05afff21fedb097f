//! Decoder processes: a file that crashes its decoder, or a decoder that is killed, affects no other photo.

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
    harness::{Platform, Worker, created, eventually, within},
    peak_memory::run_and_measure,
    sparks::{Sparks, binary},
};

/// Injected faults, with the code and message of the rejection under the limits of [`TIGHT`].
const FAULTS: [(&str, &str, &str); 7] = [
    ("panic", "damaged", "the decoder crashed: injected fault"),
    ("abort", "damaged", "the decoder crashed (SIGABRT); save the file again"),
    ("exit", "damaged", "the decoder crashed (exit status: 7); save the file again"),
    ("overflow", "damaged", "the decoder crashed (stack overflow); save the file again"),
    ("segv", "damaged", "the decoder crashed (SIGSEGV); save the file again"),
    ("spin", "damaged", "decoding takes more than 1 s of CPU time; save the file again"),
    ("eat", "too_many_pixels", "decoding takes more than 128 MiB of memory; save the file again"),
];
const TIGHT: [(&str, &str); 2] = [("SPARKS_LIMITS_MAX_CPU_SECONDS", "1"), ("SPARKS_LIMITS_MAX_MEMORY_MIB", "128")];

/// Enables fault injection. The value names a file; the fault `sleep` lasts as long as that file exists.
const ENABLE: &str = "SPARKS_TEST_HURT";

/// Returns the photo with a comment that injects a fault into its decoder.
fn with_fault(photo: &[u8], fault: &str) -> Vec<u8> {
    let comment = format!("sparks-test-hurt:{fault}");
    let length = u16::try_from(comment.len() + 2).unwrap().to_be_bytes();
    [&photo[..2], &[0xff, 0xfe], &length, comment.as_bytes(), &photo[2..]].concat()
}

/// Returns the decoder processes of this worker.
fn decoders(worker: u32) -> Vec<u32> {
    let is_decoder = |pid: &u32| {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
        let is = |field: &str, value: &str| {
            status.lines().any(|line| line.split_once(":\t").is_some_and(|(name, is)| name == field && is == value))
        };
        is("PPid", &worker.to_string()) && is("Name", "sparks-decoder") && !status.contains("State:\tZ")
    };
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(is_decoder).collect()
}

fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| !status.contains("State:\tZ"))
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

/// Returns code and message of every rejection in the log.
fn rejections(sparks: &Sparks) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let reason =
        |event: &Value| (text(&event["event_data"]["reason"]["code"]), text(&event["event_data"]["reason"]["message"]));
    let mut reasons: Vec<_> = sparks.events_of("PhotoRejected").iter().map(reason).collect();
    reasons.sort();
    reasons
}

fn expected_rejections() -> Vec<(String, String)> {
    let mut expected: Vec<_> = FAULTS.iter().map(|(_, code, message)| ((*code).into(), (*message).into())).collect();
    expected.sort();
    expected
}

fn photo_in(album: &Path) -> Vec<u8> {
    let mut paths = fs::read_dir(album).unwrap().map(|entry| entry.unwrap().path());
    fs::read(paths.find(|path| path.extension().unwrap() == "jpg").unwrap()).unwrap()
}

/// Creates an album of good photos and one photo per fault.
fn album_with_faults(sparks: &Sparks) -> PathBuf {
    let album = sparks.synth(10, 4, &[]);
    let photo = photo_in(&album);
    for (fault, ..) in FAULTS {
        fs::write(album.join(format!("{fault}.jpg")), with_fault(&photo, fault)).unwrap();
    }
    album
}

#[test]
fn a_fault_in_a_decoder_rejects_only_its_file() {
    let sparks = Sparks::new();
    let album = album_with_faults(&sparks);
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "3", "--json"];
    let output = sparks.command(ingest).envs(TIGHT).env(ENABLE, "").output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["processed"], &summary["failed"]), (&json!(10), &json!([])), "{summary}");
    assert_eq!(rejections(&sparks), expected_rejections());
    for (fault, _, message) in FAULTS {
        let rejected = summary["rejected"].as_array().unwrap().iter();
        let reported = rejected.filter(|file| file["path"].as_str().unwrap().ends_with(&format!("{fault}.jpg")));
        assert_eq!(reported.map(|file| file["reason"].as_str().unwrap()).collect::<Vec<_>>(), [message], "{summary}");
    }
    assert_eq!(sparks.json(["verify"])["clean"], true);
}

#[test]
fn a_crash_is_repeated_in_a_new_decoder_only_after_earlier_photos() {
    // `0.jpg` is decoded before the good photo, `z.jpg` after it, in a decoder that the good photo might have damaged.
    for (name, fault, deaths) in [("0.jpg", "segv", 1), ("z.jpg", "segv", 2), ("0.jpg", "eat", 1), ("z.jpg", "spin", 1)]
    {
        let sparks = Sparks::new();
        let album = sparks.synth(1, 1, &[]);
        fs::write(album.join(name), with_fault(&photo_in(&album), fault)).unwrap();
        let ingest = ["ingest", album.to_str().unwrap(), "--faces", "off", "--jobs", "1", "--json"];
        let output = sparks.command(ingest).envs(TIGHT).env(ENABLE, "").output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(log.matches("decoder process died").count(), deaths, "{name}, {fault}: {log}");
        assert_eq!(rejections(&sparks).len(), 1);
    }
}

/// Returns the peak memory of `sparks ingest` with this file above that without any file, over all processes, and the summary.
fn memory_above_idle(sparks: &Sparks, file: &str, settings: &[(&str, &str)]) -> (u64, Value) {
    let empty = sparks.path("empty");
    fs::create_dir(&empty).unwrap();
    let [(idle, _), (peak, output)] = [empty.to_str().unwrap(), file].map(|path| {
        let mut command = sparks.command(["ingest", path, "--faces", "off", "--jobs", "1", "--json"]);
        command.envs(settings.iter().copied());
        run_and_measure(command)
    });
    let above = peak.saturating_sub(idle);
    println!("{file}: {} MB above the {} of an idle worker", above >> 20, idle >> 20);
    (above, serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn memory_of_a_file_is_bounded_over_all_processes() {
    let sparks = Sparks::new();
    let album = sparks.synth(1, 1, &[]);
    // The worker holds the file in memory, so the limit of its decoder is lower by that size.
    let large_file = [with_fault(&photo_in(&album), "eat"), vec![0; 20 << 20]].concat();
    fs::write(sparks.path("eat.jpg"), large_file).unwrap();
    let (above, summary) = memory_above_idle(&sparks, "eat.jpg", &[TIGHT[1], (ENABLE, "")]);
    assert_eq!(summary["rejected"][0]["reason"], FAULTS[6].2, "{summary}");
    assert!((90 << 20..160 << 20).contains(&above), "{above} bytes");
}

#[test]
fn a_worker_survives_decoder_faults_while_it_processes_other_photos() {
    let platform = Platform::new(20, 5);
    let worker = platform.worker(&[&TIGHT[..], &[(ENABLE, ""), ("SPARKS_JOBS", "3")]].concat());
    let images: Vec<String> = (0..20).map(|n| platform.upload(n)).collect();
    for (n, (fault, ..)) in FAULTS.into_iter().enumerate() {
        platform.put(&format!("originals/{}.jpg", images[n * 2]), &with_fault(&platform.photo(n * 2), fault));
    }
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    within(Duration::from_secs(120), "everything is settled", &mut || platform.unsettled() == 0);
    assert_eq!(rejections(&platform.sparks), expected_rejections());
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 20 - FAULTS.len());
    assert_eq!((worker.get("/healthz").0, platform.dead_letters().len()), (200, 0), "{}", worker.log());
    assert!(
        worker.log().contains("memory allocation of"),
        "the standard error of the decoder is logged: {}",
        worker.log()
    );
}

#[test]
fn fault_injection_is_off_by_default() {
    let sparks = Sparks::new();
    let album = album_with_faults(&sparks);
    let summary = sparks.json(["ingest", album.to_str().unwrap(), "--faces", "off"]);
    assert_eq!(summary["processed"], 10 + FAULTS.len(), "{summary}");
}

#[test]
fn isolation_can_be_turned_off() {
    let sparks = Sparks::new();
    let album = sparks.synth(3, 1, &[]);
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "off", "--json"];
    for (n, isolate) in ["false", "true"].into_iter().enumerate() {
        let data = sparks.path(&n.to_string());
        let output = sparks.command(ingest).arg("--data").arg(&data).env("SPARKS_DECODER_ISOLATE", isolate).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let variants = |n: u32| {
        let folder = sparks.path(&n.to_string()).join("objects/processed");
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| (file.file_name().unwrap().to_owned(), fs::read(file).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(variants(0).len(), 6);
    assert!(variants(0) == variants(1), "the variants differ");
}

/// Starts a worker that has processed five photos and holds a sixth one, whose decoder sleeps.
fn with_sleeping_decoder(settings: &[(&str, &str)]) -> (Platform, Worker) {
    let platform = Platform::new(6, 2);
    let hold = platform.sparks.path("hold");
    fs::write(&hold, "").unwrap();
    let hold = hold.to_str().unwrap().to_owned();
    let base = [(ENABLE, &hold[..]), ("SPARKS_FACES_ANALYZER", "off"), ("SPARKS_JOBS", "2")];
    let worker = platform.worker(&[&base, settings].concat());
    assert!(decoders(worker.process.id()).is_empty(), "no decoder before the first photo");
    let images: Vec<String> = (0..6).map(|n| platform.upload(n)).collect();
    platform.put(&format!("originals/{}.jpg", images[0]), &with_fault(&platform.photo(0), "sleep"));
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("the others are processed", || platform.sparks.events_of("PhotoProcessed").len() == 5);
    (platform, worker)
}

fn wake(platform: &Platform) {
    fs::remove_file(platform.sparks.path("hold")).unwrap();
}

#[test]
fn a_photo_whose_decoder_is_killed_is_processed_by_another() {
    let (platform, worker) = with_sleeping_decoder(&[]);
    let killed = decoders(worker.process.id());
    assert_eq!(killed.len(), 2, "one per job");
    killed.iter().for_each(|pid| signal("KILL", *pid));
    eventually("the kill is logged", || worker.log().contains("decoder process was killed"));
    wake(&platform);
    eventually("the photo is processed", || platform.sparks.events_of("PhotoProcessed").len() == 6);
    assert_eq!(rejections(&platform.sparks), []);
    assert!(!killed.into_iter().any(is_running));
    assert_eq!(worker.get("/healthz").0, 200);
}

#[test]
#[ignore = "takes 40 seconds; run by the scheduled workflow"]
fn idle_decoders_end() {
    let (platform, worker) = with_sleeping_decoder(&[]);
    wake(&platform);
    eventually("the photo is processed", || platform.sparks.events_of("PhotoProcessed").len() == 6);
    assert!(!decoders(worker.process.id()).is_empty());
    eventually("idle decoders end", || decoders(worker.process.id()).is_empty());
    assert_eq!(worker.get("/healthz").0, 200);
}

#[test]
fn a_second_signal_does_not_wait_for_messages_in_flight() {
    let (platform, mut worker) = with_sleeping_decoder(&[]);
    worker.signal("TERM");
    eventually("the worker logs that it stops", || worker.log().contains("stopping"));
    assert_eq!(worker.process.try_wait().unwrap(), None, "a photo is in flight");
    worker.signal("TERM");
    assert_eq!(worker.wait_for_exit(Duration::from_secs(10)), Some(143), "{}", worker.log());
    wake(&platform);
    platform.drain();
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 6);
}

#[test]
fn decoders_end_with_a_killed_worker() {
    let (platform, mut worker) = with_sleeping_decoder(&[]);
    let decoders = decoders(worker.process.id());
    assert_eq!(decoders.len(), 2);
    worker.process.kill().unwrap();
    worker.process.wait().unwrap();
    eventually("the decoders end", || !decoders.iter().any(|pid| is_running(*pid)));
    wake(&platform);
    platform.drain();
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 6);
}

#[test]
fn signals_to_the_whole_process_group_let_photos_finish() {
    let (platform, mut worker) = with_sleeping_decoder(&[]);
    let decoders = decoders(worker.process.id());
    for pid in &decoders {
        signal("TERM", *pid);
        signal("INT", *pid);
    }
    worker.signal("TERM");
    eventually("the worker receives no more messages", || worker.log().contains("stopped receiving messages"));
    wake(&platform);
    assert_eq!(worker.wait_for_exit(Duration::from_secs(25)), Some(0), "{}", worker.log());
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 6, "{}", worker.log());
    eventually("the decoders end", || !decoders.iter().any(|pid| is_running(*pid)));
}

#[test]
fn a_hanging_decoder_is_killed_and_its_photo_not_rejected() {
    let (platform, worker) = with_sleeping_decoder(&[TIGHT[0], ("SPARKS_QUEUE_MAX_ATTEMPTS", "2")]);
    eventually("the message is a dead letter", || platform.sparks.count("dead_letters") == 1);
    let letter = platform.dead_letters().remove(0).to_string();
    assert!(
        letter.contains("is unresponsive: timeout, no output for 6 s") && letter.contains("unavailable"),
        "{letter}"
    );
    // The words that operators search for.
    for word in ["timeout", "will retry", "dead letter"] {
        assert!(worker.log().contains(word), "the log does not contain `{word}`:\n{}", worker.log());
    }
    assert_eq!((rejections(&platform.sparks), worker.get("/healthz").0), (Vec::new(), 200));
    wake(&platform);
    platform.sparks.text(["dlq", "replay", "--all"]);
    eventually("the photo is processed", || platform.sparks.events_of("PhotoProcessed").len() == 6);
}

#[test]
fn decoders_start_late_if_forbidden_and_even_if_the_file_is_replaced() {
    let platform = Platform::new(2, 1);
    let copy = platform.sparks.path("sparks");
    fs::copy(binary(), &copy).unwrap();
    let opened = Command::new("chmod").arg("-R").arg("a+rwX").arg(platform.sparks.path(".")).status();
    assert!(opened.unwrap().success());
    let mode = |mode| fs::set_permissions(&copy, Permissions::from_mode(mode)).unwrap();
    mode(0o755);
    // Permissions do not stop root, so the worker runs as user 65534.
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let worker = platform.worker_by(&[("SPARKS_QUEUE_MAX_ATTEMPTS", "1000")], |command| {
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
    eventually("the failure is logged", || {
        worker.log().contains("failed to start a decoder process: Permission denied")
    });
    mode(0o755);
    eventually("the photo is processed", || platform.sparks.events_of("PhotoProcessed").len() == 1);

    decoders(worker.process.id()).into_iter().for_each(|pid| signal("KILL", pid));
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, "another program").unwrap();
    platform.send(&[created(&platform.upload(1))]);
    eventually("the photo is processed", || platform.sparks.events_of("PhotoProcessed").len() == 2);
    assert_eq!((rejections(&platform.sparks), platform.dead_letters()), (Vec::new(), Vec::new()));
}

/// Returns a PNG of the maximum number of pixels, with 16 bits for each of four channels, all zero, and with this many bytes in a
/// private chunk.
fn largest_png(private_bytes: usize) -> Vec<u8> {
    let (width, height) = (10_000_u32, 5_000_u32);
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let chunk = |name: &[u8], data: &[u8]| {
        let (length, content) = (u32::try_from(data.len()).unwrap(), [name, data].concat());
        [&length.to_be_bytes()[..], &content, &crc(&content).to_be_bytes()].concat()
    };
    let header = chunk(b"IHDR", &[&size[..], &[16, 6, 0, 0, 0]].concat());
    let zeros = height * (1 + width * 8);
    let pixels = chunk(b"IDAT", &zlib_of_zeros(zeros));
    let private = chunk(b"teSt", &vec![0; private_bytes]);
    [&b"\x89PNG\r\n\x1a\n"[..], &header, &pixels, &private, &chunk(b"IEND", b"")].concat()
}

/// Returns this many zeros compressed with zlib: a literal zero, copies of length 258, and literals for the rest.
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
