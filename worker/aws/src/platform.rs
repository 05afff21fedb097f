//! The platform's part in the cloud, step by step.

use async_trait::async_trait;
use aws_sdk_s3::primitives::ByteStream;
use sparks_domain::{Attributes, Key};
use sparks_engine::{Content, ObjectsError, Platform, StoreError, object_key};

use crate::{
    connect::Connection,
    dynamo::fields,
    notified::reaches,
    s3::{failed, version},
    setup::notifications,
    trouble::patiently,
};

/// Uploads into a bucket and a table.
pub struct CloudPlatform {
    s3: aws_sdk_s3::Client,
    dynamodb: aws_sdk_dynamodb::Client,
    bucket: String,
    table: String,
    queue: String,
    topic: Option<String>,
}

/// Where originals are.
const ORIGINALS: &str = "originals/";

impl CloudPlatform {
    /// Works on this bucket and this table. News of originals comes through this queue or this topic, which may be named by
    /// their ARNs.
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
impl Platform for CloudPlatform {
    async fn store(&self, key: &str, bytes: Vec<u8>, content: Content) -> Result<String, ObjectsError> {
        object_key(key)?;
        let body = bytes::Bytes::from(bytes);
        let put = || {
            let put = self.s3.put_object().bucket(&self.bucket).key(key).body(ByteStream::from(body.clone()));
            put.content_type(content.content_type).cache_control(content.cache_control).send()
        };
        let stored = patiently(put).await.map_err(|trouble| failed(key, trouble))?;
        Ok(version(stored.e_tag.as_deref()))
    }

    async fn make_row(&self, key: &Key, attributes: &Attributes) -> Result<bool, StoreError> {
        let row = fields(key, attributes);
        let put = || {
            let put = self.dynamodb.put_item().table_name(&self.table).set_item(Some(row.clone()));
            put.condition_expression("attribute_not_exists(PK)").send()
        };
        match patiently(put).await {
            Ok(_) => Ok(true),
            Err(trouble) if trouble.is(&["ConditionalCheckFailedException"]) => Ok(false),
            Err(trouble) => Err(trouble.into()),
        }
    }

    /// News that goes to others, or is of other objects, brings us no message.
    async fn tells(&self) -> Result<bool, ObjectsError> {
        let found = notifications(&self.s3, &self.bucket).await.map_err(|trouble| failed(ORIGINALS, trouble))?;
        Ok(reaches(&found, ORIGINALS, &self.queue, self.topic.as_deref()))
    }
}
