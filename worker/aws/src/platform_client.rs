//! Uploads to AWS as the photo platform does, for load tests.

use async_trait::async_trait;
use aws_sdk_s3::primitives::ByteStream;
use sparks_domain::{Attributes, Key, object_keys::ORIGINALS};
use sparks_engine::{Content, ObjectsError, PlatformClient, StoreError, object_key};

use crate::{
    bucket_notifications::reaches,
    connect::Connection,
    dynamo::fields,
    retry::with_retry,
    s3::{etag_version, objects_error},
    setup::notifications,
};

/// Uploads into a bucket and a table.
pub struct AwsPlatformClient {
    s3: aws_sdk_s3::Client,
    dynamodb: aws_sdk_dynamodb::Client,
    bucket: String,
    table: String,
    queue: String,
    topic: Option<String>,
}

impl AwsPlatformClient {
    /// Creates a client of this bucket and this table. Event notifications of originals are expected in this queue or
    /// topic, which may be given by ARN.
    pub fn new(connection: &Connection, bucket: &str, table: &str, queue: &str, topic: Option<&str>) -> Self {
        Self {
            s3: connection.s3(),
            dynamodb: connection.dynamodb(),
            bucket: bucket.to_owned(),
            table: table.to_owned(),
            queue: queue.to_owned(),
            topic: topic.map(str::to_owned),
        }
    }
}

#[async_trait]
impl PlatformClient for AwsPlatformClient {
    async fn put_original(&self, key: &str, bytes: Vec<u8>, content: Content) -> Result<String, ObjectsError> {
        object_key(key)?;
        let body = bytes::Bytes::from(bytes);
        let put = || {
            let put = self.s3.put_object().bucket(&self.bucket).key(key).body(ByteStream::from(body.clone()));
            put.content_type(content.content_type).cache_control(content.cache_control).send()
        };
        let stored = with_retry(put).await.map_err(|error| objects_error(key, error))?;
        Ok(etag_version(stored.e_tag.as_deref()))
    }

    async fn create_row(&self, key: &Key, attributes: &Attributes) -> Result<bool, StoreError> {
        let row = fields(key, attributes);
        let put = || {
            let put = self.dynamodb.put_item().table_name(&self.table).set_item(Some(row.clone()));
            put.condition_expression("attribute_not_exists(PK)").send()
        };
        match with_retry(put).await {
            Ok(_) => Ok(true),
            Err(error) if error.has_code(&["ConditionalCheckFailedException"]) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts only notifications of originals that reach the worker's own queue.
    async fn has_upload_notifications(&self) -> Result<bool, ObjectsError> {
        let found = notifications(&self.s3, &self.bucket).await.map_err(|error| objects_error(ORIGINALS, error))?;
        Ok(reaches(&found, ORIGINALS, &self.queue, self.topic.as_deref()))
    }
}
