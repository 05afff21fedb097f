//! The backend in the cloud: DynamoDB for table, log and signatures, S3 for objects, SQS for work, SNS for notices, SSM for
//! secrets, and Rekognition for faces.

mod connect;
mod doctor;
mod dynamo;
mod names;
mod notified;
mod platform;
mod rekognition;
mod s3;
mod setup;
mod sns;
mod sqs;
mod ssm;
mod trouble;

pub use connect::{Access, Connection, Endpoints};
pub use doctor::Doctor;
pub use dynamo::{DynamoStore, Tables};
pub use platform::CloudPlatform;
pub use rekognition::{Rekognition, RekognitionCollection, RekognitionFaces};
pub use s3::S3Objects;
pub use setup::{Done, Estate, Setup, SetupError, Step};
pub use sns::{SnsPublisher, Topics};
pub use sqs::{Queues, SqsQueue, Timing};
pub use ssm::SsmSecrets;
