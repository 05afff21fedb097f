//! The settings as the program reads them; `default.toml` says what each of them means.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Every setting, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where table, log, objects and queue are.
    pub backend: Backend,
    /// Folder of the embedded backend.
    pub data: PathBuf,
    /// Who uploads what `sparks ingest` takes in.
    pub uploader: String,
    /// Photos worked on at once; 0 means one per core.
    pub jobs: usize,
    /// The bucket's name.
    pub bucket: String,
    /// What an upload may demand before it is refused.
    pub limits: Limits,
    /// Where photos are decoded.
    pub darkroom: Darkroom,
    /// The derived images.
    pub variants: Variants,
    /// The portrait of a person.
    pub crop: Crop,
    /// Finding faces and telling who they are.
    pub faces: Faces,
    /// Amazon Rekognition.
    pub rekognition: Rekognition,
    /// Pinecone.
    pub pinecone: Pinecone,
    /// What the tables hold.
    pub table: Table,
    /// Delivery of the work.
    pub queue: Queue,
    /// What others are told.
    pub publish: Publish,
    /// What things cost.
    pub prices: Prices,
    /// The worker that runs for long.
    pub run: Run,
    /// The backend in the cloud.
    pub aws: Aws,
}

/// Where table, log, objects and queue are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// In a folder on this machine.
    Embedded,
    /// In the cloud.
    Aws,
}

/// The backend in the cloud. What is empty is not there, or comes from the environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aws {
    /// The region.
    pub region: String,
    /// Where all services are.
    pub endpoint: String,
    /// The platform's table.
    pub table: String,
    /// The log's table.
    pub log_table: String,
    /// The signatures' table.
    pub faces_table: String,
    /// How many lanes a new log has for photos.
    pub lanes: u32,
    /// The queue of work.
    pub queue: String,
    /// The queue in which copies wait, beside a FIFO queue.
    pub waiting_queue: String,
    /// The queue of dead letters.
    pub dead_letter_queue: String,
    /// How long to wait for a message, in seconds.
    pub poll_seconds: u64,
    /// The topic through which the bucket tells of its objects.
    pub uploads_topic: String,
    /// The topic of `thumbnail-completed`.
    pub thumbnails_topic: String,
    /// The topic of what the log says.
    pub events_topic: String,
    /// The object that says which faces persons are known by.
    pub gallery_snapshot: String,
    /// Where single services are.
    pub endpoints: AwsEndpoints,
}

/// Where single services are.
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

/// What an upload may demand before it is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Largest upload in bytes.
    pub max_bytes: u64,
    /// Most pixels an image may declare, in millions.
    pub max_megapixels: u32,
    /// Longest side an image may declare, in pixels.
    pub max_side: u32,
    /// Most bytes of metadata read from one upload.
    pub max_metadata_bytes: u64,
    /// Most frames of an animation.
    pub max_frames: u32,
    /// Most passes over the picture of one JPEG.
    pub max_scans: u32,
    /// Most memory that one photo may need at once, in MiB.
    pub max_memory_mb: u64,
    /// Most seconds of computing that decoding one photo may take.
    pub max_seconds: u64,
}

/// Where photos are decoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Darkroom {
    /// Whether in processes of their own.
    pub isolate: bool,
}

/// The derived images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variants {
    /// The one shown at full size.
    pub large: Variant,
    /// The one shown in lists.
    pub medium: Variant,
}

/// One derived WebP image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// How the photo meets the box.
    pub fit: Fit,
    /// Width of the box in pixels.
    pub width: u32,
    /// Height of the box in pixels.
    pub height: u32,
    /// WebP quality, 0 to 100.
    pub quality: f64,
    /// WebP effort, 0 to 6.
    pub method: u8,
    /// Whether colour is stored so that it is sharp when a viewer has enlarged it.
    pub sharp_yuv: bool,
}

/// How a photo meets the box of its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// All of the photo within the box.
    Inside,
    /// The whole box filled, what stands over cut.
    Cover,
}

/// The portrait of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crop {
    /// Share of the face box added on each side.
    pub padding: f64,
    /// Longest side in pixels.
    pub side: u32,
    /// JPEG quality, 1 to 100.
    pub quality: u8,
}

/// Finding faces and telling who they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faces {
    /// What finds the faces.
    pub analyzer: Analyzer,
    /// What knows who is who.
    pub index: Index,
    /// What says what faces look like that a service finds.
    pub companion: Companion,
    /// For how many seconds somebody may be too new for a service.
    pub recent_seconds: u64,
    /// The models of the local engine.
    pub models: Vec<FaceModel>,
    /// Whether the local engine also looks at each face in the mirror.
    pub mirror: bool,
    /// Whether the local engine guesses age, gender and emotion.
    pub attributes: bool,
    /// Similarity from which two faces are one person; 0 is the model's own.
    pub threshold: f64,
    /// What happens to persons that later faces show to be one.
    pub consolidation: Consolidation,
    /// How many candidates an event keeps per face.
    pub candidates: usize,
    /// What a face needs to found a person.
    pub founding: Founding,
}

/// What finds the faces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Analyzer {
    /// Nothing; no photo has faces.
    Off,
    /// Faces made up, without a model.
    Synthetic,
    /// A model on this machine.
    Local,
    /// Amazon Rekognition.
    Rekognition,
}

/// What knows who is who.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// Whatever goes with what finds the faces.
    Auto,
    /// The worker's own memory.
    Gallery,
    /// A collection of Rekognition.
    Rekognition,
    /// A Pinecone index.
    Pinecone,
}

/// What says what faces look like that a service finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Companion {
    /// A model on this machine.
    Local,
    /// Faces made up, without a model.
    Synthetic,
    /// Nothing: the service is asked.
    Off,
}

/// Amazon Rekognition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rekognition {
    /// The collection.
    pub collection: String,
    /// Calls a second of each operation at most.
    pub calls_per_second: f64,
}

/// A Pinecone index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinecone {
    /// The index's host.
    pub host: String,
    /// The SSM parameter with the key.
    pub key_parameter: String,
    /// What the names of namespaces begin with.
    pub namespace: String,
}

/// A model of the local engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaceModel {
    /// dlib's ResNet: CC0.
    Dlib,
    /// MobileFaceNet: MIT.
    Mobilefacenet,
}

/// What happens to persons that later faces show to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consolidation {
    /// A folder that is taken in joins them; a worker that runs for long suggests it.
    Auto,
    /// They are joined.
    Join,
    /// They are suggested.
    Suggest,
}

/// What a face needs to found a person; one below may still match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Founding {
    /// Size of the face box in pixels on the large variant.
    pub min_size: u32,
    /// Sharpness, 0 to 1.
    pub min_sharpness: f64,
    /// Confidence that it is a face at all, 0 to 1.
    pub min_confidence: f64,
    /// How far it may look away, 0 to 1.
    pub max_turn: f64,
}

/// What the tables hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Which object `TAGGING.s3Key` names.
    pub tagging_s3_key: TaggingKey,
}

/// Which object `TAGGING.s3Key` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaggingKey {
    /// The large variant.
    Large,
    /// The upload as it came.
    Original,
}

/// Delivery of the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Seconds a received message stays hidden from other workers.
    pub visibility_seconds: u64,
    /// Failed attempts before a dead letter.
    pub max_receives: u32,
    /// Receives without any settlement before a dead letter.
    pub max_deaths: u32,
    /// Seconds a message waits for what somebody else has yet to make.
    pub wait_seconds: u64,
}

/// What others are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// That a photo's pictures are made.
    pub thumbnails: bool,
    /// What the log says.
    pub events: bool,
}

/// What things cost, in USD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// A call of Rekognition that looks at a picture.
    pub rekognition_call: f64,
    /// A face in a collection of Rekognition, a month.
    pub rekognition_face_month: f64,
    /// A million read units of Pinecone.
    pub pinecone_million_reads: f64,
    /// Read units of one question to Pinecone.
    pub pinecone_reads_per_query: f64,
    /// A million write units of Pinecone.
    pub pinecone_million_writes: f64,
    /// Write units of one face that Pinecone learns.
    pub pinecone_writes_per_upsert: f64,
    /// A GB in Pinecone, a month.
    pub pinecone_gb_month: f64,
    /// An hour of one core.
    pub cpu_hour: f64,
    /// Seconds that the local engine looks for faces in a photo.
    pub cpu_seconds_per_photo: f64,
    /// Seconds that the local engine takes for each face.
    pub cpu_seconds_per_face: f64,
}

/// The worker that runs for long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Address of the health checks.
    pub listen: String,
    /// Seconds for work in hand to end.
    pub grace_seconds: u64,
    /// Whether the inbox is watched.
    pub inbox: bool,
}
