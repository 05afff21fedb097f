//! The work queue, the waiting queue and the dead-letter queue.

use std::collections::HashMap;

use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::Value;

use super::{Doctor, MISSING, RUN_SETUP};
use crate::{
    CloudResources, names::is_fifo, retry::with_retry, setup::queues::MAX_RETENTION_SECONDS, sqs::QUEUE_MISSING_CODES,
};

/// The queues that exist.
#[derive(Default)]
pub(super) struct FoundQueues {
    pub work: Option<FoundQueue>,
    pub waiting: Option<FoundQueue>,
    pub dead: Option<FoundQueue>,
}

/// A queue that exists. Its attributes are empty if access to them is denied.
pub(super) struct FoundQueue {
    pub name: String,
    pub url: String,
    pub attributes: HashMap<QueueAttributeName, String>,
}

impl FoundQueue {
    pub fn arn(&self) -> Option<&str> {
        self.get(&QueueAttributeName::QueueArn)
    }

    pub fn get(&self, name: &QueueAttributeName) -> Option<&str> {
        self.attributes.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn number(&self, name: &QueueAttributeName) -> Option<u64> {
        self.get(name)?.parse().ok()
    }
}

impl Doctor {
    pub(super) async fn queues(&mut self, resources: &CloudResources) -> FoundQueues {
        let dead = self.queue(&resources.dead).await;
        let waiting = match &resources.waiting {
            Some(waiting) => self.queue(waiting).await,
            None => None,
        };
        let work = self.queue(&resources.work).await;
        self.queue_types(resources);
        if let Some(dead) = &dead {
            self.retention(dead);
        }
        if let Some(work) = work.as_ref().filter(|work| !work.attributes.is_empty()) {
            self.visibility_timeout(work, resources.visibility_timeout_seconds);
            self.redrive_policy(work, dead.as_ref());
            if is_fifo(&work.name) {
                self.content_deduplication(work);
            }
        }
        FoundQueues { work, waiting, dead }
    }

    async fn queue(&mut self, name: &str) -> Option<FoundQueue> {
        let subject = format!("queue {name}");
        let url = self.url(&subject, name).await?;
        let (name, client) = (name.rsplit('/').next().unwrap_or(name).to_owned(), self.connection.sqs());
        let get = || client.get_queue_attributes().queue_url(&url).attribute_names(QueueAttributeName::All).send();
        match with_retry(get).await {
            Ok(answer) => {
                self.ok(subject, "exists");
                Some(FoundQueue { name, url, attributes: answer.attributes.unwrap_or_default() })
            }
            Err(error) if error.is_access_denied() => {
                self.fail(subject, &error, "grant sqs:GetQueueAttributes: a worker reads the number of messages");
                Some(FoundQueue { name, url, attributes: HashMap::new() })
            }
            Err(error) if error.has_code(&QUEUE_MISSING_CODES) => {
                self.fail(subject, MISSING, RUN_SETUP);
                None
            }
            Err(error) => {
                self.unchecked(subject, &error, "sqs:GetQueueAttributes");
                None
            }
        }
    }

    async fn url(&mut self, subject: &str, name: &str) -> Option<String> {
        if name.contains("://") {
            return Some(name.to_owned());
        }
        let client = self.connection.sqs();
        match with_retry(|| client.get_queue_url().queue_name(name).send()).await {
            Ok(answer) => return answer.queue_url,
            Err(error) if error.has_code(&QUEUE_MISSING_CODES) => self.fail(subject, MISSING, RUN_SETUP),
            Err(error) if error.is_access_denied() => self.fail(subject, &error, "grant sqs:GetQueueUrl"),
            Err(error) => self.unchecked(subject, &error, "sqs:GetQueueUrl"),
        }
        None
    }

    /// Checks that standard and FIFO queues fit together, by their names.
    fn queue_types(&mut self, resources: &CloudResources) {
        const SUBJECT: &str = "queue types";
        let (fifo, dead_is_fifo) = (is_fifo(&resources.work), is_fifo(&resources.dead));
        let kind = |fifo: bool| if fifo { "FIFO" } else { "standard" };
        if fifo != dead_is_fifo {
            let observation =
                format!("the work queue is {}, the dead-letter queue is {}", kind(fifo), kind(dead_is_fifo));
            return self.fail(SUBJECT, observation, "set aws.dead_letter_queue to a queue of the same type");
        }
        match (&resources.waiting, &resources.uploads_topic) {
            (None, _) if fifo => {
                let observation =
                    "SQS cannot delay single messages of a FIFO work queue, and aws.waiting_queue is not set";
                self.fail(
                    SUBJECT,
                    observation,
                    "set aws.waiting_queue to a standard queue, then create it with `sparks setup`",
                );
            }
            (Some(waiting), _) if is_fifo(waiting) => {
                self.fail(
                    SUBJECT,
                    format!("waiting queue {waiting} is FIFO"),
                    "set aws.waiting_queue to a standard queue",
                );
            }
            (_, Some(topic)) if fifo => {
                let observation =
                    format!("the work queue is FIFO and cannot receive event notifications from topic {topic}");
                let remedy = "leave aws.uploads_topic empty; send the bucket's event notifications to EventBridge and add a \
                              rule with the queue as target";
                self.fail(SUBJECT, observation, remedy);
            }
            _ => self.ok(SUBJECT, kind(fifo)),
        }
    }

    fn retention(&mut self, dead: &FoundQueue) {
        let Some(kept) = dead.number(&QueueAttributeName::MessageRetentionPeriod) else { return };
        let (subject, wanted) = (format!("retention of queue {}", dead.name), MAX_RETENTION_SECONDS.parse());
        match wanted.is_ok_and(|wanted: u64| kept >= wanted) {
            true => self.ok(subject, "14 days"),
            false => {
                let observation = format!("{kept} s: SQS may delete dead letters before an operator reads them");
                self.warn(subject, observation, format!("set MessageRetentionPeriod to {MAX_RETENTION_SECONDS}"));
            }
        }
    }

    /// Checks the default visibility timeout of the queue, which applies to consumers that set none: a shorter one would
    /// deliver a message to two of them.
    fn visibility_timeout(&mut self, work: &FoundQueue, wanted: u64) {
        let subject = format!("visibility timeout of queue {}", work.name);
        match work.number(&QueueAttributeName::VisibilityTimeout) {
            Some(seconds) if seconds < wanted => {
                let remedy =
                    format!("set VisibilityTimeout to {wanted}, or queue.visibility_timeout_seconds to {seconds}");
                self.fail(subject, format!("{seconds} s, shorter than the worker's {wanted} s"), remedy);
            }
            Some(seconds) => self.ok(subject, format!("{seconds} s; the worker's is {wanted} s")),
            None => {}
        }
    }

    /// Checks that messages without a deduplication ID are accepted: EventBridge sends none.
    fn content_deduplication(&mut self, work: &FoundQueue) {
        let subject = format!("content-based deduplication of queue {}", work.name);
        match work.get(&QueueAttributeName::ContentBasedDeduplication) {
            Some("true") => self.ok(subject, "on"),
            _ => self.warn(subject, "off: EventBridge cannot send to it", RUN_SETUP),
        }
    }

    /// Checks the redrive policy, which ends the deliveries of a message that crashes workers. A message that merely fails
    /// is moved by the worker itself, with a cause: the redrive policy must allow at least as many receives as the worker
    /// makes attempts.
    fn redrive_policy(&mut self, work: &FoundQueue, dead: Option<&FoundQueue>) {
        let subject = format!("redrive policy of queue {}", work.name);
        let policy = work.get(&QueueAttributeName::RedrivePolicy);
        let policy = policy.and_then(|policy| serde_json::from_str::<Value>(policy).ok());
        let Some(policy) = policy else {
            return self.fail(subject, "none: a message that crashes workers is delivered for ever", RUN_SETUP);
        };
        let target = policy["deadLetterTargetArn"].as_str().unwrap_or_default();
        if let Some(wanted) = dead.and_then(FoundQueue::arn).filter(|wanted| *wanted != target) {
            let remedy = format!("set deadLetterTargetArn to {wanted}, or aws.dead_letter_queue to that queue");
            let observation = format!("moves dead letters to {target}, which `sparks dlq` does not read");
            return self.fail(subject, observation, remedy);
        }
        let count = &policy["maxReceiveCount"];
        let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or_default();
        if count < u64::from(self.max_attempts) {
            let observation =
                format!("maxReceiveCount is {count}, less than the worker's {} attempts", self.max_attempts);
            let remedy = "set maxReceiveCount to queue.max_crashes: dead letters that SQS moves have no cause";
            return self.warn(subject, observation, remedy);
        }
        self.ok(subject, format!("maxReceiveCount is {count}"));
    }
}
