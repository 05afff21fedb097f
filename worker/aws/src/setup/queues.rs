//! Queues and their attributes.

use std::collections::HashMap;

use aws_sdk_sqs::{Client, types::QueueAttributeName};
use serde_json::json;

use crate::{error::AwsError, names::is_fifo, retry::with_retry, sqs::QUEUE_MISSING_CODES};

/// The name and attributes of a queue.
pub(crate) struct QueueSpec {
    pub name: String,
    pub attributes: HashMap<QueueAttributeName, String>,
}

/// The longest retention period that SQS supports: 14 days.
pub(crate) const MAX_RETENTION_SECONDS: &str = "1209600";

impl QueueSpec {
    /// Creates the specification of a queue, FIFO if its name says so.
    pub fn new(name: &str) -> Self {
        let fifo = is_fifo(name).then(|| (QueueAttributeName::FifoQueue, "true".to_owned()));
        Self { name: name.to_owned(), attributes: fifo.into_iter().collect() }
    }

    /// Sets the visibility timeout.
    pub fn with_visibility_timeout(mut self, seconds: u64) -> Self {
        self.attributes.insert(QueueAttributeName::VisibilityTimeout, seconds.to_string());
        self
    }

    /// Keeps messages as long as SQS supports.
    pub fn with_max_retention(mut self) -> Self {
        self.attributes.insert(QueueAttributeName::MessageRetentionPeriod, MAX_RETENTION_SECONDS.to_owned());
        self
    }

    /// Makes a FIFO queue deduplicate messages by content. EventBridge sends no deduplication ID, and SQS rejects such messages
    /// otherwise.
    pub fn with_content_deduplication(mut self) -> Self {
        if is_fifo(&self.name) {
            self.attributes.insert(QueueAttributeName::ContentBasedDeduplication, "true".to_owned());
        }
        self
    }

    /// Sets a redrive policy: SQS moves a message to the dead-letter queue after this many receives.
    pub fn with_redrive(mut self, dead: &str, receives: u32) -> Self {
        let policy = json!({ "deadLetterTargetArn": dead, "maxReceiveCount": receives });
        self.attributes.insert(QueueAttributeName::RedrivePolicy, policy.to_string());
        self
    }
}

/// Returns URL and ARN of a queue that is given by name or URL, if it exists.
pub(crate) async fn find(client: &Client, name: &str) -> Result<Option<(String, String)>, AwsError> {
    let url = match name.contains("://") {
        true => Ok(name.to_owned()),
        false => with_retry(|| client.get_queue_url().queue_name(name).send())
            .await
            .map(|answer| answer.queue_url.unwrap_or_default()),
    };
    let found = match url {
        Ok(url) => {
            attribute(client, &url, QueueAttributeName::QueueArn).await.map(|arn| (url, arn.unwrap_or_default()))
        }
        Err(error) => Err(error),
    };
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.has_code(&QUEUE_MISSING_CODES) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates the queue. Returns its URL and ARN.
pub(crate) async fn create(client: &Client, spec: &QueueSpec) -> Result<(String, String), AwsError> {
    let name = spec.name.rsplit('/').next().unwrap_or(&spec.name);
    let create = client.create_queue().queue_name(name).set_attributes(Some(spec.attributes.clone()));
    let url = with_retry(|| create.clone().send()).await?.queue_url.unwrap_or_default();
    let arn = attribute(client, &url, QueueAttributeName::QueueArn).await?.unwrap_or_default();
    Ok((url, arn))
}

/// Returns an attribute of the queue.
pub(crate) async fn attribute(
    client: &Client,
    url: &str,
    name: QueueAttributeName,
) -> Result<Option<String>, AwsError> {
    let get = || client.get_queue_attributes().queue_url(url).attribute_names(name.clone()).send();
    Ok(with_retry(get).await?.attributes.unwrap_or_default().remove(&name).filter(|value| !value.is_empty()))
}

/// Sets an attribute of the queue.
pub(crate) async fn set_attribute(
    client: &Client,
    url: &str,
    name: QueueAttributeName,
    value: &str,
) -> Result<(), AwsError> {
    let set = || client.set_queue_attributes().queue_url(url).attributes(name.clone(), value).send();
    with_retry(set).await?;
    Ok(())
}
