//! The backend in the cloud: DynamoDB for table, log and signatures, S3 for objects, SQS for work, SNS for notices, and SSM
//! for secrets.

mod connect;
mod dynamo;
mod setup;
mod trouble;

pub use connect::{Access, Connection, Endpoints};
pub use dynamo::{DynamoStore, Tables};
pub use setup::{Done, Setup, SetupError, Step};
