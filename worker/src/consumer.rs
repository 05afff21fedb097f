//! Takes messages off the queue and works them off, several at once.

use std::{sync::Arc, time::Duration};

use sparks_engine::{
    Delivery, Failure, MessageId, PhotoRef, Pipeline, Queue, QueueError, Settlement, Ticket, Turnstile, settlement,
};
use tokio::sync::Mutex;

use crate::lease::Lease;

/// Works messages off. Clones share the line of arrival.
#[derive(Clone)]
pub struct Consumer {
    queue: Arc<dyn Queue>,
    pipeline: Arc<Pipeline>,
    line: Arc<Mutex<Turnstile>>,
    visibility: Duration,
    max_receives: u32,
}

/// A message that was worked on.
pub struct Worked {
    /// Which.
    pub message: MessageId,
    /// Whether nobody need look at it again.
    pub settled: bool,
}

impl Consumer {
    /// Takes from this queue into this pipeline.
    pub fn new(queue: Arc<dyn Queue>, pipeline: Arc<Pipeline>, visibility: Duration, max_receives: u32) -> Self {
        Self { queue, pipeline, line: Arc::default(), visibility, max_receives }
    }

    /// Works off the next message, if there is one.
    pub async fn next(&self) -> Result<Option<Worked>, QueueError> {
        let Some((delivery, turn)) = self.receive().await? else { return Ok(None) };
        let id = delivery.id.clone();
        let lease = Lease::keep(Arc::clone(&self.queue), delivery.clone(), self.visibility);
        let result = self.work(&delivery, &turn).await;
        if let Err(failure) = &result {
            tracing::info!(message_id = %id.0, receives = delivery.receives, %failure, "not done");
        }
        let settlement = settlement(&result, delivery.receives, self.max_receives);
        drop((turn, lease));
        let ended = !matches!(settlement, Settlement::Retry(_));
        match self.queue.settle(delivery, settlement).await {
            Ok(()) => Ok(Some(Worked { message: id, settled: ended })),
            // Somebody else has it now, and will find it committed.
            Err(QueueError::LeaseLost(_)) => Ok(Some(Worked { message: id, settled: false })),
            Err(error) => Err(error),
        }
    }

    /// The order of receiving is the order of the line: nobody else receives in between.
    async fn receive(&self) -> Result<Option<(Delivery, Ticket)>, QueueError> {
        let line = self.line.lock().await;
        let delivery = self.queue.receive(1).await?.pop();
        Ok(delivery.map(|delivery| (delivery, line.ticket())))
    }

    async fn work(&self, delivery: &Delivery, turn: &Ticket) -> Result<(), Failure> {
        let photos = PhotoRef::parse(&delivery.body).map_err(|malformed| Failure::Poison(malformed.to_string()))?;
        for photo in photos {
            self.pipeline.process(photo, turn).await?;
        }
        Ok(())
    }
}
