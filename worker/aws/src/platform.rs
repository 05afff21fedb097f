//! The platform's part in the cloud, step by step.

use async_trait::async_trait;
use aws_sdk_s3::primitives::ByteStream;
use sparks_domain::{Attributes, Key};
use sparks_engine::{Content, ObjectsError, Platform, StoreError, object_key};

use crate::{
    connect::Connection,
    dynamo::fields,
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
}

impl CloudPlatform {
    /// Works on this bucket and this table.
    pub fn new(connection: &Connection, bucket: &str, table: &str) -> Self {
        let (s3, dynamodb) = (connection.s3(), connection.dynamodb());
        Self { s3, dynamodb, bucket: bucket.to_owned(), table: table.to_owned() }
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

    /// Whether anybody at all hears of originals: who that is, only they know.
    async fn tells(&self) -> Result<bool, ObjectsError> {
        let found = notifications(&self.s3, &self.bucket).await.map_err(|trouble| failed("originals/", trouble))?;
        let someone = !found.queue_configurations().is_empty() || !found.topic_configurations().is_empty();
        Ok(someone || found.event_bridge_configuration().is_some())
    }
}
