//! The whole service over an engine that sees what a file says is in it.

mod behaviour;
mod collections;
mod faces;
mod kept;
mod protocol;
mod validation;

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sparks_domain::{FaceBox, Point, Quality, RejectCode, Rejection, SeenFace, Signature};
use sparks_engine::{Darkroom, DarkroomError, Description, Developed, FaceEngine, Pixels};
use tokio::net::TcpStream;

use crate::{Model, Options, Server, Service};

const JPEG: [u8; 3] = [0xff, 0xd8, 0xff];

/// Decodes nothing: behind the magic bytes a file says what is in it.
struct Plain;

/// Sees what the file says.
struct Told;

fn content(file: &[u8]) -> Option<Value> {
    serde_json::from_slice(file.strip_prefix(&JPEG)?).ok()
}

impl Darkroom for Plain {
    fn describe(&self, _: &[u8]) -> Description {
        Description::default()
    }

    fn measure(&self, picture: &[u8]) -> Option<(u32, u32)> {
        let side = |place: usize| content(picture)?["size"][place].as_u64()?.try_into().ok();
        Some((side(0)?, side(1)?))
    }

    fn develop(&self, _: &[u8]) -> Result<Developed, DarkroomError> {
        Err(DarkroomError::Unavailable("nobody develops".into()))
    }

    fn open(&self, picture: &[u8]) -> Result<Pixels, DarkroomError> {
        let reject = |code| DarkroomError::Rejected(Rejection { code, message: "no".into() });
        let (width, height) = self.measure(picture).ok_or_else(|| reject(RejectCode::Damaged))?;
        match width {
            10_001.. => Err(reject(RejectCode::TooManyPixels)),
            9_999 => Err(DarkroomError::Unavailable("the darkroom burns".into())),
            9_998 => panic!("a fault of ours"),
            _ => Ok(Pixels { width, height, rgb: picture[JPEG.len()..].to_vec() }),
        }
    }

    fn crop(&self, _: &Pixels, _: FaceBox) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }

    fn jpeg(&self, _: &Pixels, _: usize) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }
}

impl FaceEngine for Told {
    fn look(&self, pixels: &Pixels) -> Vec<SeenFace> {
        let content: Value = serde_json::from_slice(&pixels.rgb).unwrap();
        content["faces"].as_array().into_iter().flatten().map(seen).collect()
    }
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

fn seen(face: &Value) -> SeenFace {
    let [x, y, width, height] = numbers(&face["box"])[..] else { panic!("a box has four sides") };
    let share = |name: &str, otherwise: f64| face[name].as_f64().unwrap_or(otherwise) as f32;
    let place = |(across, down): (f32, f32)| Point { x: x + across * width, y: y + down * height };
    let landmarks = [(0.3, 0.4), (0.7, 0.4), (0.5, 0.6), (0.35, 0.8), (0.65, 0.8)].map(place);
    let quality =
        Quality { size: share("pixels", 90.0), sharpness: share("sharpness", 0.5), turn: Some(share("turn", 0.1)) };
    SeenFace {
        bounds: FaceBox { x, y, width, height },
        landmarks: landmarks.to_vec(),
        quality,
        confidence: share("confidence", 0.99),
        attributes: serde_json::from_value(face["attributes"].clone()).unwrap_or_default(),
        model: "told".into(),
        signature: face["looks"].as_array().and_then(|_| Signature::quantise(&numbers(&face["looks"]))),
    }
}

/// A face of this size that looks so.
fn face(size: f32, looks: &[f32]) -> Value {
    json!({ "box": [0.1, 0.2, size, size], "looks": looks })
}

/// A file with these faces in it.
fn photo(faces: &[Value]) -> Vec<u8> {
    file(&json!({ "size": [100, 100], "faces": faces }))
}

fn file(content: &Value) -> Vec<u8> {
    [&JPEG[..], content.to_string().as_bytes()].concat()
}

/// The member that holds a file.
fn image(file: &[u8]) -> Value {
    json!({ "Bytes": BASE64_STANDARD.encode(file) })
}

fn model() -> Model {
    Model::new("1.0", 0.5).unwrap()
}

fn service() -> Service {
    Service::new(Arc::new(Told), Arc::new(Plain), model(), Options::default())
}

/// A client of a server of its own.
struct Client {
    server: Server,
}

impl Client {
    async fn new() -> Self {
        Self::of(service()).await
    }

    async fn of(service: Service) -> Self {
        Self { server: Server::bind("127.0.0.1:0", Arc::new(service)).await.unwrap() }
    }

    /// Waits until nobody uses the server any more.
    async fn end(self) {
        self.server.stop(Duration::from_secs(10)).await;
    }

    fn service(&self) -> &Service {
        self.server.service()
    }

    /// A request as clients make them.
    fn request(operation: &str) -> hyper::http::request::Builder {
        Request::post("/")
            .header("host", "localhost")
            .header("content-type", "application/x-amz-json-1.1")
            .header("x-amz-target", format!("RekognitionService.{operation}"))
            .header("x-amz-date", "20260101T000000Z")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-central-1/rekognition/aws4_request, \
                SignedHeaders=host;x-amz-date, Signature=00",
            )
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> (StatusCode, hyper::HeaderMap, Value) {
        let stream = TcpStream::connect(self.server.address()).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        connection.abort();
        (head.status, head.headers, serde_json::from_slice(&body).unwrap())
    }

    async fn ask(&self, operation: &str, input: &Value) -> (StatusCode, Value) {
        let request = Self::request(operation).body(input.to_string().into()).unwrap();
        let (status, _, body) = self.send(request).await;
        (status, body)
    }

    /// What must work.
    async fn ok(&self, operation: &str, input: Value) -> Value {
        let (status, body) = self.ask(operation, &input).await;
        assert_eq!(status, 200, "{operation} {input}: {body}");
        body
    }

    /// What must be refused: under which name, and in which words.
    async fn refused(&self, operation: &str, input: Value) -> (String, String) {
        let (status, body) = self.ask(operation, &input).await;
        assert_ne!(status, 200, "{operation} {input}: {body}");
        assert_eq!(body["__type"], body["Code"]);
        (body["__type"].as_str().unwrap().to_owned(), body["Message"].as_str().unwrap().to_owned())
    }

    /// The name under which it must be refused.
    async fn refusal(&self, operation: &str, input: Value) -> String {
        self.refused(operation, input).await.0
    }

    /// A collection with these photos, each under its own name.
    async fn with(&self, collection: &str, photos: &[(&str, &[u8])]) -> Vec<Value> {
        self.ok("CreateCollection", json!({ "CollectionId": collection })).await;
        let mut answers = Vec::new();
        for (name, file) in photos {
            let input = json!({ "CollectionId": collection, "ExternalImageId": name, "Image": image(file) });
            answers.push(self.ok("IndexFaces", input).await);
        }
        answers
    }
}

/// The names of photos in which faces were found, in this order.
fn found(answer: &Value) -> Vec<&str> {
    let matches = answer["FaceMatches"].as_array().unwrap();
    matches.iter().map(|found| found["Face"]["ExternalImageId"].as_str().unwrap()).collect()
}
