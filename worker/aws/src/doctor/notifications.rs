//! Event notifications of uploads: from the bucket to the queue, directly, through a topic, or through EventBridge.

use aws_sdk_s3::types::NotificationConfiguration;
use aws_sdk_sqs::types::QueueAttributeName;
use sparks_domain::object_keys::ORIGINALS;

use super::{Doctor, RUN_SETUP, queues::FoundQueue};
use crate::{
    CloudResources,
    bucket_notifications::covers,
    names::{bucket_arn, is_fifo},
    resource_policy::allows,
    setup::{bucket, topics},
};

impl Doctor {
    pub(super) async fn notifications(&mut self, resources: &CloudResources, work: &FoundQueue) {
        let Some(queue) = work.arn() else { return };
        let found = match bucket::notifications(&self.connection.s3(), &resources.bucket).await {
            Ok(found) => found,
            Err(error) => {
                let subject = format!("event notifications of bucket {}", resources.bucket);
                return self.unchecked(subject, &error, "s3:GetBucketNotification");
            }
        };
        let bucket = bucket_arn(self.connection.region().as_deref(), &resources.bucket);
        let mut senders = Vec::new();
        for prefix in &resources.prefixes {
            let subject = format!("event notifications for {prefix} in bucket {}", resources.bucket);
            if notifies_queue(&found, queue, prefix) {
                self.ok(subject, format!("sent to queue {}", work.name));
                senders.push(("s3.amazonaws.com", bucket.clone()));
                continue;
            }
            if let Some(topic) = self.subscribed_topic(&subject, &found, queue, prefix).await {
                senders.push(("sns.amazonaws.com", topic));
                continue;
            }
            self.other_target(subject, &found, prefix, work);
        }
        senders.dedup();
        for (service, sender) in senders {
            self.send_permission(work, queue, service, &sender);
        }
    }

    /// Returns the topic that the bucket notifies and the queue is subscribed to. Also returns a topic whose subscriptions
    /// cannot be listed.
    async fn subscribed_topic(
        &mut self,
        subject: &str,
        found: &NotificationConfiguration,
        queue: &str,
        prefix: &str,
    ) -> Option<String> {
        let client = self.connection.sns();
        for topic in notified_topics(found, prefix) {
            match topics::is_subscribed(&client, topic, queue).await {
                Ok(true) => {
                    self.ok(subject, format!("sent to topic {topic}, which the queue is subscribed to"));
                    return Some(topic.to_owned());
                }
                Ok(false) => {}
                Err(error) => {
                    self.unchecked(subject, &error, "sns:ListSubscriptionsByTopic");
                    return Some(topic.to_owned());
                }
            }
        }
        None
    }

    /// Records the finding for a prefix whose notifications reach the queue neither directly nor through a topic.
    fn other_target(&mut self, subject: String, found: &NotificationConfiguration, prefix: &str, work: &FoundQueue) {
        if found.event_bridge_configuration().is_some() {
            let observation = "sent to EventBridge, whose rules are not checked";
            return self.warn(subject, observation, format!("check that a rule has queue {} as target", work.name));
        }
        let unsubscribed = notified_topics(found, prefix)
            .next()
            .map(|topic| format!("sent to topic {topic}, which queue {} is not subscribed to", work.name));
        let observation = unsubscribed.unwrap_or_else(|| format!("not sent to queue {}", work.name));
        let remedy = match is_fifo(&work.name) {
            true => {
                "S3 cannot notify a FIFO queue; send the notifications to EventBridge and add a rule with the queue as target"
                    .to_owned()
            }
            false => RUN_SETUP.to_owned(),
        };
        // Without notifications of originals a worker receives no work.
        match prefix == ORIGINALS {
            true => self.fail(subject, observation, remedy),
            false => {
                self.warn(subject, observation, format!("{remedy}; or let the platform send these messages itself"))
            }
        }
    }

    /// Checks that the queue accepts messages from this sender.
    fn send_permission(&mut self, work: &FoundQueue, queue: &str, service: &str, sender: &str) {
        let subject = format!("permission of {sender} to send to queue {}", work.name);
        let policy = work.get(&QueueAttributeName::Policy).unwrap_or_default();
        match allows(policy, service, "sqs:SendMessage", sender) {
            true => self.ok(subject, "granted by the policy of the queue"),
            false => self.fail(subject, format!("access denied: the policy of {queue} does not allow it"), RUN_SETUP),
        }
    }
}

fn notifies_queue(found: &NotificationConfiguration, queue: &str, prefix: &str) -> bool {
    let known = found.queue_configurations().iter();
    known.filter(|known| known.queue_arn() == queue).any(|known| covers(known.filter(), known.events(), prefix))
}

fn notified_topics<'a>(found: &'a NotificationConfiguration, prefix: &str) -> impl Iterator<Item = &'a str> {
    let known = found.topic_configurations().iter();
    known.filter(move |known| covers(known.filter(), known.events(), prefix)).map(|known| known.topic_arn())
}
