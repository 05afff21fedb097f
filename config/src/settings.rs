//! The settings as typed structs. `default.toml` documents each of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// All settings, validated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Storage backend.
    pub backend: Backend,
    /// Data folder of the embedded backend.
    pub data: PathBuf,
    /// Owner of the photos that `sparks ingest` uploads.
    pub uploader: String,
    /// Number of photos processed concurrently; 0 means one per core.
    pub jobs: usize,
    /// Name of the bucket.
    pub bucket: String,
    /// Limits on uploads.
    pub limits: Limits,
    /// Decoding of untrusted image files.
    pub decoder: Decoder,
    /// WebP variants of a photo.
    pub variants: Variants,
    /// The portrait of a person.
    pub crop: Crop,
    /// Face detection and identification.
    pub faces: Faces,
    /// Amazon Rekognition.
    pub rekognition: Rekognition,
    /// Pinecone.
    pub pinecone: Pinecone,
    /// Contents of the platform's table.
    pub table: Table,
    /// Delivery and retry of messages.
    pub queue: Queue,
    /// Event notifications.
    pub publish: Publish,
    /// Prices for `sparks cost`.
    pub prices: Prices,
    /// The worker.
    pub run: Run,
    /// The AWS backend.
    pub aws: Aws,
}

/// Storage backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// SQLite and files in a local folder.
    Embedded,
    /// DynamoDB, S3, SQS and SNS.
    Aws,
}

/// The AWS backend. An empty string means absent, or the default of the environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aws {
    /// AWS region.
    pub region: String,
    /// Endpoint URL of all services.
    pub endpoint: String,
    /// Name of the platform's table.
    pub table: String,
    /// Name of the table of the event log.
    pub log_table: String,
    /// Name of the table of face embeddings.
    pub faces_table: String,
    /// Number of photo lanes of a new event log.
    pub lanes: u32,
    /// Name or URL of the work queue.
    pub queue: String,
    /// Name or URL of the standard queue for delayed messages beside a FIFO work queue.
    pub waiting_queue: String,
    /// Name or URL of the dead-letter queue.
    pub dead_letter_queue: String,
    /// Duration of long polling in seconds.
    pub poll_seconds: u64,
    /// Name or ARN of the topic for the bucket's object-created notifications.
    pub uploads_topic: String,
    /// Name or ARN of the topic for `thumbnail-completed`.
    pub thumbnails_topic: String,
    /// Name or ARN of the topic for the events of the event log.
    pub events_topic: String,
    /// Object key of the gallery snapshot.
    pub gallery_snapshot: String,
    /// Endpoint URLs of single services.
    pub endpoints: AwsEndpoints,
}

/// Endpoint URLs of single services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwsEndpoints {
    /// DynamoDB.
    pub dynamodb: String,
    /// S3.
    pub s3: String,
    /// SQS.
    pub sqs: String,
    /// SNS.
    pub sns: String,
    /// Rekognition.
    pub rekognition: String,
    /// SSM.
    pub ssm: String,
    /// STS.
    pub sts: String,
}

/// Limits on uploads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Maximum size of a file in bytes.
    pub max_bytes: u64,
    /// Maximum number of pixels, in millions.
    pub max_megapixels: u32,
    /// Maximum width or height in pixels.
    pub max_side: u32,
    /// Maximum size of metadata in bytes.
    pub max_metadata_bytes: u64,
    /// Maximum number of frames of an animation.
    pub max_frames: u32,
    /// Maximum number of scans of a JPEG.
    pub max_scans: u32,
    /// Maximum memory for processing one photo in MiB.
    pub max_memory_mib: u64,
    /// Maximum CPU time for decoding one photo in seconds.
    pub max_cpu_seconds: u64,
}

/// Decoding of untrusted image files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decoder {
    /// Whether images are decoded in child processes.
    pub isolate: bool,
}

/// WebP variants of a photo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variants {
    /// Variant for full-size display.
    pub large: Variant,
    /// Variant for lists.
    pub medium: Variant,
}

/// A WebP variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// How the photo is fitted into the box.
    pub fit: Fit,
    /// Width of the box in pixels.
    pub width: u32,
    /// Height of the box in pixels.
    pub height: u32,
    /// WebP quality, 0 to 100.
    pub quality: f64,
    /// WebP compression effort, 0 to 6.
    pub method: u8,
    /// Whether chroma is sharpened to compensate for subsampling.
    pub sharp_yuv: bool,
}

/// How a photo is fitted into the box of its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Scaled to fit completely within the box.
    Inside,
    /// Scaled to fill the box, the rest cropped.
    Cover,
}

/// The portrait of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crop {
    /// Margin added on each side, as a fraction of the face box.
    pub padding: f64,
    /// Maximum width or height in pixels.
    pub side: u32,
    /// JPEG quality, 1 to 100.
    pub quality: u8,
}

/// Face detection and identification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faces {
    /// The analyzer that detects faces.
    pub analyzer: Analyzer,
    /// The index that finds the nearest known persons.
    pub index: Index,
    /// The analyzer that computes embeddings for the faces that Rekognition detects.
    pub secondary_analyzer: SecondaryAnalyzer,
    /// Seconds after enrollment during which a face may not be searchable yet.
    pub recent_seconds: u64,
    /// Embedding models of the local engine; none selects those that persons were enrolled with, or else the most accurate.
    pub models: Vec<FaceModel>,
    /// Whether the local engine also embeds the mirror image of each face.
    pub mirror: bool,
    /// Whether the local engine estimates age, gender and emotion.
    pub attributes: bool,
    /// Minimum similarity for two faces to match; 0 means that of the model.
    pub threshold: f64,
    /// What to do with persons that later photos show to be the same.
    pub consolidation: Consolidation,
    /// Maximum number of candidates stored per face in the event.
    pub candidates: usize,
    /// Minimum quality of a face to create a new person.
    pub new_person: NewPerson,
}

/// Face analyzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Analyzer {
    /// No face detection.
    Off,
    /// Reads the markers of synthetic photos.
    Synthetic,
    /// The built-in engine.
    Local,
    /// Amazon Rekognition.
    Rekognition,
}

/// Face index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// Depends on the analyzer.
    Auto,
    /// The worker's memory.
    Gallery,
    /// A Rekognition collection.
    Rekognition,
    /// A Pinecone index.
    Pinecone,
}

/// Analyzer that computes embeddings for the faces that Rekognition detects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondaryAnalyzer {
    /// The built-in engine.
    Local,
    /// Reads the markers of synthetic photos.
    Synthetic,
    /// None; `CompareFaces` is called instead.
    Off,
}

/// Amazon Rekognition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rekognition {
    /// Collection ID.
    pub collection: String,
    /// Maximum number of calls per second and operation.
    pub calls_per_second: f64,
}

/// Pinecone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinecone {
    /// Host of the index.
    pub host: String,
    /// SSM parameter that holds the API key.
    pub key_parameter: String,
    /// Prefix of the namespaces.
    pub namespace: String,
}

/// Embedding model of the local engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaceModel {
    /// SFace of the OpenCV Zoo: Apache-2.0.
    Sface,
    /// dlib's ResNet: CC0.
    Dlib,
    /// MobileFaceNet: MIT.
    Mobilefacenet,
}

/// What to do with persons that later photos show to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consolidation {
    /// `sparks ingest` merges them; `sparks run` only suggests merges.
    Auto,
    /// Merge them.
    Join,
    /// Suggest merges.
    Suggest,
}

/// Minimum quality of a face to create a new person. A face of lower quality can still match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPerson {
    /// Minimum size of the face box on the large variant in pixels.
    pub min_size_px: u32,
    /// Minimum sharpness, 0 to 1.
    pub min_sharpness: f64,
    /// Minimum confidence of the face detection, 0 to 1.
    pub min_confidence: f64,
    /// Maximum head rotation, 0 (frontal) to 1 (profile).
    pub max_turn: f64,
}

/// Contents of the platform's table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Object that `TAGGING.s3Key` refers to.
    pub tagging_s3_key: TaggingKey,
}

/// Object that `TAGGING.s3Key` refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaggingKey {
    /// The large variant.
    Large,
    /// The uploaded file.
    Original,
}

/// Delivery and retry of messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Visibility timeout of a received message in seconds.
    pub visibility_timeout_seconds: u64,
    /// Number of failed attempts after which a message is dead-lettered.
    pub max_attempts: u32,
    /// Number of receives without acknowledgement or failure after which a message is dead-lettered.
    pub max_crashes: u32,
    /// Seconds a message waits for a missing prerequisite before it is dead-lettered.
    pub prerequisite_timeout_seconds: u64,
    /// Days after which a dead letter in a data folder is deleted; 0 means never.
    pub dead_letter_retention_days: u64,
}

/// Event notifications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// Whether `thumbnail-completed` is published.
    pub thumbnails: bool,
    /// Whether the events of the event log are published.
    pub events: bool,
    /// Size in MiB from which the file of notifications is replaced; 0 means without limit.
    pub max_file_mib: u64,
    /// Days after which a notification in a data folder may be removed; 0 means never.
    pub retention_days: u64,
}

/// Prices in USD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Price of a Rekognition call that analyzes an image.
    pub rekognition_call: f64,
    /// Price of storing one face in a Rekognition collection for a month.
    pub rekognition_face_month: f64,
    /// Price of a million Pinecone read units.
    pub pinecone_million_reads: f64,
    /// Read units per Pinecone query.
    pub pinecone_reads_per_query: f64,
    /// Price of a million Pinecone write units.
    pub pinecone_million_writes: f64,
    /// Write units per face upserted into Pinecone.
    pub pinecone_writes_per_upsert: f64,
    /// Price of storing one GB in Pinecone for a month.
    pub pinecone_gb_month: f64,
    /// Price of one CPU core for an hour.
    pub cpu_hour: f64,
    /// CPU time in seconds per photo for face detection.
    pub cpu_seconds_per_photo: f64,
    /// CPU time in seconds per detected face.
    pub cpu_seconds_per_face: f64,
}

/// The worker, `sparks run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Address of the health and metrics endpoints.
    pub listen: String,
    /// Seconds to finish messages in flight after a termination signal.
    pub grace_seconds: u64,
    /// Whether the inbox folder is watched.
    pub inbox: bool,
}
