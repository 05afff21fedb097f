//! Queues, their dead letters, topics, and who hears what.

use std::collections::HashMap;

use aws_sdk_sns::Client as Sns;
use aws_sdk_sqs::{Client as Sqs, types::QueueAttributeName};
use serde_json::{Value, json};

use crate::{
    names::is_fifo,
    trouble::{Trouble, patiently},
};

/// A queue to be.
pub(crate) struct Wish {
    pub name: String,
    pub attributes: HashMap<QueueAttributeName, String>,
}

/// How long dead letters are kept: as long as can be.
pub(crate) const FOURTEEN_DAYS: &str = "1209600";

impl Wish {
    /// A queue of this kind.
    pub fn new(name: &str) -> Self {
        let fifo = is_fifo(name).then(|| (QueueAttributeName::FifoQueue, "true".to_owned()));
        Self { name: name.to_owned(), attributes: fifo.into_iter().collect() }
    }

    /// A lease lasts so many seconds.
    pub fn with_visibility(mut self, seconds: u64) -> Self {
        self.attributes.insert(QueueAttributeName::VisibilityTimeout, seconds.to_string());
        self
    }

    /// Messages are kept as long as can be.
    pub fn kept_long(mut self) -> Self {
        self.attributes.insert(QueueAttributeName::MessageRetentionPeriod, FOURTEEN_DAYS.to_owned());
        self
    }

    /// A FIFO queue knows repeats by what they say, where nobody gives them a name: EventBridge does not, and would be refused.
    pub fn knowing_repeats(mut self) -> Self {
        if is_fifo(&self.name) {
            self.attributes.insert(QueueAttributeName::ContentBasedDeduplication, "true".to_owned());
        }
        self
    }

    /// What is received so often, and never settled, goes there.
    pub fn with_redrive(mut self, dead: &str, receives: u32) -> Self {
        let policy = json!({ "deadLetterTargetArn": dead, "maxReceiveCount": receives });
        self.attributes.insert(QueueAttributeName::RedrivePolicy, policy.to_string());
        self
    }
}

/// The queue's URL and ARN, by its name or URL; nothing where there is none.
pub(crate) async fn find(client: &Sqs, name: &str) -> Result<Option<(String, String)>, Trouble> {
    let url = match name.contains("://") {
        true => Ok(name.to_owned()),
        false => patiently(|| client.get_queue_url().queue_name(name).send())
            .await
            .map(|answer| answer.queue_url.unwrap_or_default()),
    };
    let found = match url {
        Ok(url) => {
            attribute(client, &url, QueueAttributeName::QueueArn).await.map(|arn| (url, arn.unwrap_or_default()))
        }
        Err(trouble) => Err(trouble),
    };
    match found {
        Ok(found) => Ok(Some(found)),
        Err(trouble) if trouble.is(&["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"]) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

/// Makes the queue. Says its URL and ARN.
pub(crate) async fn create(client: &Sqs, wish: &Wish) -> Result<(String, String), Trouble> {
    let name = wish.name.rsplit('/').next().unwrap_or(&wish.name);
    let create = client.create_queue().queue_name(name).set_attributes(Some(wish.attributes.clone()));
    let url = patiently(|| create.clone().send()).await?.queue_url.unwrap_or_default();
    let arn = attribute(client, &url, QueueAttributeName::QueueArn).await?.unwrap_or_default();
    Ok((url, arn))
}

/// An attribute of a queue.
pub(crate) async fn attribute(client: &Sqs, url: &str, name: QueueAttributeName) -> Result<Option<String>, Trouble> {
    let get = || client.get_queue_attributes().queue_url(url).attribute_names(name.clone()).send();
    Ok(patiently(get).await?.attributes.unwrap_or_default().remove(&name).filter(|value| !value.is_empty()))
}

/// Gives the queue an attribute.
pub(crate) async fn set_attribute(
    client: &Sqs,
    url: &str,
    name: QueueAttributeName,
    value: &str,
) -> Result<(), Trouble> {
    let set = || client.set_queue_attributes().queue_url(url).attributes(name.clone(), value).send();
    patiently(set).await?;
    Ok(())
}

/// Who may do this to a queue or topic: who was allowed before, and this source as well. Nothing where it may already.
pub(crate) fn allowing(
    policy: Option<&str>,
    action: &str,
    resource: &str,
    service: &str,
    source: &str,
) -> Option<String> {
    let mut policy: Value = policy
        .and_then(|policy| serde_json::from_str(policy).ok())
        .unwrap_or_else(|| json!({ "Version": "2012-10-17", "Statement": [] }));
    let statement = json!({
        "Effect": "Allow",
        "Principal": { "Service": service },
        "Action": action,
        "Resource": resource,
        "Condition": { "ArnLike": { "aws:SourceArn": source } },
    });
    let statements = policy.as_object_mut()?.entry("Statement").or_insert_with(|| json!([]));
    // A single one may stand without a list around it.
    if statements.is_object() {
        *statements = json!([statements.take()]);
    }
    let statements = statements.as_array_mut()?;
    if statements.contains(&statement) {
        return None;
    }
    statements.push(statement);
    Some(policy.to_string())
}

/// Makes the topic. Says its ARN.
pub(crate) async fn create_topic(client: &Sns, name: &str) -> Result<String, Trouble> {
    let create = client.create_topic().name(name);
    let create = if is_fifo(name) { create.attributes("FifoTopic", "true") } else { create };
    Ok(patiently(|| create.clone().send()).await?.topic_arn.unwrap_or_default())
}

/// Who may do what with the topic.
pub(crate) async fn topic_policy(client: &Sns, topic: &str) -> Result<Option<String>, Trouble> {
    let get = || client.get_topic_attributes().topic_arn(topic).send();
    Ok(patiently(get).await?.attributes.unwrap_or_default().remove("Policy").filter(|policy| !policy.is_empty()))
}

/// From now on they may do this with the topic.
pub(crate) async fn set_topic_policy(client: &Sns, topic: &str, policy: &str) -> Result<(), Trouble> {
    let set = client.set_topic_attributes().topic_arn(topic).attribute_name("Policy").attribute_value(policy);
    patiently(|| set.clone().send()).await?;
    Ok(())
}

/// Whether the queue hears the topic.
pub(crate) async fn is_subscribed(client: &Sns, topic: &str, queue: &str) -> Result<bool, Trouble> {
    let mut token = None::<String>;
    loop {
        let list = || client.list_subscriptions_by_topic().topic_arn(topic).set_next_token(token.clone()).send();
        let answer = patiently(list).await?;
        if answer.subscriptions.unwrap_or_default().iter().any(|known| known.endpoint() == Some(queue)) {
            return Ok(true);
        }
        token = answer.next_token;
        if token.is_none() {
            return Ok(false);
        }
    }
}

/// From now on the queue hears the topic, without an envelope.
pub(crate) async fn subscribe(client: &Sns, topic: &str, queue: &str) -> Result<(), Trouble> {
    let subscribe = client.subscribe().topic_arn(topic).protocol("sqs").endpoint(queue);
    let subscribe = subscribe.attributes("RawMessageDelivery", "true");
    patiently(|| subscribe.clone().send()).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_keeps_what_it_allows_and_allows_a_source_once() {
        let theirs = json!({ "Version": "2012-10-17", "Statement": [{ "Sid": "theirs" }] }).to_string();
        let first = allowing(Some(&theirs), "sqs:SendMessage", "q", "s3.amazonaws.com", "b")
            .expect("a policy that allows more");
        let statements = serde_json::from_str::<Value>(&first).expect("JSON")["Statement"].clone();
        assert_eq!(statements.as_array().map(Vec::len), Some(2), "{first}");
        assert_eq!(statements[0]["Sid"], "theirs");
        assert_eq!(allowing(Some(&first), "sqs:SendMessage", "q", "s3.amazonaws.com", "b"), None);
        assert!(allowing(None, "sqs:SendMessage", "q", "sns.amazonaws.com", "t").is_some());
    }

    #[test]
    fn a_statement_that_stands_alone_is_kept() {
        let theirs = json!({ "Version": "2012-10-17", "Statement": { "Sid": "theirs" } }).to_string();
        let both = allowing(Some(&theirs), "sqs:SendMessage", "q", "s3.amazonaws.com", "b")
            .expect("a policy that allows more");
        let statements = serde_json::from_str::<Value>(&both).expect("JSON")["Statement"].clone();
        assert_eq!((statements.as_array().map(Vec::len), &statements[0]["Sid"]), (Some(2), &json!("theirs")), "{both}");
        let ours = json!({ "Statement": statements[1] }).to_string();
        assert_eq!(allowing(Some(&ours), "sqs:SendMessage", "q", "s3.amazonaws.com", "b"), None);
    }
}
