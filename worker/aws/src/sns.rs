//! Notices through SNS.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_sns::{
    Client,
    types::{MessageAttributeValue, PublishBatchRequestEntry},
};
use sparks_engine::{Notice, PublishError, Publisher, Topic};

use crate::{
    connect::Connection,
    names::{deduplication_id, is_fifo},
    trouble::{Trouble, patiently, pauses},
};

/// What the topics are called. Nobody is told what has no topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topics {
    /// The platform, which waits for pictures.
    pub thumbnail_completed: Option<String>,
    /// Whoever wants to know what the log says.
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

/// As many notices as one request takes, and as many bytes.
const MOST: usize = 10;
const MOST_BYTES: usize = 240 << 10;

impl SnsPublisher {
    /// Publishes to these topics, which are named by their ARNs.
    pub fn new(connection: &Connection, topics: Topics) -> Self {
        Self { client: connection.sns(), topics }
    }

    /// The ARN of a topic, which may be named by it.
    pub async fn arn(connection: &Connection, name: &str) -> Result<String, PublishError> {
        if name.starts_with("arn:") {
            return Ok(name.to_owned());
        }
        let found = find_topic(&connection.sns(), name).await;
        let found = found.map_err(|trouble| PublishError::from(trouble.in_place(&format!("topic {name}"))))?;
        found.ok_or_else(|| PublishError::Unavailable(format!("there is no topic {name}: make it with `sparks setup`")))
    }

    /// Publishes all of them, those that failed again.
    async fn publish_to(&self, arn: &str, mut entries: Vec<PublishBatchRequestEntry>) -> Result<(), PublishError> {
        let mut pauses = pauses();
        while !entries.is_empty() {
            let publish = || {
                self.client
                    .publish_batch()
                    .topic_arn(arn)
                    .set_publish_batch_request_entries(Some(entries.clone()))
                    .send()
            };
            let answer = patiently(publish).await.map_err(|trouble| failed(arn, &trouble))?;
            let refused: BTreeMap<String, _> =
                answer.failed.unwrap_or_default().into_iter().map(|failure| (failure.id.clone(), failure)).collect();
            entries.retain(|entry| refused.contains_key(entry.id()));
            let Some(failure) = refused.into_values().next() else { continue };
            let words = format!("topic {arn}: {}: {}", failure.code, failure.message.unwrap_or_default());
            match pauses.next().filter(|_| !failure.sender_fault) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(Trouble { code: Some(failure.code), status: None, words }.into()),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Publisher for SnsPublisher {
    async fn publish(&self, notices: &[Notice]) -> Result<(), PublishError> {
        for topic in [Topic::ThumbnailCompleted, Topic::Events] {
            let Some(arn) = self.topics.arn(topic) else { continue };
            let mut batches: Vec<(usize, Vec<PublishBatchRequestEntry>)> = Vec::new();
            for (n, notice) in notices.iter().filter(|notice| notice.topic == topic).enumerate() {
                let body = notice.body.to_string();
                let bytes = body.len();
                let entry = entry(n, notice, body, is_fifo(arn))?;
                match batches.last_mut() {
                    Some((size, batch)) if batch.len() < MOST && *size + bytes <= MOST_BYTES => {
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
            patiently(get).await.map_err(|trouble| failed(arn, &trouble))?;
        }
        Ok(())
    }
}

/// The ARN of the topic with this name; nothing where there is none. All topics are looked through: asking by name makes one.
pub(crate) async fn find_topic(client: &Client, name: &str) -> Result<Option<String>, Trouble> {
    let mut token = None::<String>;
    loop {
        let list = || client.list_topics().set_next_token(token.clone()).send();
        let answer = patiently(list).await?;
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

fn entry(n: usize, notice: &Notice, body: String, fifo: bool) -> Result<PublishBatchRequestEntry, PublishError> {
    let built = |error: aws_sdk_sns::error::BuildError| PublishError::Unavailable(error.to_string());
    let event_type = MessageAttributeValue::builder().data_type("String").string_value(&notice.event_type);
    let entry = PublishBatchRequestEntry::builder()
        .id(n.to_string())
        .message(body)
        .message_attributes("eventType", event_type.build().map_err(built)?)
        .set_message_group_id(fifo.then(|| deduplication_id(&notice.group)))
        .set_message_deduplication_id(fifo.then(|| deduplication_id(&notice.deduplication)));
    entry.build().map_err(built)
}

fn failed(arn: &str, trouble: &Trouble) -> PublishError {
    match trouble.is(&["NotFound", "NotFoundException"]) {
        true => PublishError::Unavailable(format!(
            "there is no topic {arn}: make it with `sparks setup`, or leave it out of the settings"
        )),
        false => trouble.in_place(&format!("topic {arn}")).into(),
    }
}
