//! `sparks rekognition-server` with boto3 as the client.

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
use sparks_faces::{DEFAULT_NOISE, SyntheticEngine, draw_marker, identity_vector, jpeg, with_noise};
use sparks_rekognition::{InjectedFailure, Model, Options, Service, Throttle, ThrottleError};
use sparks_tests::{
    binary::{binary, root},
    venv::interpreter,
    worker::image_processor,
};

use super::platform_api::CLIENT;

const ANN: usize = 0;
const BOB: usize = 1;
const CID: usize = 2;
const DAN: usize = 3;

/// A running server. It is killed when it is dropped.
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
        let output: Value = serde_json::from_str(&line).unwrap();
        Self { process, endpoint: output["endpoint"].as_str().unwrap().to_owned() }
    }

    fn run_client(&self, args: &[&str]) -> Value {
        run_client(&self.endpoint, args)
    }

    /// Stops the server with SIGTERM and returns its exit code.
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

/// Runs an action of the client script and returns its result. A failed assertion of the script fails the test.
fn run_client(endpoint: &str, args: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/cloud/rekognition_client.py");
    let mut client = Command::new(interpreter("boto3", CLIENT));
    client.arg(script).args(args).env("AWS_ENDPOINT_URL", endpoint).env("AWS_DEFAULT_REGION", "eu-central-1");
    client.env("AWS_ACCESS_KEY_ID", "any-key").env("AWS_SECRET_ACCESS_KEY", "any-secret");
    let output = client.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Draws a photo of these identities with faces of these sizes. No two faces of an identity are equal.
fn draw(number: u64, faces: &[(usize, u32)]) -> RgbImage {
    let width = faces.iter().map(|(_, side)| side + 20).sum::<u32>().max(100);
    let height = faces.iter().map(|(_, side)| side + 20).max().unwrap_or(100);
    let mut canvas = RgbImage::from_pixel(width, height, Rgb([90, 120, 150]));
    let mut left = 10;
    for (place, (identity, side)) in (0..).zip(faces) {
        let marker = with_noise(&identity_vector(1, *identity), DEFAULT_NOISE, number * 100 + place);
        draw_marker(&mut canvas, left, 10, *side, &marker);
        left += side + 20;
    }
    canvas
}

fn encode(pixels: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    pixels.write_to(&mut file, format).unwrap();
    file.into_inner()
}

/// Returns a PNG whose header declares 30,000 x 30,000 pixels.
fn oversized_png() -> Vec<u8> {
    let mut file = encode(&draw(0, &[]), ImageFormat::Png);
    file[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
    let crc = png_crc(&file[12..29]);
    file[29..33].copy_from_slice(&crc.to_be_bytes());
    file
}

/// Returns the CRC-32 of a PNG chunk.
fn png_crc(chunk: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 })
    };
    !chunk.iter().fold(u32::MAX, step)
}

/// Creates a folder of photos.
fn photos() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let photos: [(&str, &[(usize, u32)]); 10] = [
        ("ann-1", &[(ANN, 96)]),
        ("ann-2", &[(ANN, 120)]),
        ("bob-1", &[(BOB, 96)]),
        ("bob-2", &[(BOB, 96)]),
        ("cid-1", &[(CID, 96)]),
        ("dan-1", &[(DAN, 96)]),
        ("large-ann-small-bob", &[(BOB, 96), (ANN, 192)]),
        ("large-bob-small-ann", &[(ANN, 96), (BOB, 192)]),
        ("empty", &[]),
        ("webp", &[(ANN, 96)]),
    ];
    for (number, (name, faces)) in (1..).zip(photos) {
        let pixels = draw(number, faces);
        let (ending, file) = match name {
            "webp" => ("webp", encode(&pixels, ImageFormat::WebP)),
            _ => ("jpg", jpeg(&pixels)),
        };
        fs::write(folder.path().join(format!("{name}.{ending}")), file).unwrap();
    }
    let ann = encode(&draw(20, &[(ANN, 96)]), ImageFormat::Png);
    fs::write(folder.path().join("ann-2-png.png"), ann).unwrap();
    fs::write(folder.path().join("oversized.png"), oversized_png()).unwrap();
    let tiny = RgbImage::from_pixel(79, 200, Rgb([1, 2, 3]));
    fs::write(folder.path().join("tiny.jpg"), jpeg(&tiny)).unwrap();
    folder
}

fn text(path: PathBuf) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_response_conforms_to_the_model_of_the_service() {
    let (photos, data) = (photos(), tempfile::tempdir().unwrap());
    let (folder, dir) = (text(photos.path().into()), text(data.path().join("collections")));
    let args = ["--faces", "synthetic", "--dir", &dir];
    let server = Server::start(&args, &[]);
    let result = server.run_client(&["operations", &folder]);
    assert!(result["responses"].as_u64().unwrap() > 80, "{result}");
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(&args, &[]);
    server.run_client(&["restart"]);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn request_limits_are_those_of_the_model_of_the_service() {
    let photos = photos();
    let server = Server::start(&["--faces", "synthetic"], &[]);
    let result = &server.run_client(&["model", &text(photos.path().into())])["result"];
    let counted = ["allowed", "refused"].map(|name| result[name].as_u64().unwrap());
    assert!(counted.iter().all(|count| *count > 100), "{result}");
}

#[test]
fn request_signatures_are_verified_if_configured() {
    let keys = [("AWS_ACCESS_KEY_ID", "the-key"), ("AWS_SECRET_ACCESS_KEY", "the-secret")];
    Server::start(&["--faces", "synthetic", "--signed"], &keys).run_client(&["signed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn injected_failures_have_the_error_names_of_the_service() {
    let model = Model::new("1.0", 0.6).unwrap();
    let service = Service::new(Arc::new(SyntheticEngine), Arc::new(image_processor()), model, Options::default());
    let server = sparks_rekognition::Server::bind("127.0.0.1:0", Arc::new(service)).await.unwrap();
    let throttled = |error| Options { throttle: Some(Throttle { per_second: 0.001, error }), ..Options::default() };
    let failing = |failure| Options { injected_failure: Some(failure), ..Options::default() };
    for (options, name) in [
        (throttled(ThrottleError::Throttling), "ThrottlingException"),
        (throttled(ThrottleError::ProvisionedThroughput), "ProvisionedThroughputExceededException"),
        (failing(InjectedFailure::Outage), "InternalServerError"),
        (failing(InjectedFailure::AccessDenied), "AccessDeniedException"),
    ] {
        server.service().set_options(options);
        let endpoint = server.endpoint();
        tokio::task::spawn_blocking(move || run_client(&endpoint, &["failure", name])).await.unwrap();
    }
    let calls = server.service().calls();
    assert_eq!((calls["ListCollections"], calls["DescribeCollection"]), (6, 4));
}

#[test]
fn faces_of_real_persons_are_distinguished() {
    let server = Server::start(&["--faces", "local"], &[("SPARKS_FACES_ATTRIBUTES", "true")]);
    server.run_client(&["people", &text(root().join("tests/photos"))]);
}

#[test]
fn wrong_usage_and_damaged_data_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.jsonl"), "not JSON\n").unwrap();
    let dir = text(folder.path().into());
    let check = |args: &[&str], code: i32, expected: &str| {
        let output = Command::new(binary()).arg("rekognition-server").args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(expected), "{args:?}: {text}");
    };
    check(&["--faces", "synthetic", "--dir", &dir], 1, "x.jsonl is damaged in line 1");
    check(&["--faces", "synthetic", "--listen", "not-an-address"], 2, "--listen");
    check(&["--faces", "off"], 2, "synthetic");
}
