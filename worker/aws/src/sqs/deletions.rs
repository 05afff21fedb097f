//! Deleting many messages with few requests.

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_sqs::{Client, types::DeleteMessageBatchRequestEntry};
use tokio::sync::{mpsc, oneshot};

use super::MOST;
use crate::trouble::{Trouble, patiently, pauses};

/// Collects what is to be deleted at about the same time, and tells each caller what became of theirs.
pub(super) struct Deletions {
    orders: mpsc::UnboundedSender<Order>,
}

struct Order {
    url: String,
    receipt: String,
    done: oneshot::Sender<Result<(), Trouble>>,
}

/// How long the first waits for others: less than anybody notices.
const GATHER: Duration = Duration::from_millis(5);

impl Deletions {
    /// Works for as long as anybody may have something to delete.
    pub fn start(client: Client) -> Self {
        let (orders, received) = mpsc::unbounded_channel();
        tokio::spawn(work(client, received));
        Self { orders }
    }

    /// Deletes the message.
    pub async fn delete(&self, url: &str, receipt: &str) -> Result<(), Trouble> {
        let (done, answer) = oneshot::channel();
        let order = Order { url: url.to_owned(), receipt: receipt.to_owned(), done };
        let stopped = || Trouble { code: None, status: None, words: "nobody deletes messages any more".into() };
        self.orders.send(order).map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

async fn work(client: Client, mut received: mpsc::UnboundedReceiver<Order>) {
    while let Some(first) = received.recv().await {
        let mut orders = vec![first];
        tokio::time::sleep(GATHER).await;
        while orders.len() < MOST
            && let Ok(next) = received.try_recv()
        {
            orders.push(next);
        }
        let mut queues: BTreeMap<String, Vec<Order>> = BTreeMap::new();
        for order in orders {
            queues.entry(order.url.clone()).or_default().push(order);
        }
        for (url, orders) in queues {
            // Others are not held up by a batch that has to be tried again.
            tokio::spawn(delete_all(client.clone(), url, orders));
        }
    }
}

/// Deletes all of them: those that failed once more, and those that cannot be deleted never again.
async fn delete_all(client: Client, url: String, orders: Vec<Order>) {
    let mut left: BTreeMap<usize, Order> = orders.into_iter().enumerate().collect();
    let mut pauses = pauses();
    while !left.is_empty() {
        let entries: Result<Vec<_>, _> = left.iter().map(|(n, order)| entry(*n, &order.receipt)).collect();
        let failed = match entries {
            Ok(entries) => {
                let delete = || client.delete_message_batch().queue_url(&url).set_entries(Some(entries.clone())).send();
                patiently(delete).await.map(|answer| answer.failed)
            }
            Err(error) => Err(error.into()),
        };
        let failed = match failed {
            Ok(failed) => failed,
            Err(trouble) => {
                left.into_values().for_each(|order| drop(order.done.send(Err(trouble.clone()))));
                return;
            }
        };
        let mut again = BTreeMap::new();
        let mut last = None;
        for failure in failed {
            let Some((n, order)) = failure.id.parse().ok().and_then(|n: usize| left.remove_entry(&n)) else { continue };
            let words = format!("{}: {}", failure.code, failure.message.unwrap_or_default());
            let trouble = Trouble { code: Some(failure.code), status: None, words };
            if failure.sender_fault {
                let _ = order.done.send(Err(trouble));
            } else {
                last = Some(trouble);
                again.insert(n, order);
            }
        }
        left.into_values().for_each(|order| drop(order.done.send(Ok(()))));
        left = again;
        match (pauses.next(), last) {
            (Some(pause), Some(_)) => tokio::time::sleep(pause).await,
            (None, Some(trouble)) => {
                left.into_values().for_each(|order| drop(order.done.send(Err(trouble.clone()))));
                return;
            }
            (_, None) => return,
        }
    }
}

fn entry(n: usize, receipt: &str) -> Result<DeleteMessageBatchRequestEntry, aws_sdk_sqs::error::BuildError> {
    DeleteMessageBatchRequestEntry::builder().id(n.to_string()).receipt_handle(receipt).build()
}
