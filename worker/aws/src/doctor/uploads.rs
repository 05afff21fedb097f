//! Whether news of an upload reaches the queue: from the bucket itself, through a topic, or through EventBridge.

use aws_sdk_s3::types::NotificationConfiguration;
use aws_sdk_sqs::types::QueueAttributeName;

use super::{Doctor, SET_UP, policy::lets, queues::Queue};
use crate::{
    Estate,
    names::{bucket_arn, is_fifo},
    notified::covers,
    setup::{bucket, queues},
};

/// Where originals are: a worker that does not hear of these has no work.
const ORIGINALS: &str = "originals/";

impl Doctor {
    pub(super) async fn uploads(&mut self, estate: &Estate, work: &Queue) {
        let Some(queue) = work.arn() else { return };
        let found = match bucket::notifications(&self.connection.s3(), &estate.bucket).await {
            Ok(found) => found,
            Err(trouble) => {
                let what = format!("notifications of bucket {}", estate.bucket);
                return self.unseen(what, &trouble, "s3:GetBucketNotification");
            }
        };
        let source = bucket_arn(self.connection.region().as_deref(), &estate.bucket);
        let mut asked = Vec::new();
        for prefix in &estate.prefixes {
            let what = format!("news of {prefix} in bucket {}", estate.bucket);
            if tells_queue(&found, queue, prefix) {
                self.ok(what, format!("the bucket tells queue {}", work.name));
                asked.push(("s3.amazonaws.com", source.clone()));
                continue;
            }
            if let Some(topic) = self.heard_topic(&what, &found, queue, prefix).await {
                asked.push(("sns.amazonaws.com", topic));
                continue;
            }
            self.elsewhere(what, &found, prefix, work);
        }
        asked.dedup();
        for (service, source) in asked {
            self.may_send(work, queue, service, &source);
        }
    }

    /// The topic that the bucket tells, and the queue hears. Where nobody may see who hears it, that is said.
    async fn heard_topic(
        &mut self,
        what: &str,
        found: &NotificationConfiguration,
        queue: &str,
        prefix: &str,
    ) -> Option<String> {
        let client = self.connection.sns();
        for topic in told_topics(found, prefix) {
            match queues::is_subscribed(&client, topic, queue).await {
                Ok(true) => {
                    self.ok(what, format!("the bucket tells {topic}, and that the queue"));
                    return Some(topic.to_owned());
                }
                Ok(false) => {}
                Err(trouble) => {
                    self.unseen(what, &trouble, "sns:ListSubscriptionsByTopic");
                    return Some(topic.to_owned());
                }
            }
        }
        None
    }

    /// Neither the bucket nor a topic tells the queue.
    fn elsewhere(&mut self, what: String, found: &NotificationConfiguration, prefix: &str, work: &Queue) {
        if found.event_bridge_configuration().is_some() {
            let seen = "the bucket tells EventBridge; its rules are not looked at";
            return self.warn(what, seen, format!("see that a rule brings it to queue {}", work.name));
        }
        let deaf = told_topics(found, prefix)
            .next()
            .map(|topic| format!("the bucket tells {topic}, which queue {} does not hear", work.name));
        let seen = deaf.unwrap_or_else(|| format!("nobody tells queue {}", work.name));
        let remedy = match is_fifo(&work.name) {
            true => {
                "S3 cannot tell a FIFO queue: let the bucket tell EventBridge, and a rule there the queue".to_owned()
            }
            false => SET_UP.to_owned(),
        };
        match prefix == ORIGINALS {
            true => self.fail(what, seen, remedy),
            false => self.warn(what, seen, format!("{remedy}; or the platform sends messages for these itself")),
        }
    }

    /// Whether the queue takes what it is to be told.
    fn may_send(&mut self, work: &Queue, queue: &str, service: &str, source: &str) {
        let what = format!("permission of {source} to send to queue {}", work.name);
        let policy = work.get(&QueueAttributeName::Policy).unwrap_or_default();
        match lets(policy, service, "sqs:SendMessage", source) {
            true => self.ok(what, "granted by the queue"),
            false => self.fail(what, format!("the policy of {queue} does not let it"), SET_UP),
        }
    }
}

fn tells_queue(found: &NotificationConfiguration, queue: &str, prefix: &str) -> bool {
    let known = found.queue_configurations().iter();
    known.filter(|known| known.queue_arn() == queue).any(|known| covers(known.filter(), known.events(), prefix))
}

fn told_topics<'a>(found: &'a NotificationConfiguration, prefix: &str) -> impl Iterator<Item = &'a str> {
    let known = found.topic_configurations().iter();
    known.filter(move |known| covers(known.filter(), known.events(), prefix)).map(|known| known.topic_arn())
}
