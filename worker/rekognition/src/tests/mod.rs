//! Tests of the whole service over a fake engine: a test file is JSON that describes its faces.

mod collections;
mod detection;
mod persistence;
mod protocol;
mod runtime_options;
mod validation;

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sparks_domain::{DetectedFace, FaceBox, Point, Quality, RejectCode, Rejection, Signature};
use sparks_engine::{FaceEngine, ImageError, ImageInfo, ImageProcessor, Pixels, RenderedImage};
use tokio::net::TcpStream;

use crate::{Model, Options, Server, Service};

const JPEG: [u8; 3] = [0xff, 0xd8, 0xff];

/// Reads the JSON after the magic bytes of a JPEG instead of decoding.
struct JsonImageProcessor;

/// Returns the faces described by the JSON.
struct JsonFaceEngine;

fn content(file: &[u8]) -> Option<Value> {
    serde_json::from_slice(file.strip_prefix(&JPEG)?).ok()
}

impl ImageProcessor for JsonImageProcessor {
    fn inspect(&self, _: &[u8]) -> ImageInfo {
        ImageInfo::default()
    }

    fn dimensions(&self, encoded: &[u8]) -> Option<(u32, u32)> {
        let side = |index: usize| content(encoded)?["size"][index].as_u64()?.try_into().ok();
        Some((side(0)?, side(1)?))
    }

    fn render(&self, _: &[u8]) -> Result<RenderedImage, ImageError> {
        Err(ImageError::Unavailable("not implemented".into()))
    }

    fn decode(&self, encoded: &[u8]) -> Result<Pixels, ImageError> {
        let reject = |code| ImageError::Rejected(Rejection { code, message: "rejected".into() });
        let (width, height) = self.dimensions(encoded).ok_or_else(|| reject(RejectCode::Damaged))?;
        match width {
            10_001.. => Err(reject(RejectCode::TooManyPixels)),
            9_999 => Err(ImageError::Unavailable("decoder unavailable".into())),
            9_998 => panic!("simulated bug"),
            _ => Ok(Pixels { width, height, rgb: encoded[JPEG.len()..].to_vec() }),
        }
    }

    fn crop(&self, _: &Pixels, _: FaceBox) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }

    fn encode_jpeg(&self, _: &Pixels, _: usize) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }
}

impl FaceEngine for JsonFaceEngine {
    fn analyze(&self, pixels: &Pixels) -> Vec<DetectedFace> {
        let content: Value = serde_json::from_slice(&pixels.rgb).unwrap();
        content["faces"].as_array().into_iter().flatten().map(detected_face).collect()
    }
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

fn detected_face(face: &Value) -> DetectedFace {
    let [x, y, width, height] = numbers(&face["box"])[..] else { panic!("a box has four numbers") };
    let number = |name: &str, default: f64| face[name].as_f64().unwrap_or(default) as f32;
    let point = |(dx, dy): (f32, f32)| Point { x: x + dx * width, y: y + dy * height };
    let landmarks = [(0.3, 0.4), (0.7, 0.4), (0.5, 0.6), (0.35, 0.8), (0.65, 0.8)].map(point);
    let quality =
        Quality { size: number("pixels", 90.0), sharpness: number("sharpness", 0.5), turn: Some(number("turn", 0.1)) };
    DetectedFace {
        bounds: FaceBox { x, y, width, height },
        landmarks: landmarks.to_vec(),
        quality,
        confidence: number("confidence", 0.99),
        attributes: serde_json::from_value(face["attributes"].clone()).unwrap_or_default(),
        model: "json".into(),
        signature: face["embedding"].as_array().and_then(|_| Signature::quantise(&numbers(&face["embedding"]))),
    }
}

/// Returns a face of this size and embedding.
fn face(size: f32, embedding: &[f32]) -> Value {
    json!({ "box": [0.1, 0.2, size, size], "embedding": embedding })
}

/// Returns a file with these faces.
fn photo(faces: &[Value]) -> Vec<u8> {
    file(&json!({ "size": [100, 100], "faces": faces }))
}

fn file(content: &Value) -> Vec<u8> {
    [&JPEG[..], content.to_string().as_bytes()].concat()
}

/// Returns the request member of a file.
fn image(file: &[u8]) -> Value {
    json!({ "Bytes": BASE64_STANDARD.encode(file) })
}

fn model() -> Model {
    Model::new("1.0", 0.5).unwrap()
}

fn service() -> Service {
    Service::new(Arc::new(JsonFaceEngine), Arc::new(JsonImageProcessor), model(), Options::default())
}

/// A client with its own server.
struct Client {
    server: Server,
}

impl Client {
    async fn new() -> Self {
        Self::with_service(service()).await
    }

    async fn with_service(service: Service) -> Self {
        Self { server: Server::bind("127.0.0.1:0", Arc::new(service)).await.unwrap() }
    }

    /// Stops the server and waits for its connections to end.
    async fn stop(self) {
        self.server.stop(Duration::from_secs(10)).await;
    }

    fn service(&self) -> &Service {
        self.server.service()
    }

    /// Returns a signed request without a body.
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

    async fn call(&self, operation: &str, input: &Value) -> (StatusCode, Value) {
        let request = Self::request(operation).body(input.to_string().into()).unwrap();
        let (status, _, body) = self.send(request).await;
        (status, body)
    }

    /// Calls an operation that must succeed.
    async fn ok(&self, operation: &str, input: Value) -> Value {
        let (status, body) = self.call(operation, &input).await;
        assert_eq!(status, 200, "{operation} {input}: {body}");
        body
    }

    /// Calls an operation that must fail. Returns the error code and the message.
    async fn error(&self, operation: &str, input: Value) -> (String, String) {
        let (status, body) = self.call(operation, &input).await;
        assert_ne!(status, 200, "{operation} {input}: {body}");
        assert_eq!(body["__type"], body["Code"]);
        (body["__type"].as_str().unwrap().to_owned(), body["Message"].as_str().unwrap().to_owned())
    }

    /// Calls an operation that must fail. Returns the error code.
    async fn error_code(&self, operation: &str, input: Value) -> String {
        self.error(operation, input).await.0
    }

    /// Creates a collection and indexes these photos, each with an external ID. Returns the responses.
    async fn create_collection(&self, collection: &str, photos: &[(&str, &[u8])]) -> Vec<Value> {
        self.ok("CreateCollection", json!({ "CollectionId": collection })).await;
        let mut responses = Vec::new();
        for (external_id, file) in photos {
            let input = json!({ "CollectionId": collection, "ExternalImageId": external_id, "Image": image(file) });
            responses.push(self.ok("IndexFaces", input).await);
        }
        responses
    }
}

/// Returns the external IDs of the matches, in order.
fn external_ids(response: &Value) -> Vec<&str> {
    let matches = response["FaceMatches"].as_array().unwrap();
    matches.iter().map(|found| found["Face"]["ExternalImageId"].as_str().unwrap()).collect()
}
