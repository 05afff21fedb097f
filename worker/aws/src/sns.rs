//! The publisher on SNS.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_sns::{
    Client,
    types::{MessageAttributeValue, PublishBatchRequestEntry},
};
use serde_json::Value;
use sparks_engine::{DependencyError, Notification, PublishError, Publisher, Topic};

use crate::{
    connect::Connection,
    error::AwsError,
    names::{deduplication_id, is_fifo},
    retry::{backoff, with_retry},
};

/// The ARNs of the topics. Notifications without a topic are not published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topics {
    /// The topic of completed thumbnails, which the platform subscribes to.
    pub thumbnail_completed: Option<String>,
    /// The topic of all events of the log.
    pub events: Option<String>,
}

impl Topics {
    fn arn(&self, topic: Topic) -> Option<&str> {
        match topic {
            Topic::ThumbnailCompleted => self.thumbnail_completed.as_deref(),
            Topic::Events => self.events.as_deref(),
        }
    }
}

/// Publishes to topics, standard and FIFO.
pub struct SnsPublisher {
    client: Client,
    topics: Topics,
}

/// Entries of a `PublishBatch` request, as SNS limits them.
const MAX_ENTRIES: usize = 10;
/// Bytes of all messages of a request: SNS takes 256 KiB, attributes included.
const MAX_BYTES: usize = 240 << 10;

impl SnsPublisher {
    /// Creates a publisher to these topics.
    pub fn new(connection: &Connection, topics: Topics) -> Self {
        Self { client: connection.sns(), topics }
    }

    /// Returns the ARN of a topic that is given by name or ARN.
    pub async fn arn(connection: &Connection, name: &str) -> Result<String, PublishError> {
        if name.starts_with("arn:") {
            return Ok(name.to_owned());
        }
        let found = find_topic(&connection.sns(), name).await;
        let found = found.map_err(|error| PublishError::from(error.with_context(&format!("topic {name}"))))?;
        found.ok_or_else(|| {
            let message = format!("topic {name} does not exist; create it with `sparks setup`");
            PublishError::Dependency(DependencyError::Unavailable(message))
        })
    }

    /// Publishes all entries. Failed entries of a batch are retried with backoff.
    async fn publish_to(&self, arn: &str, mut entries: Vec<PublishBatchRequestEntry>) -> Result<(), PublishError> {
        let mut backoff = backoff();
        while !entries.is_empty() {
            let publish = || {
                self.client
                    .publish_batch()
                    .topic_arn(arn)
                    .set_publish_batch_request_entries(Some(entries.clone()))
                    .send()
            };
            let answer = with_retry(publish).await.map_err(|error| publish_error(arn, &error))?;
            let rejected: BTreeMap<String, _> =
                answer.failed.unwrap_or_default().into_iter().map(|failure| (failure.id.clone(), failure)).collect();
            entries.retain(|entry| rejected.contains_key(entry.id()));
            let Some(failure) = rejected.into_values().next() else { continue };
            let message = format!("{}: {}", failure.code, failure.message.unwrap_or_default());
            let error = AwsError::new("SNS", "PublishBatch", Some(failure.code), message);
            match backoff.next().filter(|_| !failure.sender_fault || error.is_throttled()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error.with_context(&format!("topic {arn}")).into()),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Publisher for SnsPublisher {
    async fn publish(&self, notices: &[Notification]) -> Result<(), PublishError> {
        for topic in [Topic::ThumbnailCompleted, Topic::Events] {
            let Some(arn) = self.topics.arn(topic) else { continue };
            let mut batches: Vec<(usize, Vec<PublishBatchRequestEntry>)> = Vec::new();
            for (n, notice) in notices.iter().filter(|notice| notice.topic == topic).enumerate() {
                let body = message_text(&notice.body);
                let bytes = body.len();
                let entry = entry(n, notice, body, is_fifo(arn))?;
                match batches.last_mut() {
                    Some((size, batch)) if batch.len() < MAX_ENTRIES && *size + bytes <= MAX_BYTES => {
                        *size += bytes;
                        batch.push(entry);
                    }
                    _ => batches.push((bytes, vec![entry])),
                }
            }
            for (_, batch) in batches {
                self.publish_to(arn, batch).await?;
            }
        }
        Ok(())
    }

    async fn check(&self) -> Result<(), PublishError> {
        for arn in [&self.topics.thumbnail_completed, &self.topics.events].into_iter().flatten() {
            let get = || self.client.get_topic_attributes().topic_arn(arn).send();
            with_retry(get).await.map_err(|error| publish_error(arn, &error))?;
        }
        Ok(())
    }
}

/// Returns the ARN of the topic with this name, if it exists. Lists all topics: `CreateTopic`, the call that takes a name,
/// would create it.
pub(crate) async fn find_topic(client: &Client, name: &str) -> Result<Option<String>, AwsError> {
    let mut token = None::<String>;
    loop {
        let list = || client.list_topics().set_next_token(token.clone()).send();
        let answer = with_retry(list).await?;
        let mut arns = answer.topics.unwrap_or_default().into_iter().filter_map(|topic| topic.topic_arn);
        if let Some(arn) = arns.find(|arn| arn.rsplit(':').next() == Some(name)) {
            return Ok(Some(arn));
        }
        token = answer.next_token;
        if token.is_none() {
            return Ok(None);
        }
    }
}

/// Returns the message of a notification. An event that SNS would refuse as too large goes without its faces: otherwise the
/// message of the photo, which is committed, would become a dead letter.
fn message_text(body: &Value) -> String {
    let text = body.to_string();
    if text.len() <= MAX_BYTES {
        return text;
    }
    let mut body = body.clone();
    if let Some(data) = body.get_mut("data").and_then(Value::as_object_mut) {
        data.remove("faces");
        data.insert("facesOmitted".to_owned(), true.into());
    }
    tracing::warn!(service = "SNS", bytes = text.len(), "event too large to publish: its faces are left out");
    body.to_string()
}

fn entry(n: usize, notice: &Notification, body: String, fifo: bool) -> Result<PublishBatchRequestEntry, PublishError> {
    let invalid = |error: aws_sdk_sns::error::BuildError| PublishError::from(AwsError::invalid_request(error));
    let event_type = MessageAttributeValue::builder().data_type("String").string_value(&notice.event_type);
    let entry = PublishBatchRequestEntry::builder()
        .id(n.to_string())
        .message(body)
        .message_attributes("eventType", event_type.build().map_err(invalid)?)
        .set_message_group_id(fifo.then(|| deduplication_id(&notice.group)))
        .set_message_deduplication_id(fifo.then(|| deduplication_id(&notice.deduplication)));
    entry.build().map_err(invalid)
}

fn publish_error(arn: &str, error: &AwsError) -> PublishError {
    match error.has_code(&["NotFound", "NotFoundException"]) {
        true => PublishError::Dependency(DependencyError::Unavailable(format!(
            "topic {arn} does not exist; create it with `sparks setup`, or remove it from the settings"
        ))),
        false => error.with_context(&format!("topic {arn}")).into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_faces_of_a_too_large_event_are_left_out() {
        let face = json!({ "verdict": { "matched": "person1" } });
        let body =
            |faces: usize| json!({ "eventId": "e", "data": { "image_id": "i", "faces": vec![face.clone(); faces] } });
        assert_eq!(message_text(&body(100)), body(100).to_string());
        let expected = json!({ "eventId": "e", "data": { "image_id": "i", "facesOmitted": true } });
        assert_eq!(serde_json::from_str::<Value>(&message_text(&body(10_000))).expect("JSON"), expected);
    }
}
