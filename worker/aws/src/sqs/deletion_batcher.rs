//! Batches message deletions into few `DeleteMessageBatch` requests.

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_sqs::{Client, types::DeleteMessageBatchRequestEntry};
use tokio::sync::{mpsc, oneshot};

use super::MAX_BATCH;
use crate::{
    error::AwsError,
    retry::{backoff, log_retry, with_retry},
};

/// Collects deletions of about the same time into batches, and returns the result of each to its caller.
pub(super) struct DeletionBatcher {
    requests: mpsc::UnboundedSender<DeletionRequest>,
}

struct DeletionRequest {
    url: String,
    receipt: String,
    result: oneshot::Sender<Result<(), AwsError>>,
}

/// How long the first deletion of a batch waits for others.
const BATCH_DELAY: Duration = Duration::from_millis(5);

impl DeletionBatcher {
    /// Starts the background task, which ends when the batcher is dropped.
    pub fn start(client: Client) -> Self {
        let (requests, received) = mpsc::unbounded_channel();
        tokio::spawn(collect_batches(client, received));
        Self { requests }
    }

    /// Deletes the message.
    pub async fn delete(&self, url: &str, receipt: &str) -> Result<(), AwsError> {
        let stopped = || AwsError::new("SQS", "DeleteMessageBatch", None, "the deletion task has stopped");
        self.start_deletion(url, receipt).await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Deletes the message in the background. The receiver may be dropped.
    pub fn start_deletion(&self, url: &str, receipt: &str) -> oneshot::Receiver<Result<(), AwsError>> {
        let (result, answer) = oneshot::channel();
        let request = DeletionRequest { url: url.to_owned(), receipt: receipt.to_owned(), result };
        let _ = self.requests.send(request);
        answer
    }
}

async fn collect_batches(client: Client, mut received: mpsc::UnboundedReceiver<DeletionRequest>) {
    while let Some(first) = received.recv().await {
        let mut requests = vec![first];
        tokio::time::sleep(BATCH_DELAY).await;
        while requests.len() < MAX_BATCH
            && let Ok(next) = received.try_recv()
        {
            requests.push(next);
        }
        let mut queues: BTreeMap<String, Vec<DeletionRequest>> = BTreeMap::new();
        for request in requests {
            queues.entry(request.url.clone()).or_default().push(request);
        }
        for (url, requests) in queues {
            // In a task of its own, so that retries of one batch do not delay others.
            tokio::spawn(delete_batch(client.clone(), url, requests));
        }
    }
}

/// Deletes a batch. Failed entries are retried with backoff, unless SQS calls them the sender's fault.
async fn delete_batch(client: Client, url: String, requests: Vec<DeletionRequest>) {
    let mut left: BTreeMap<usize, DeletionRequest> = requests.into_iter().enumerate().collect();
    let mut backoff = backoff();
    while !left.is_empty() {
        let entries: Result<Vec<_>, _> = left.iter().map(|(n, request)| entry(*n, &request.receipt)).collect();
        let failed = match entries {
            Ok(entries) => {
                let delete = || client.delete_message_batch().queue_url(&url).set_entries(Some(entries.clone())).send();
                with_retry(delete).await.map(|answer| answer.failed)
            }
            Err(error) => Err(error.into()),
        };
        let failed = match failed {
            Ok(failed) => failed,
            Err(error) => return fail_all(left, &error),
        };
        let mut retries = BTreeMap::new();
        let mut last = None;
        for failure in failed {
            let Some((n, request)) = failure.id.parse().ok().and_then(|n: usize| left.remove_entry(&n)) else {
                continue;
            };
            let message = format!("{}: {}", failure.code, failure.message.unwrap_or_default());
            let error = AwsError::new("SQS", "DeleteMessageBatch", Some(failure.code), message);
            if failure.sender_fault && !error.is_throttled() {
                let _ = request.result.send(Err(error));
            } else {
                last = Some(error);
                retries.insert(n, request);
            }
        }
        left.into_values().for_each(|request| drop(request.result.send(Ok(()))));
        left = retries;
        match (backoff.next(), last) {
            (Some(pause), Some(error)) => {
                log_retry(&error, pause);
                tokio::time::sleep(pause).await;
            }
            (None, Some(error)) => return fail_all(left, &error),
            (_, None) => return,
        }
    }
}

fn fail_all(requests: BTreeMap<usize, DeletionRequest>, error: &AwsError) {
    requests.into_values().for_each(|request| drop(request.result.send(Err(error.clone()))));
}

fn entry(n: usize, receipt: &str) -> Result<DeleteMessageBatchRequestEntry, aws_sdk_sqs::error::BuildError> {
    DeleteMessageBatchRequestEntry::builder().id(n.to_string()).receipt_handle(receipt).build()
}
