//! `sparks rekognition-server`, asked by Rekognition's own client for another language.

use std::{
    fs,
    io::{BufRead, BufReader, Cursor},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use image::{ImageFormat, Rgb, RgbImage};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sparks_faces::{DEFAULT_NOISE, Synthetic, draw_marker, identity_vector, jpeg, with_noise};
use sparks_rekognition::{Model, Options, Service, Throttle, TooMany, Trouble};
use sparks_tests::{
    binary::{binary, root},
    venv::interpreter,
    worker::lab,
};

use super::readers::CLIENT;

const ANN: usize = 0;
const BOB: usize = 1;
const CID: usize = 2;
const STRANGER: usize = 3;

/// A server of its own.
struct Server {
    process: Child,
    endpoint: String,
}

impl Server {
    fn start(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(binary());
        command.args(["rekognition-server", "--listen", "127.0.0.1:0", "--json"]).args(args);
        command.envs(environment.iter().copied());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        Self { process, endpoint: told["endpoint"].as_str().unwrap().to_owned() }
    }

    fn ask(&self, args: &[&str]) -> Value {
        ask(&self.endpoint, args)
    }

    /// Asks it to stop, and tells how it ended.
    fn stop(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// What the client has seen; whatever it finds wrong ends the test.
fn ask(endpoint: &str, args: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/cloud/rekognition.py");
    let mut client = Command::new(interpreter("readers", CLIENT));
    client.arg(script).args(args).env("AWS_ENDPOINT_URL", endpoint).env("AWS_DEFAULT_REGION", "eu-central-1");
    client.env("AWS_ACCESS_KEY_ID", "anybody").env("AWS_SECRET_ACCESS_KEY", "anything");
    let output = client.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A picture of these identities, each so large, as nobody has seen them before.
fn picture(number: u64, faces: &[(usize, u32)]) -> RgbImage {
    let width = faces.iter().map(|(_, side)| side + 20).sum::<u32>().max(100);
    let height = faces.iter().map(|(_, side)| side + 20).max().unwrap_or(100);
    let mut canvas = RgbImage::from_pixel(width, height, Rgb([90, 120, 150]));
    let mut left = 10;
    for (place, (identity, side)) in (0..).zip(faces) {
        let look = with_noise(&identity_vector(1, *identity), DEFAULT_NOISE, number * 100 + place);
        draw_marker(&mut canvas, left, 10, *side, &look);
        left += side + 20;
    }
    canvas
}

fn encoded(picture: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, format).unwrap();
    file.into_inner()
}

/// A PNG whose header says that it is vast.
fn vast() -> Vec<u8> {
    let mut file = encoded(&picture(0, &[]), ImageFormat::Png);
    file[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
    let crc = png_crc(&file[12..29]);
    file[29..33].copy_from_slice(&crc.to_be_bytes());
    file
}

/// The check of a PNG's chunk, by the specification.
fn png_crc(chunk: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 })
    };
    !chunk.iter().fold(u32::MAX, step)
}

/// A folder of photos, by name.
fn photos() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let casts: [(&str, &[(usize, u32)]); 10] = [
        ("ann-1", &[(ANN, 96)]),
        ("ann-2", &[(ANN, 120)]),
        ("bob-1", &[(BOB, 96)]),
        ("bob-2", &[(BOB, 96)]),
        ("cid-1", &[(CID, 96)]),
        ("stranger", &[(STRANGER, 96)]),
        ("large-ann-small-bob", &[(BOB, 96), (ANN, 192)]),
        ("large-bob-small-ann", &[(ANN, 96), (BOB, 192)]),
        ("nobody", &[]),
        ("webp", &[(ANN, 96)]),
    ];
    for (number, (name, faces)) in (1..).zip(casts) {
        let picture = picture(number, faces);
        let (ending, file) = match name {
            "webp" => ("webp", encoded(&picture, ImageFormat::WebP)),
            _ => ("jpg", jpeg(&picture)),
        };
        fs::write(folder.path().join(format!("{name}.{ending}")), file).unwrap();
    }
    let ann = encoded(&picture(20, &[(ANN, 96)]), ImageFormat::Png);
    fs::write(folder.path().join("ann-2-png.png"), ann).unwrap();
    fs::write(folder.path().join("vast.png"), vast()).unwrap();
    let tiny = RgbImage::from_pixel(79, 200, Rgb([1, 2, 3]));
    fs::write(folder.path().join("tiny.jpg"), jpeg(&tiny)).unwrap();
    folder
}

fn text(path: PathBuf) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_operation_answers_as_the_services_model_says() {
    let (photos, kept) = (photos(), tempfile::tempdir().unwrap());
    let (folder, dir) = (text(photos.path().into()), text(kept.path().join("collections")));
    let args = ["--faces", "synthetic", "--dir", &dir];
    let server = Server::start(&args, &[]);
    let seen = server.ask(&["walk", &folder]);
    assert!(seen["answers"].as_u64().unwrap() > 80, "{seen}");
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(&args, &[]);
    server.ask(&["again"]);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn requests_are_held_to_the_limits_of_the_services_model() {
    let photos = photos();
    let server = Server::start(&["--faces", "synthetic"], &[]);
    let seen = &server.ask(&["model", &text(photos.path().into())])["seen"];
    let counted = ["allowed", "refused"].map(|name| seen[name].as_u64().unwrap());
    assert!(counted.iter().all(|count| *count > 100), "{seen}");
}

#[test]
fn signatures_count_where_keys_are_asked_for() {
    let keys = [("AWS_ACCESS_KEY_ID", "the-key"), ("AWS_SECRET_ACCESS_KEY", "the-secret")];
    Server::start(&["--faces", "synthetic", "--signed"], &keys).ask(&["signed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trouble_has_the_names_that_clients_know() {
    let model = Model::new("1.0", 0.6).unwrap();
    let service = Service::new(Arc::new(Synthetic), Arc::new(lab()), model, Options::default());
    let server = sparks_rekognition::Server::bind("127.0.0.1:0", Arc::new(service)).await.unwrap();
    let throttled = |answer| Options { throttle: Some(Throttle { per_second: 0.001, answer }), ..Options::default() };
    let troubled = |trouble| Options { trouble: Some(trouble), ..Options::default() };
    for (options, name) in [
        (throttled(TooMany::Throttling), "ThrottlingException"),
        (throttled(TooMany::ProvisionedThroughput), "ProvisionedThroughputExceededException"),
        (troubled(Trouble::Outage), "InternalServerError"),
        (troubled(Trouble::Denied), "AccessDeniedException"),
    ] {
        server.service().set(options);
        let endpoint = server.endpoint();
        tokio::task::spawn_blocking(move || ask(&endpoint, &["trouble", name])).await.unwrap();
    }
    let calls = server.service().calls();
    assert_eq!((calls["ListCollections"], calls["DescribeCollection"]), (6, 4));
}

#[test]
fn persons_are_told_apart() {
    let server = Server::start(&["--faces", "local"], &[("SPARKS_FACES_ATTRIBUTES", "true")]);
    server.ask(&["people", &text(root().join("tests/photos"))]);
}

#[test]
fn what_cannot_be_served_is_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.jsonl"), "nonsense\n").unwrap();
    let dir = text(folder.path().into());
    let check = |args: &[&str], code: i32, words: &str| {
        let output = Command::new(binary()).arg("rekognition-server").args(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    };
    check(&["--faces", "synthetic", "--dir", &dir], 1, "x.jsonl is damaged in line 1");
    check(&["--faces", "synthetic", "--listen", "nowhere"], 2, "--listen");
    check(&["--faces", "off"], 2, "synthetic");
}
