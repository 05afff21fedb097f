//! Where work comes from, where it waits, and where dead letters go.

use std::collections::HashMap;

use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::Value;

use super::{Doctor, SET_UP};
use crate::{Estate, names::is_fifo, setup::queues::FOURTEEN_DAYS, trouble::patiently};

/// What SQS says of a queue that is not there.
const GONE: [&str; 2] = ["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"];

/// The queues that are there.
#[derive(Default)]
pub(super) struct Queues {
    pub work: Option<Queue>,
    pub waiting: Option<Queue>,
    pub dead: Option<Queue>,
}

/// A queue that is there. Nothing is known of its attributes where we may not see them.
pub(super) struct Queue {
    pub name: String,
    pub url: String,
    pub attributes: HashMap<QueueAttributeName, String>,
}

impl Queue {
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
    pub(super) async fn queues(&mut self, estate: &Estate) -> Queues {
        let dead = self.queue(&estate.dead).await;
        let waiting = match &estate.waiting {
            Some(waiting) => self.queue(waiting).await,
            None => None,
        };
        let work = self.queue(&estate.work).await;
        self.kinds(estate);
        if let Some(dead) = &dead {
            self.retention(dead);
        }
        if let Some(work) = work.as_ref().filter(|work| !work.attributes.is_empty()) {
            self.visibility(work, estate.visibility);
            self.redrive(work, dead.as_ref());
            if is_fifo(&work.name) {
                self.repeats(work);
            }
        }
        Queues { work, waiting, dead }
    }

    async fn queue(&mut self, name: &str) -> Option<Queue> {
        let what = format!("queue {name}");
        let url = self.url(&what, name).await?;
        let (name, client) = (name.rsplit('/').next().unwrap_or(name).to_owned(), self.connection.sqs());
        let get = || client.get_queue_attributes().queue_url(&url).attribute_names(QueueAttributeName::All).send();
        match patiently(get).await {
            Ok(answer) => {
                self.ok(what, "it is there");
                Some(Queue { name, url, attributes: answer.attributes.unwrap_or_default() })
            }
            Err(trouble) if trouble.is_forbidden() => {
                self.fail(what, &trouble, "grant sqs:GetQueueAttributes: a worker counts what there is to do");
                Some(Queue { name, url, attributes: HashMap::new() })
            }
            Err(trouble) if trouble.is(&GONE) => {
                self.fail(what, "it is not there", SET_UP);
                None
            }
            Err(trouble) => {
                self.unseen(what, &trouble, "sqs:GetQueueAttributes");
                None
            }
        }
    }

    async fn url(&mut self, what: &str, name: &str) -> Option<String> {
        if name.contains("://") {
            return Some(name.to_owned());
        }
        let client = self.connection.sqs();
        match patiently(|| client.get_queue_url().queue_name(name).send()).await {
            Ok(answer) => return answer.queue_url,
            Err(trouble) if trouble.is(&GONE) => self.fail(what, "it is not there", SET_UP),
            Err(trouble) if trouble.is_forbidden() => self.fail(what, &trouble, "grant sqs:GetQueueUrl"),
            Err(trouble) => self.unseen(what, &trouble, "sqs:GetQueueUrl"),
        }
        None
    }

    /// Of which kind the queues are, by their names.
    fn kinds(&mut self, estate: &Estate) {
        const WHAT: &str = "kinds of queues";
        let (fifo, dead_is_fifo) = (is_fifo(&estate.work), is_fifo(&estate.dead));
        let kind = |fifo: bool| if fifo { "FIFO" } else { "standard" };
        if fifo != dead_is_fifo {
            let seen = format!("work is {}, dead letters are {}", kind(fifo), kind(dead_is_fifo));
            return self.fail(WHAT, seen, "name a queue of dead letters of the same kind in aws.dead_letter_queue");
        }
        match (&estate.waiting, &estate.uploads) {
            (None, _) if fifo => {
                let seen = "a FIFO queue cannot put off a single message, and there is none beside it";
                self.fail(WHAT, seen, "name a standard queue in aws.waiting_queue, then `sparks setup` makes it");
            }
            (Some(waiting), _) if is_fifo(waiting) => {
                self.fail(WHAT, format!("{waiting} is FIFO"), "name a standard queue in aws.waiting_queue");
            }
            (_, Some(topic)) if fifo => {
                let seen = format!("work is FIFO, and hears nothing of what S3 tells topic {topic}");
                let remedy =
                    "leave aws.uploads_topic empty: let the bucket tell EventBridge, and a rule there the queue";
                self.fail(WHAT, seen, remedy);
            }
            _ => self.ok(WHAT, kind(fifo)),
        }
    }

    fn retention(&mut self, dead: &Queue) {
        let Some(kept) = dead.number(&QueueAttributeName::MessageRetentionPeriod) else { return };
        let (what, wanted) = (format!("how long queue {} keeps letters", dead.name), FOURTEEN_DAYS.parse());
        match wanted.is_ok_and(|wanted: u64| kept >= wanted) {
            true => self.ok(what, "14 days"),
            false => {
                let seen = format!("{kept} s: letters may be gone before anybody looks");
                self.warn(what, seen, format!("set MessageRetentionPeriod to {FOURTEEN_DAYS}"));
            }
        }
    }

    /// A worker says how long its leases are; whoever does not say gets the queue's own, and a message in two hands.
    fn visibility(&mut self, work: &Queue, wanted: u64) {
        let what = format!("visibility of queue {}", work.name);
        match work.number(&QueueAttributeName::VisibilityTimeout) {
            Some(seconds) if seconds < wanted => {
                let remedy = format!("set VisibilityTimeout to {wanted}, or queue.visibility_seconds to {seconds}");
                self.fail(what, format!("{seconds} s, and a lease of a worker is {wanted} s"), remedy);
            }
            Some(seconds) => self.ok(what, format!("{seconds} s, for leases of {wanted} s")),
            None => {}
        }
    }

    /// EventBridge gives no names by which a FIFO queue could know repeats, and is refused by one that wants them.
    fn repeats(&mut self, work: &Queue) {
        let what = format!("content-based deduplication of queue {}", work.name);
        match work.get(&QueueAttributeName::ContentBasedDeduplication) {
            Some("true") => self.ok(what, "on"),
            _ => self.warn(what, "off: EventBridge cannot send to it", SET_UP),
        }
    }

    /// Where what kills workers ends. What merely fails, the worker gives up itself, with a cause: the queue must not be faster.
    fn redrive(&mut self, work: &Queue, dead: Option<&Queue>) {
        let what = format!("dead letters of queue {}", work.name);
        let policy = work.get(&QueueAttributeName::RedrivePolicy);
        let policy = policy.and_then(|policy| serde_json::from_str::<Value>(policy).ok());
        let Some(policy) = policy else {
            return self.fail(what, "none: a message that kills workers comes again for ever", SET_UP);
        };
        let target = policy["deadLetterTargetArn"].as_str().unwrap_or_default();
        if let Some(wanted) = dead.and_then(Queue::arn).filter(|wanted| *wanted != target) {
            let remedy = format!("set its RedrivePolicy to {wanted}, or aws.dead_letter_queue to where they go");
            return self.fail(what, format!("they go to {target}, where `sparks dlq` does not look"), remedy);
        }
        let count = &policy["maxReceiveCount"];
        let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or_default();
        if count < u64::from(self.max_receives) {
            let seen = format!("after {count} receives, before the worker gives up after {}", self.max_receives);
            let remedy = "set maxReceiveCount to queue.max_deaths: letters have no cause otherwise";
            return self.warn(what, seen, remedy);
        }
        self.ok(what, format!("after {count} receives"));
    }
}
