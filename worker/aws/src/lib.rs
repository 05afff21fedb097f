//! The AWS backend: DynamoDB stores table, event log and signatures, S3 objects, SQS messages; SNS publishes notifications,
//! SSM holds secrets, Rekognition finds and matches faces.

mod bucket_notifications;
mod connect;
mod doctor;
mod dynamo;
mod error;
mod names;
mod platform_client;
mod rekognition;
mod resource_policy;
mod retry;
mod s3;
mod setup;
mod sns;
mod sqs;
mod ssm;

pub use connect::{AwsConfig, Connection, Endpoints};
pub use doctor::Doctor;
pub use dynamo::{DynamoStore, Tables};
pub use platform_client::AwsPlatformClient;
pub use rekognition::{Rekognition, RekognitionAnalyzer, RekognitionCollection};
pub use s3::S3Objects;
pub use setup::{CloudResources, ResourceReport, ResourceStatus, Setup, SetupError};
pub use sns::{SnsPublisher, Topics};
pub use sqs::{QueueUrls, SqsQueue, Timing};
pub use ssm::SsmSecrets;
