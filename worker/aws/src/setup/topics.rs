//! Topics, their access policies and subscriptions.

use aws_sdk_sns::Client;

use crate::{error::AwsError, names::is_fifo, retry::with_retry};

/// Creates the topic. Returns its ARN.
pub(crate) async fn create(client: &Client, name: &str) -> Result<String, AwsError> {
    let create = client.create_topic().name(name);
    let create = if is_fifo(name) { create.attributes("FifoTopic", "true") } else { create };
    Ok(with_retry(|| create.clone().send()).await?.topic_arn.unwrap_or_default())
}

/// Returns the access policy of the topic.
pub(crate) async fn policy(client: &Client, topic: &str) -> Result<Option<String>, AwsError> {
    let get = || client.get_topic_attributes().topic_arn(topic).send();
    Ok(with_retry(get).await?.attributes.unwrap_or_default().remove("Policy").filter(|policy| !policy.is_empty()))
}

/// Replaces the access policy of the topic.
pub(crate) async fn set_policy(client: &Client, topic: &str, policy: &str) -> Result<(), AwsError> {
    let set = client.set_topic_attributes().topic_arn(topic).attribute_name("Policy").attribute_value(policy);
    with_retry(|| set.clone().send()).await?;
    Ok(())
}

/// Returns whether the queue is subscribed to the topic.
pub(crate) async fn is_subscribed(client: &Client, topic: &str, queue: &str) -> Result<bool, AwsError> {
    let mut token = None::<String>;
    loop {
        let list = || client.list_subscriptions_by_topic().topic_arn(topic).set_next_token(token.clone()).send();
        let answer = with_retry(list).await?;
        if answer.subscriptions.unwrap_or_default().iter().any(|known| known.endpoint() == Some(queue)) {
            return Ok(true);
        }
        token = answer.next_token;
        if token.is_none() {
            return Ok(false);
        }
    }
}

/// Subscribes the queue to the topic, with raw message delivery: no SNS envelope around the message.
pub(crate) async fn subscribe(client: &Client, topic: &str, queue: &str) -> Result<(), AwsError> {
    let subscribe = client.subscribe().topic_arn(topic).protocol("sqs").endpoint(queue);
    let subscribe = subscribe.attributes("RawMessageDelivery", "true");
    with_retry(|| subscribe.clone().send()).await?;
    Ok(())
}
